"""Arrays of tensors whose class answers every op: a shape and a device, and no memory anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._device import device
from .array import DeviceArray, Memory
from .base import BY_ARRAY, Device


class HollowArray(DeviceArray):
    """What such a tensor says of itself."""

    __slots__ = ()


def hollow(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None, offset: int, where: device,
           nbytes: int) -> HollowArray:
    """An array of this geometry; strides and offset in bytes."""
    return HollowArray(Memory(where, 0, nbytes), shape, dtype, strides, offset)


class Nowhere(Device):
    """Stands for the device of hollow arrays, of whatever type they say it is."""

    type = "hollow"
    array_class = HollowArray
    indexed = has_data = False

    def kernel(self, op: Any, form: str) -> Any:
        return None

    def missing(self, op: Any, form: str) -> Any:
        raise RuntimeError(f"aten::{op.name}: this tensor has no memory of its own, and the op was not given to its "
                           "class's __torch_dispatch__")

    def to_host(self, array: Any, non_blocking: bool = False) -> np.ndarray:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


BY_ARRAY[HollowArray] = Nowhere()
