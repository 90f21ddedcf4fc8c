"""`torch.distributed.elastic.multiprocessing.errors`: the decorator of a main function that a launcher may run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._outside import attributes

__all__ = ["record"]


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """The function unchanged: without PyTorch's launcher, nothing reads its errors from a file."""
    return fn

__getattr__ = attributes("distributed.elastic.multiprocessing.errors", globals())
