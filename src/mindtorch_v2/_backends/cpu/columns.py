"""Matrices that lie column by column, as LAPACK leaves them, and the loops of NumPy that write into such ones."""

from __future__ import annotations

from typing import Any

import numpy as np

# np.linalg's own functions compute float32 in double precision and lay out results row by row; its loops need not.
try:
    from numpy.linalg import _umath_linalg as _loops
except ImportError:  # it is NumPy's own affair where they are
    _loops = None


def columns(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """New matrices without contents, column by column."""
    *lead, rows, count = shape
    if not lead:
        return np.empty((rows, count), dtype, "F")
    return np.swapaxes(np.empty((*lead, count, rows), dtype), -1, -2)


def by_columns(a: np.ndarray) -> np.ndarray:
    """The same matrices column by column; copied if they lie otherwise."""
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(a, -1, -2)), -1, -2)


def _refuse(*_: Any) -> None:
    raise np.linalg.LinAlgError("LAPACK found no solution")


def loop(name: str, results: str, out: tuple[tuple[int, ...] | None, ...], a: np.ndarray, *others: np.ndarray) -> Any:
    """What a loop of NumPy's makes; None if it has no such loop, or there is nothing to do.

    In `results` `a` stands for the type of `a`, `r` for its real and `c` for its complex one. `out` has the shapes of
    results that are matrices, which are made column by column.
    """
    own = a.dtype.char
    found = getattr(_loops, name, None) if own in "fdFD" and a.size else None
    letters = "".join({"a": own, "r": own.lower(), "c": own.upper()}[letter] for letter in results)
    signature = f"{own * (1 + len(others))}->{letters}"
    if found is None or signature not in found.types:
        return None
    made = tuple([None if shape is None else columns(shape, letter)
                  for shape, letter in zip(out, letters, strict=True)])
    # A determinant exists always: there "invalid" only means a NaN.
    failed = "ignore" if name == "slogdet" else "call"
    with np.errstate(call=_refuse, invalid=failed, over="ignore", divide="ignore", under="ignore"):
        return found(a, *others, signature=signature, out=made)
