"""Asks the C library's allocator to keep freed memory for the next array instead of giving it back to the system.

Kernels free and allocate arrays of the same sizes over and over. By default glibc maps anything large again each time,
and the system then hands it out page by page, zeroed: in training steps of small models that was a seventh of the time.
Memory that no one has used yet costs the same once, about a microsecond a page. `touch_reserve` pays for the first
pages before a program trains, so that a profile of the first step shows the program.

The setting is the process's. It is left alone where the user has made one (any of glibc's own variables), with
`MINDTORCH_KEEP_MEMORY=0`, and where the C library is another.
"""

from __future__ import annotations

import ctypes
import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
# The limit of free memory at the end of the heap, and the largest array taken from it; glibc allows no more.
KEPT_BYTES = 256 << 20
LARGEST_BYTES = 32 << 20
# Enough for the parameters, gradients and averages of a small model; larger ones wait in their first step anyway.
RESERVE_BYTES = 8 << 20
POPULATE_WRITE = 23  # madvise: make pages present and writable, keeping their contents
USER_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Make the setting; returns False if it was left alone."""
    if sys.platform != "linux" or os.environ.get("MINDTORCH_KEEP_MEMORY") == "0":
        return False
    if any(name in os.environ for name in USER_SETTINGS):
        return False
    mallopt = getattr(_c_library(), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_BYTES)) and bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES))


def touch_reserve() -> bool:
    """Let the system provide memory for future arrays; returns False if the allocator or the system cannot keep it."""
    if not keep_freed_memory():
        return False
    library = _c_library()
    library.malloc.argtypes, library.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    library.free.argtypes, library.free.restype = [ctypes.c_void_p], None
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = library.malloc(RESERVE_BYTES)
    if start is None:
        return False
    page = os.sysconf("SC_PAGE_SIZE")
    first = -(-start // page) * page
    whole = (start + RESERVE_BYTES - first) // page * page
    populated = library.madvise(first, whole, POPULATE_WRITE) == 0  # Linux before 5.14 refuses
    library.free(start)  # freed memory stays with the allocator, which has just been asked for that
    return populated


def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
