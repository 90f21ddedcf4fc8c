"""Matrices that lie column by column, as LAPACK leaves them, and the loops of NumPy that write into such ones."""

from __future__ import annotations

import functools
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


@functools.cache
def _plan(loops: Any, name: str, results: str, own: str, inputs: int) -> tuple[Any, str, str] | None:
    """The loop of a name, the types of its results, and its signature; None if NumPy has none for these types."""
    found = getattr(loops, name, None) if own in "fdFD" else None
    letters = "".join([{"a": own, "r": own.lower(), "c": own.upper()}[letter] for letter in results])
    signature = f"{own * inputs}->{letters}"
    return (found, letters, signature) if found is not None and signature in found.types else None


def loop(name: str, results: str, out: tuple[tuple[int, ...] | None, ...], a: np.ndarray, *others: np.ndarray) -> Any:
    """What a loop of NumPy's makes; None if it has no such loop, or there is nothing to do.

    In `results` `a` stands for the type of `a`, `r` for its real and `c` for its complex one. `out` has the shapes of
    results that are matrices, which are made column by column.
    """
    plan = _plan(_loops, name, results, a.dtype.char, 1 + len(others))
    if plan is None or not a.size:
        return None
    found, letters, signature = plan
    room = tuple([None if shape is None else columns(shape, letter)
                  for shape, letter in zip(out, letters, strict=True)])
    made = found(a, *others, signature=signature, out=room)
    # A determinant exists always: there NaN is an answer.
    if name != "slogdet" and _may_have_failed(made if len(letters) == 1 else made[0], 1 if out[0] is None else 2):
        with np.errstate(call=_refuse, invalid="call", over="ignore", divide="ignore", under="ignore"):
            found(a, *others, signature=signature, out=room)
    return made


def _may_have_failed(made: np.ndarray, inner: int) -> bool:
    """Whether a batch of results with so many dimensions has NaN at their beginnings: a failure leaves nothing else.

    Catching NumPy's floating point errors around each call would cost as much as a small matrix.
    """
    if made.ndim == inner:
        first = made.item(0)
        return bool(first != first)
    return bool(np.isnan(made[(..., *(0,) * inner)]).any())
