"""Arrays without memory: for tensors whose class answers every op, and for parameters without a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._device import device
from .array import DeviceArray, Memory
from .base import BY_ARRAY, Device


class HollowArray(DeviceArray):
    """The geometry of such a tensor, and the facts that its class is asked about instead."""

    __slots__ = ("asked",)


def hollow(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None, offset: int, where: device,
           nbytes: int) -> HollowArray:
    """An array of this geometry; strides and offset in bytes."""
    return HollowArray(Memory(where, 0, nbytes), shape, dtype, strides, offset)


class Nowhere(Device):
    """Takes the place of the device of hollow arrays, whatever type they state."""

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


class UnmadeArray(HollowArray):
    """A parameter without a shape: it has a dtype and a device. Reading the shape raises an error."""

    __slots__ = ()

    def __init__(self, dtype: np.dtype, where: device) -> None:
        self.memory, self.dtype, self.offset = Memory(where, 0, 0), dtype, 0

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """Not known yet."""
        raise use_of_unmade("a function of torch")

    strides = ndim = size = shape


def use_of_unmade(what: str) -> ValueError:
    """The error of everything that needs a shape."""
    return ValueError(f"Attempted to use an uninitialized parameter in {what}. This error happens when you are using a "
                      "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. "
                      "When using LazyModules Call `forward` with a dummy batch to initialize the parameters before "
                      "calling torch functions")


class Unmade(Nowhere):
    """Takes the place of the device of arrays that are still to be made."""

    type = "unmade"
    array_class = UnmadeArray  # type: ignore[assignment]

    def missing(self, op: Any, form: str) -> Any:
        raise use_of_unmade(f"torch.{op.name}")


BY_ARRAY[HollowArray] = Nowhere()
BY_ARRAY[UnmadeArray] = Unmade()
