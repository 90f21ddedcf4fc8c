"""Products of float32 matrices by oneDNN."""

from __future__ import annotations

import numpy as np

from ..memory import copy_
from ..view import expand_step
from .library import library
from .memory import Array, address

# Multiplications below which the call costs more than it gains.
FEW = 1 << 18
# Multiplications below which one thread is about as fast as several, and does not have to wait for the others.
FEW_FOR_THREADS = 1 << 22
FLOAT32 = np.dtype(np.float32)


def _orientation(a: Array) -> tuple[bytes, int] | None:
    """Whether a matrix lies transposed in memory, and the distance of its rows there; None for other layouts."""
    rows, columns = a.shape
    down, across = a.strides
    if across == 4 and down >= 4 * columns and down % 4 == 0:
        return b"N", down // 4
    if down == 4 and across >= 4 * rows and across % 4 == 0:
        return b"T", across // 4
    return None


def multiply_into(made: Array, a: Array, b: Array, add: bool = False) -> bool:
    """Put `a @ b` into a contiguous matrix, or add it to what is there; False if the library is not used for it."""
    if a.dtype is not FLOAT32 or b.dtype is not FLOAT32 or a.size * b.shape[1] < FEW or made.dtype is not FLOAT32:
        return False
    found = library()
    if found is None:
        return False
    left, right = _orientation(a), _orientation(b)
    inner, columns = b.shape
    if left is None or right is None or a.shape[1] != inner:
        return False
    small = a.size * columns < FEW_FOR_THREADS
    if small:
        found.set_threads(1)
    status = found.functions["dnnl_sgemm"](left[0], right[0], a.shape[0], columns, inner, 1.0, address(a), left[1],
                                           address(b), right[1], 1.0 if add else 0.0, address(made), columns)
    if small:
        found.set_threads(found.threads)
    return status == 0


def product(a: Array, b: Array, bias: Array | None = None) -> Array | None:
    """`a @ b`, plus a bias that broadcasts to it, or None."""
    if a.dtype is not FLOAT32 or a.size * b.shape[1] < FEW or library() is None:
        return None
    made = np.empty((a.shape[0], b.shape[1]), FLOAT32)
    if bias is not None:
        copy_(made, expand_step(bias, made.shape, False))
    return made if multiply_into(made, a, b, bias is not None) else None


def matmul(a: Array, b: Array) -> Array:
    """`a @ b` of two matrices, by whichever is faster."""
    made = product(a, b)
    return np.matmul(a, b) if made is None else made
