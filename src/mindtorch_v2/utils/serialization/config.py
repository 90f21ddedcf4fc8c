"""`torch.utils.serialization.config`: what `torch.save` and `torch.load` do when they are not told.

>>> with patch("load.mmap", True):
...     load.mmap
True
>>> load.mmap
False
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["load", "patch", "save"]


class _Group:
    """Settings; others cannot be added."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            group = "load" if isinstance(self, _Load) else "save"
            raise AttributeError(f"torch.utils.serialization.config.{group}.{name} does not exist")
        super().__setattr__(name, value)


class _Load(_Group):
    """Whether files are mapped, and what is assumed of them."""

    mmap = False
    endianness: Any = None
    mmap_flags = 2  # mmap.MAP_PRIVATE
    calculate_storage_offsets = False


class _Save(_Group):
    """How files are written: with or without checksums, and the alignment of records."""

    compute_crc32 = True
    use_pinned_memory_for_d2h = False
    storage_alignment = 64


load, save = _Load(), _Save()


@contextmanager
def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
    """A context with other settings: `patch("load.mmap", True)`, or a dictionary of such names."""
    changes = dict(arg1) if isinstance(arg1, dict) else {} if arg1 is None else {arg1: arg2}
    changes.update(kwargs)
    groups = {"load": load, "save": save}
    before = {}
    try:
        for name, value in changes.items():
            group, _, key = name.partition(".")
            before[name] = getattr(groups[group], key)
            setattr(groups[group], key, value)
        yield
    finally:
        for name, value in before.items():
            group, _, key = name.partition(".")
            setattr(groups[group], key, value)
