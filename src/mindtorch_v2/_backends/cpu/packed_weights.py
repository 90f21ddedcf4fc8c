"""Products with weights of 4 and 8 bits: the weights become floats, and the product is one of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES
from .matmul import mm

Array = Any
GROUPS = (32, 64, 128, 256)


def _check_input(name: str, a: Array) -> None:
    if a.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if a.dtype not in FLOAT_DTYPES or a.dtype.kind == "c" or a.dtype.itemsize > 4:
        raise RuntimeError(f"{name} : expect A to be either 32-bit or 16-bit float tensor.")


def _product(a: Array, weight: Array) -> Array:
    """In float32, rounded once."""
    return mm(a.astype(np.float32), np.ascontiguousarray(weight.T)).astype(a.dtype)


def int8_mm(a: Array, weight: Array, scales: Array) -> Array:
    """The product with the transpose of a matrix of bytes, each row of which has a scale."""
    name = "_weight_int8pack_mm_cpu"
    _check_input(name, a)
    if weight.dtype != np.int8:
        raise RuntimeError(f"{name} : expect B to be int8 tensor.")
    if weight.ndim != 2 or weight.shape[1] != a.shape[1]:
        raise RuntimeError(f"{name} : expect B.size(1) == {a.shape[1]}")
    if scales.shape != weight.shape[:1]:
        raise RuntimeError(f"{name} : expect scales to be 1d tensor with size {len(weight)}")
    return _product(a, weight.astype(np.float32) * scales.astype(np.float32)[:, None])


def pack_int4(weight: Array, inner_tiles: int) -> Array:
    """Two numbers of 4 bits to a byte: the earlier one is in the lower bits."""
    name = "_convert_weight_to_int4pack_cpu"
    if weight.ndim != 2:
        raise RuntimeError(f"{name} : expect weight to be 2D tensor.")
    if weight.dtype != np.int32:
        raise RuntimeError(f"{name} : expect weight to be kInt.")
    if weight.shape[0] % 16:
        raise RuntimeError(f"{name} : expect N to be dividable by 16")
    if weight.shape[1] % 2:
        raise RuntimeError("_convert_weight_to_int4pack: expect K to be dividable by 2")
    return (weight[:, ::2] | weight[:, 1::2] << 4).astype(np.uint8)


def int4_mm(a: Array, packed: Array, group: int, scales_and_zeros: Array) -> Array:
    """The product with a packed matrix; a group of elements in a row has a scale and what stands for 8."""
    name = "_weight_int4pack_mm_cpu"
    _check_input(name, a)
    if packed.dtype != np.uint8:
        raise RuntimeError(f"{name} : expect B to be uint8 tensor.")
    if group not in GROUPS:
        raise RuntimeError(f"{name}: expect qGroupSize to be 32, 64, 128 or 256, got {group}")
    rows, columns = len(packed), 2 * packed.shape[1]
    if a.shape[1] != columns:
        raise RuntimeError(f"{name} : expect A.size(1) == {columns}, got {a.shape[1]}")
    if scales_and_zeros.shape != (columns // group, rows, 2):
        raise RuntimeError(f"{name}: expect qScaleAndZeros to be of shape {[columns // group, rows, 2]}")
    numbers = np.empty((rows, columns), np.float32)
    numbers[:, ::2], numbers[:, 1::2] = packed & 15, packed >> 4
    scales, zeros = np.moveaxis(scales_and_zeros.astype(np.float32), (2, 1), (0, 1))
    whole = (numbers.reshape(rows, -1, group) - 8) * scales[..., None] + zeros[..., None]
    return _product(a, whole.reshape(rows, columns))
