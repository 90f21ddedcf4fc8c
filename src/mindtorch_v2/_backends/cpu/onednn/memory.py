"""Describes arrays to oneDNN."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .library import Library

Array = Any

FLOAT32 = 3
ANY_LAYOUT = 1
ALIGNMENT = 64


def numbers(values: Sequence[int]) -> Any:
    """A C array of 64-bit integers."""
    return (ctypes.c_int64 * len(values))(*values)


def plain(library: Library, shape: Sequence[int]) -> Any:
    """The descriptor of a contiguous float32 array."""
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return library.describe("dnnl_memory_desc_create_with_strides", len(shape), numbers(shape), FLOAT32,
                            numbers(strides))


def strided(library: Library, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """The descriptor of a float32 array with these strides, in bytes."""
    return library.describe("dnnl_memory_desc_create_with_strides", len(shape), numbers(shape), FLOAT32,
                            numbers([s // 4 for s in strides]))


def free(library: Library, shape: Sequence[int]) -> Any:
    """The descriptor of a float32 array whose layout the library may choose."""
    return library.describe("dnnl_memory_desc_create_with_tag", len(shape), numbers(shape), FLOAT32, ANY_LAYOUT)


def address(array: Array) -> int:
    """Where an array's elements are."""
    return array.__array_interface__["data"][0]


def aligned(size_bytes: int) -> tuple[Array, int]:
    """Memory for the library's own layouts: an object that keeps it alive, and an address that suits vector
    instructions."""
    owner = np.empty(size_bytes + ALIGNMENT, np.uint8)
    start = address(owner)
    return owner, start + -start % ALIGNMENT
