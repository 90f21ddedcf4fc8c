"""`torch.torch_version`: a version that is a string and compares as a version.

>>> TorchVersion("2.13.0+cpu") >= "2.9", TorchVersion("2.13.0") > (2, 9), TorchVersion("2.13.0+x") == "2.13.0"
(True, True, False)
>>> TorchVersion("2.13.0rc1") < "2.13", TorchVersion("2.13.0") == "2.13"
(True, True)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import dropwhile
from typing import Any

from .version import __version__ as _torch_version

__all__ = ["TorchVersion"]

_FORM = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>\d*))?"
    r"(?P<post>-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?", re.IGNORECASE)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_LOWEST, _HIGHEST = (-1,), (1,)


def _key(text: str) -> tuple[Any, ...] | None:
    """What versions are ordered by (PEP 440); None for other texts."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    release = tuple(reversed([*dropwhile(lambda part: part == 0,
                                         reversed([int(part) for part in found["release"].split(".")]))]))
    digits = re.search(r"\d+", found["post"] or "")
    post: Any = _LOWEST if found["post"] is None else (0, int(digits[0]) if digits else 0)
    dev: Any = _HIGHEST if found["dev"] is None else (0, int(found["dev_number"] or 0))
    pre: Any
    if found["pre"] is not None:
        name = found["pre"].lower()
        pre = (0, _PRE.get(name, name), int(found["pre_number"] or 0))
    elif found["post"] is None and found["dev"] is not None:
        pre = _LOWEST  # a development version comes before the first alpha
    else:
        pre = _HIGHEST
    local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part.lower())
                  for part in re.split(r"[-_.]", found["local"] or "") if part)
    return int(found["epoch"] or 0), release, pre, post, dev, local


class TorchVersion(str):
    """A string whose comparisons are those of versions, also with tuples; other texts compare as text."""

    def _compared(self, other: Any) -> tuple[Any, Any]:
        text = ".".join(map(str, other)) if isinstance(other, Iterable) and not isinstance(other, str) else other
        mine, theirs = _key(self), _key(text) if isinstance(text, str) else None
        return (mine, theirs) if mine is not None and theirs is not None else (str(self), other)

    def __lt__(self, other: Any) -> bool:
        mine, theirs = self._compared(other)
        return mine < theirs

    def __le__(self, other: Any) -> bool:
        mine, theirs = self._compared(other)
        return mine <= theirs

    def __gt__(self, other: Any) -> bool:
        mine, theirs = self._compared(other)
        return mine > theirs

    def __ge__(self, other: Any) -> bool:
        mine, theirs = self._compared(other)
        return mine >= theirs

    def __eq__(self, other: object) -> bool:
        mine, theirs = self._compared(other)
        return mine == theirs

    __ne__ = str.__ne__  # of the texts, as in PyTorch
    __hash__ = str.__hash__


__version__ = TorchVersion(_torch_version)
