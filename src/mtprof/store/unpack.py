"""A limit on how much a compressed file may unpack to: a few megabytes can unpack to more than the memory."""

from __future__ import annotations

import os

_SETTING = "MTPROF_UNPACK_LIMIT_BYTES"
# Traces pack 10 to 30 times; a file of only equal events about 150 times.
_MOST_TIMES, _LEAST_LIMIT_BYTES = 200, 1 << 26


def check_unpacked(packed_bytes: int, unpacked_bytes: int) -> None:
    """Raise ValueError if a file of this size has unpacked to too much."""
    limit = _limit(packed_bytes)
    if unpacked_bytes > limit:
        raise ValueError(f"it unpacks to more than {limit} bytes from {packed_bytes}; if you trust the file, "
                         f"set {_SETTING} to more")


def _limit(packed_bytes: int) -> int:
    chosen = os.environ.get(_SETTING)
    if chosen is None:
        return max(_LEAST_LIMIT_BYTES, _MOST_TIMES * packed_bytes)
    if not chosen.isdecimal():
        raise ValueError(f"the environment variable {_SETTING} should be a number of bytes, not {chosen!r}")
    return int(chosen)
