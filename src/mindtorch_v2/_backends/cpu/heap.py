"""Asks the C library's allocator to keep freed memory for the next array instead of giving it back to the system.

Kernels free and allocate arrays of the same sizes over and over. By default glibc maps anything large anew each time,
and the system then hands it out page by page, zeroed: in training steps of small models that was a seventh of the time.
The setting is the process's. It is left alone where the user has made one (any of glibc's own variables), with
`MINDTORCH_KEEP_MEMORY=0`, and where the C library is another.
"""

from __future__ import annotations

import ctypes
import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
# What may stay free at the end of the heap, and the largest array that is taken from it; more glibc does not allow.
KEPT_BYTES = 256 << 20
LARGEST_BYTES = 32 << 20
USER_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Make the setting; False if it was left alone."""
    if sys.platform != "linux" or os.environ.get("MINDTORCH_KEEP_MEMORY") == "0":
        return False
    if any(name in os.environ for name in USER_SETTINGS):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_BYTES)) and bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES))
