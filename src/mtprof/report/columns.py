"""Columns of numbers as short text: differences if that helps, compressed, base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np


def packed(values: np.ndarray, *, delta: bool = False) -> dict[str, Any]:
    """A column for the page: its type there, its length, and its bytes. Times are kept exactly, as 64-bit numbers.

    With `delta`, it stores the difference to the number before, which compresses well for sorted columns.
    """
    array = np.asarray(values)
    if delta:
        array = np.diff(array.astype(np.int64), prepend=np.int64(0))
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
    kind = next((name for name, limits in _TYPES.items() if limits[0] <= low and high <= limits[1]), "f8")
    data = np.ascontiguousarray(array.astype(f"<{kind}"))
    # Bytes of the same weight beside each other: those of small numbers are mostly zero.
    shuffled = data.view(np.uint8).reshape(len(data), -1).T.tobytes() if len(data) else b""
    text = base64.b64encode(zlib.compress(shuffled, 6)).decode()
    return {"type": kind, "count": len(array), "delta": delta, "data": text}


_TYPES = {"u1": (0, 0xFF), "u2": (0, 0xFFFF), "i2": (-0x8000, 0x7FFF), "u4": (0, 0xFFFFFFFF),
          "i4": (-0x80000000, 0x7FFFFFFF)}
