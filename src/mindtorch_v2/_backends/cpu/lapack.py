"""LAPACK's functions on stacks of matrices, from the library that NumPy brought.

A stack here is an array of shape (batch, columns, rows): each matrix lies column by column.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from . import blas

# What a function is called for complex matrices, where that is another name.
COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr"}
BLOCK = 64  # columns that a blocked function of LAPACK likes to work on at once


class Room:
    """Memory that all calls may use one after the other."""

    __slots__ = ("array", "size")

    def __init__(self, size: int, dtype: np.dtype) -> None:
        self.size = max(size, 1)
        self.array = np.ones(self.size, dtype)


def _find(name: str, dtype: np.dtype) -> Any:
    kind = dtype.char
    if kind not in blas.LETTERS:
        return None
    return blas.lapack(blas.LETTERS[kind] + (COMPLEX.get(name, name) if kind in "FD" else name))


def has(name: str, dtype: np.dtype) -> bool:
    """Whether the library has this function for such matrices."""
    return _find(name, dtype) is not None


def run(name: str, dtype: np.dtype, batch: int, *arguments: Any) -> None:
    """Call a function of LAPACK for each matrix of stacks.

    Of the arguments integers, letters and `Room` are the same for all matrices, and arrays have one row for each.
    """
    found = _find(name, dtype)
    if found is None:
        raise NotImplementedError(f"the linear algebra library of this NumPy has no function {name}")
    function, integer, _ = found
    given: list[Any] = [None] * len(arguments)
    moving = []
    for place, one in enumerate(arguments):
        if isinstance(one, Room):
            given[place] = ctypes.c_void_p(one.array.ctypes.data)
        elif isinstance(one, np.ndarray):
            moving.append((place, one.ctypes.data, one.strides[0]))
        else:
            given[place] = one if isinstance(one, bytes) else ctypes.byref(integer(one))
    for index in range(batch):
        for place, start, step in moving:
            given[place] = ctypes.c_void_p(start + index * step)
        function(*given)


def stack(a: np.ndarray, lead: tuple[int, ...] | None = None) -> np.ndarray:
    """Matrices as a stack to read from."""
    if lead is not None and a.shape[:-2] != lead:
        a = np.broadcast_to(a, (*lead, *a.shape[-2:]))
    turned = np.swapaxes(a, -1, -2)
    return np.ascontiguousarray(turned).reshape(math.prod(a.shape[:-2]), *turned.shape[-2:])


def fresh(a: np.ndarray, lead: tuple[int, ...] | None = None) -> np.ndarray:
    """Matrices as a stack to write to: a copy."""
    if lead is not None and a.shape[:-2] != lead:
        a = np.broadcast_to(a, (*lead, *a.shape[-2:]))
    turned = np.swapaxes(a, -1, -2)
    return np.array(turned, order="C").reshape(math.prod(a.shape[:-2]), *turned.shape[-2:])


def matrices(made: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """The matrices of a stack in a batch of some shape."""
    return np.swapaxes(made.reshape(*lead, *made.shape[-2:]), -1, -2)


def integers(batch: int, *shape: int) -> np.ndarray:
    """Room for what LAPACK counts."""
    found = next((blas.lapack(f"{letter}getrf") for letter in "sd"), None)
    return np.zeros((batch, *shape), np.int64 if found is None else found[2])


def triangular(a: np.ndarray, b: np.ndarray, lead: tuple[int, ...], upper: bool, left: bool, unit: bool) -> np.ndarray:
    """X with AX = B, or XA = B, of triangular matrices."""
    factor, made = stack(a, lead), fresh(b, lead)
    batch, columns, rows = made.shape
    size = a.shape[-1]
    run("trsm", b.dtype, batch, b"L" if left else b"R", b"U" if upper else b"L", b"N", b"U" if unit else b"N", rows,
        columns, Room(1, b.dtype), factor, max(size, 1), made, max(rows, 1))
    return matrices(made, lead)


def householder(a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The first columns of the product of reflections."""
    lead, made = a.shape[:-2], fresh(a)
    batch, columns, rows = made.shape
    factors = np.ascontiguousarray(tau).reshape(batch, tau.shape[-1])
    room = Room(columns * BLOCK, a.dtype)
    run("orgqr", a.dtype, batch, rows, columns, factors.shape[1], made,
        max(rows, 1), factors, room, room.size, integers(batch))
    return matrices(made, lead)


def reflected(a: np.ndarray, tau: np.ndarray, other: np.ndarray, left: bool, transpose: bool) -> np.ndarray:
    """The product of a matrix with all reflections, or their adjoint."""
    lead, made, vectors = other.shape[:-2], fresh(other), stack(a)
    batch, columns, rows = made.shape
    # LAPACK writes into `vectors` while it works, and tau may lie there.
    factors = tau.copy("C").reshape(batch, tau.shape[-1])
    room = Room(max(rows, columns) * BLOCK, a.dtype)
    run("ormqr", a.dtype, batch, b"L" if left else b"R",
        b"N" if not transpose else b"C" if a.dtype.kind == "c" else b"T", rows, columns, factors.shape[1], vectors,
        max(a.shape[-2], 1), factors, made, max(rows, 1), room, room.size, integers(batch))
    return matrices(made, lead)


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The reflections of a QR decomposition below R, and their factors."""
    lead, made = a.shape[:-2], fresh(a)
    batch, columns, rows = made.shape
    factors = np.zeros((batch, min(rows, columns)), a.dtype)
    room = Room(columns * BLOCK, a.dtype)
    run("geqrf", a.dtype, batch, rows, columns, made, max(rows, 1), factors, room, room.size, integers(batch))
    return matrices(made, lead), factors.reshape(*lead, factors.shape[1])


def ldl(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and D in one matrix, the exchanges of rows, and the first zero on D's diagonal (or 0)."""
    lead, made = a.shape[:-2], fresh(a)
    batch, size, _ = made.shape
    pivots, infos = integers(batch, size), integers(batch)
    room = Room(size * BLOCK, a.dtype)
    run("hetrf" if hermitian and a.dtype.kind == "c" else "sytrf", a.dtype, batch, b"L", size, made, max(size, 1),
        pivots, room, room.size, infos)
    return (matrices(made, lead), pivots.astype(np.int32).reshape(*lead, size),
            infos.astype(np.int32).reshape(lead))


def ldl_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, lead: tuple[int, ...],
              hermitian: bool) -> np.ndarray:
    """X with AX = B, for what `ldl` made of A."""
    given, made = stack(factors, lead), fresh(b, lead)
    batch, columns, size = made.shape
    exchanges = np.broadcast_to(pivots, (*lead, size)).astype(integers(0).dtype).reshape(batch, size)
    run("hetrs" if hermitian and b.dtype.kind == "c" else "sytrs", b.dtype, batch, b"L", size, columns, given,
        max(size, 1), exchanges, made, max(size, 1), integers(batch))
    return matrices(made, lead)


def least_squares(a: np.ndarray, b: np.ndarray, rcond: float, driver: str) -> tuple[np.ndarray, ...]:
    """The solutions with what is below them, the ranks, the singular values and what was wrong with each matrix."""
    lead, (rows, columns), width = a.shape[:-2], a.shape[-2:], b.shape[-1]
    longest, least = max(rows, columns, 1), min(rows, columns)
    factor = fresh(a)
    batch = len(factor)
    made = np.zeros((batch, width, longest), a.dtype)
    made[..., :rows] = stack(b)
    real = np.dtype(a.dtype.char.lower())
    ranks, infos, values = integers(batch, 1), integers(batch), np.zeros((batch, least), real)
    limit = Room(1, real)
    limit.array[0] = rcond
    sizes = (rows, columns, width, factor, max(rows, 1), made, longest)
    kinds = integers(0).dtype
    if driver == "gels":
        size = max(1, least + max(least, width) * BLOCK)
        run("gels", a.dtype, batch, b"N", *sizes, Room(size, a.dtype), size, infos)
    elif driver == "gelsy":
        size = max(least + 3 * columns + (columns + 1) * BLOCK, 2 * least + width * BLOCK, 1)
        own = [Room(2 * columns, real)] if a.dtype.kind == "c" else []
        run("gelsy", a.dtype, batch, *sizes, integers(batch, columns), limit, ranks, Room(size, a.dtype), size, *own,
            infos)
    else:
        # How much room it wants depends on the library: it says so when it is given none.
        wanted, counts = Room(1, a.dtype), Room(longest * 64 + 1024, kinds)
        own = [] if a.dtype.kind != "c" else [Room(max(5 * least, 1), real)]
        if driver == "gelsd":
            own = [*([Room(_room_of_gelsd(longest, least, width), real)] if own else []), counts]
        run(driver, a.dtype, min(batch, 1), *sizes, values, limit, ranks, wanted, -1, *own, infos)
        size = int(wanted.array[0].real)
        run(driver, a.dtype, batch, *sizes, values, limit, ranks, Room(size, a.dtype), size, *own, infos)
    return matrices(made, lead), ranks.reshape(lead), values.reshape(*lead, least), infos.reshape(lead)


def _room_of_gelsd(longest: int, least: int, width: int) -> int:
    """Real numbers that are enough for complex matrices: LAPACK's bound for blocks of 25 and up to 64 levels."""
    leaf, levels = 25, max(1, longest.bit_length())
    return (10 * longest + 2 * longest * leaf + 8 * longest * levels + 3 * leaf * width
            + max((leaf + 1) ** 2, least * (1 + width) + 2 * width) + 1024)
