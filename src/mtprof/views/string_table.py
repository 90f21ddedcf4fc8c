"""Readable names for mangled C++ symbols, which kernels in traces from elsewhere may have."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
from collections import defaultdict


@functools.lru_cache(maxsize=1)
def _cxx_library() -> ctypes.CDLL | None:
    """The C++ runtime with its demangler, or None."""
    found = ctypes.util.find_library("stdc++") or ctypes.util.find_library("c++abi")
    if found is None:
        return None
    library = ctypes.CDLL(found)
    library.__cxa_demangle.restype = ctypes.c_void_p
    library.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library


def demangle(name: str) -> str:
    """The C++ declaration of a mangled name; any other name, and any name without a C++ runtime, stays unchanged."""
    if not name.startswith("_Z"):
        return name
    library = _cxx_library()
    if library is None:
        return name
    status = ctypes.c_int(1)
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value or not text:
        return name
    try:
        return ctypes.string_at(text).decode()
    finally:
        # The demangler's buffer comes from malloc; libc is in every process, so its free can release it.
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free.restype = None
        free(text)


class StringTable(defaultdict):
    """Names by their raw form, each demangled once."""

    def __missing__(self, key: str) -> str:
        self[key] = shown = demangle(key)
        return shown
