"""`torch.utils._thunk`: values that are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
__all__ = ["Thunk"]


class Thunk(Generic[T]):
    """A value that is computed once, at the first call of `force`."""

    __slots__ = ("f", "r")

    def __init__(self, f: Callable[[], T]) -> None:
        self.f: Callable[[], T] | None = f
        self.r: T | None = None

    def force(self) -> T:
        """The value."""
        if self.f is not None:
            self.r, self.f = self.f(), None
        return self.r  # type: ignore[return-value]
