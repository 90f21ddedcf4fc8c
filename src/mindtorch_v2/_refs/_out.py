"""Every reference takes `out=`, also those of ops that have none, and casts its result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch.dispatcher import write_results


@functools.cache
def with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an op, which can also write its results into given tensors."""
    @functools.wraps(function)
    def reference(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if out is None:
            return made
        if isinstance(made, tuple):
            return tuple(write_results("reference", *pair) for pair in zip(out, made, strict=True))
        return write_results("reference", out, made)

    return reference


def reference_of(module: Any, name: str) -> Any:
    """What a module has of a name, as a reference."""
    found = getattr(module, name)
    return with_out(found) if callable(found) and not isinstance(found, type) else found
