"""What Linux knows of a process or thread: its name, and the signal it gets when its parent ends."""

from __future__ import annotations

import ctypes
import os

_DEATH_SIGNAL, _SET_NAME, _GET_NAME, _NAME_BYTES = 1, 15, 16, 16


def _prctl(*arguments: int | ctypes.Array[ctypes.c_char]) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "prctl"):
        raise NotImplementedError("prctl is a function of Linux")
    if library.prctl(*arguments, 0, 0, 0) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def set_pdeathsig(signal: int) -> None:
    """Get this signal when the parent process ends."""
    _prctl(_DEATH_SIGNAL, int(signal))


def set_thread_name(name: str) -> None:
    """The name of this thread, of which 15 bytes are kept."""
    _prctl(_SET_NAME, ctypes.create_string_buffer(name.encode()[: _NAME_BYTES - 1], _NAME_BYTES))


def get_thread_name() -> str:
    """The name of this thread."""
    found = ctypes.create_string_buffer(_NAME_BYTES)
    _prctl(_GET_NAME, found)
    return found.value.decode()
