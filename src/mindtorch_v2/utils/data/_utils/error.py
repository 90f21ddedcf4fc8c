"""An exception on its way from a worker to the main process."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn


class ReadableKeyError(str):
    """`KeyError` shows the repr of its message; this one's repr keeps the lines of a traceback apart."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The type and the printed traceback of the exception being handled; tracebacks themselves cannot be sent."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        found: Any = sys.exc_info() if exc_info is None else exc_info
        kind, value, trace = found
        self.exc_type: type[BaseException] = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.name = kind.__name__
        self.where = where

    def without_type(self) -> ExceptionWrapper:
        """For exceptions whose class the main process cannot find."""
        self.exc_type = RuntimeError
        return self

    def reraise(self) -> NoReturn:
        """Raise the same type again, with the original traceback in its message."""
        message = f"Caught {self.name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(ReadableKeyError(message))
        try:
            error = self.exc_type(message)
        except Exception:
            # Its constructor wants something else: the text matters more than the type.
            raise RuntimeError(message) from None
        try:
            raise error
        finally:
            # The traceback refers to this frame: a name for the error here would keep both, and the loader, alive.
            del error
