"""The CPU as a device: NumPy arrays in host memory, and kernels that run before they return."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._device import device
from ..base import INPLACE, NEW, Device, Kernel, register
from ..geometry import span_bytes
from . import memory
from .copy import copy_into, fill
from .rng import MersenneGenerator
from .view import owner, strided

Shape = tuple[int, ...]


class CpuDevice(Device):
    """Host memory."""

    type = "cpu"
    array_class = np.ndarray
    indexed = False
    profiler_type = 0
    profiler_name = "CPU"

    def empty(self, shape: Shape, dtype: np.dtype, where: device, strides: Shape | None = None) -> np.ndarray:
        if strides is None:
            return np.empty(shape, dtype)
        flat = np.empty(span_bytes(shape, strides, dtype.itemsize), np.uint8)
        return np.ndarray(shape, dtype, flat, 0, strides)

    def empty_like(self, array: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        return memory.empty_strided(array, array.dtype if dtype is None else dtype)

    def from_host(self, array: np.ndarray, where: device, non_blocking: bool = False) -> np.ndarray:
        return array

    def to_host(self, array: np.ndarray, non_blocking: bool = False) -> np.ndarray:
        return array

    def copy(self, target: np.ndarray, source: Any, non_blocking: bool = False) -> np.ndarray:
        return copy_into(target, source)

    def as_strided(self, array: np.ndarray, shape: Shape, strides: Shape, offset: int = 0) -> np.ndarray:
        base = owner(array)
        start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0] if array.size else offset
        return strided(array, shape, strides, offset - start)

    def fill(self, array: np.ndarray, value: Any) -> np.ndarray:
        return fill(array, value)

    def new_engine(self, where: device) -> MersenneGenerator:
        return MersenneGenerator()

    def kernel(self, op: Any, form: str) -> Kernel | None:
        """The kernel in the op's declaration."""
        return op.cpu_full or op.cpu if form == NEW else op.cpu_inplace if form == INPLACE else None


register(CpuDevice())
