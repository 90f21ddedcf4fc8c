"""Numbers of many rows as text at once.

Formatting an integer in Python costs more than the rest of a trace's line. Here NumPy computes the digits of a whole
column into a matrix of characters, one row per event, with literal text between the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_BLANK = ord(" ")
# The digits of 0 to 999, three characters each.
THREE_DIGITS = np.array([list(f"{number:03d}".encode()) for number in range(1000)], np.uint8)


def lines(pieces: Sequence[bytes | np.ndarray]) -> list[bytes]:
    """One text per row, made of literal bytes and of columns of characters or of non-negative integers.

    Integers are right-aligned with blanks, which JSON allows before a value, to the longest of their column. The last
    piece must be literal.

    >>> lines([b'"id":', np.array([7, 1024]), b","])
    [b'"id":   7,', b'"id":1024,']
    """
    count = next(len(piece) for piece in pieces if isinstance(piece, np.ndarray))
    if not count:
        return []
    fields: list[np.ndarray] = [
        np.frombuffer(piece, np.uint8) if isinstance(piece, bytes)
        else piece if piece.dtype == np.uint8 and piece.ndim == 2 else _digits(piece)
        for piece in pieces
    ]
    matrix = np.empty((count, sum(field.shape[-1] for field in fields)), np.uint8)
    low = 0
    for field in fields:
        matrix[:, low: low + field.shape[-1]] = field
        low += field.shape[-1]
    return matrix.view(f"S{low}").ravel().tolist()


def thousands(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder by 1000. NumPy divides by a constant much faster than with `divmod`."""
    quotient = values // 1000
    return quotient, values - quotient * 1000


def _digits(values: np.ndarray) -> np.ndarray:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if low < 0:
        raise ValueError("a negative number has no fixed text")
    width = len(str(high))
    groups = -(-width // 3)
    result = np.empty((len(values), groups * 3), np.uint8)
    rest = values
    for group in reversed(range(1, groups)):
        rest, digits = thousands(rest)
        result[:, group * 3: group * 3 + 3] = THREE_DIGITS.take(digits, 0)
    result[:, :3] = THREE_DIGITS.take(rest, 0)
    result = result[:, groups * 3 - width:]
    shortest = len(str(int(values.min()))) if len(values) else width
    for place in range(width - shortest):
        result[values < 10 ** (width - 1 - place), place] = _BLANK
    return result
