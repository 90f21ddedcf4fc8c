"""A device whose memory the host cannot see, for tests: reading it without the device raises an error.

Its memory has addresses that mean nothing to the host, its arrays are no NumPy arrays and refuse to become one, and its
kernels run NumPy behind that wall. It is written by the recipe of CONTRIBUTING: a class of `Device`, and `register`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mindtorch_v2._backends.array import DeviceArray, Memory, flat_bytes
from mindtorch_v2._backends.base import GENERIC, INPLACE, Device, register
from mindtorch_v2._backends.cpu.copy import copy_into, fill
from mindtorch_v2._backends.cpu.rng import MersenneGenerator
from mindtorch_v2._backends.flipped import unflipped
from mindtorch_v2._device import CPU, device
from mindtorch_v2._dispatch.dispatcher import store
from mindtorch_v2._random import Generator

addresses = itertools.count(1 << 44, 1 << 32)


class NullMemory(Memory):
    """A block behind the wall."""

    __slots__ = ("_hidden",)

    def __init__(self, where: device, hidden: np.ndarray) -> None:
        super().__init__(where, next(addresses), hidden.nbytes)
        self._hidden = hidden


class NullArray(DeviceArray):
    """An array of the null device."""

    __slots__ = ()


class NullDevice(Device):
    """Two devices of a kind that does not exist."""

    type = "null"
    array_class = NullArray
    profiler_name = "Null"

    def count(self) -> int:
        return 2

    def allocate(self, nbytes: int, where: device) -> Memory:
        return NullMemory(where, np.full(nbytes, 0xA5, np.uint8))

    def from_host(self, array: np.ndarray, where: device, non_blocking: bool = False) -> NullArray:
        return adopt(array.copy(order="K"), where)

    def to_host(self, array: NullArray, non_blocking: bool = False) -> np.ndarray:
        return opened(array).copy(order="K")

    def copy(self, target: NullArray, source: NullArray, non_blocking: bool = False) -> NullArray:
        copy_into(opened(target), opened(source))
        return target

    def fill(self, array: NullArray, value: Any) -> NullArray:
        fill(opened(array), value.item() if isinstance(value, np.ndarray) else value)
        return array

    def new_engine(self, where: device) -> MersenneGenerator:
        return MersenneGenerator()

    def kernel(self, op: Any, form: str) -> Callable[..., Any] | None:
        kernel = op.cpu_inplace if form == INPLACE else op.cpu_full or op.cpu
        if kernel is None or op.key in GENERIC:
            return None

        def run(*arguments: Any) -> Any:
            memories: list[NullMemory] = []
            given = [inside(value, memories) for value in arguments]
            result = kernel(*given)
            if form == INPLACE and isinstance(arguments[0], NullArray):
                if result is not given[0]:  # the CPU's kernels may also return what is to be stored
                    store(given[0], result)
                return arguments[0]
            return outside(result, memories)

        return run


def opened(array: NullArray) -> np.ndarray:
    """The array behind the wall."""
    return np.ndarray(array.shape, array.dtype, array.memory._hidden, array.offset, array.strides)


def adopt(array: np.ndarray, where: device) -> NullArray:
    """Put an array behind the wall as it lies in memory."""
    if not array.flags.forc or min(array.strides, default=0) < 0 or array.base is not None:
        array = array.copy(order="K")
    return NullArray(NullMemory(where, flat_bytes(array)), array.shape, array.dtype, array.strides)


def inside(value: Any, memories: list[NullMemory]) -> Any:
    """An argument as a kernel behind the wall sees it."""
    if isinstance(value, NullArray):
        memories.append(value.memory)
        return opened(value)
    if type(value) in (list, tuple):
        return type(value)(inside(one, memories) for one in value)
    if isinstance(value, Generator):
        return GeneratorBehind(value)
    return value


class GeneratorBehind(Generator):
    """A generator of the null device, for kernels that think they are on the CPU."""

    def __init__(self, generator: Generator) -> None:
        self._device, self._engine = CPU, generator._engine


def outside(value: Any, memories: list[NullMemory]) -> Any:
    """A result of such a kernel as the host sees it."""
    if isinstance(value, (list, tuple)):
        return type(value)(outside(one, memories) for one in value)
    value = unflipped(value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    for memory in memories:
        if np.shares_memory(value, memory._hidden):
            start = value.__array_interface__["data"][0] - memory._hidden.__array_interface__["data"][0]
            return NullArray(memory, value.shape, value.dtype, value.strides, start)
    return adopt(value, memories[0].device)


NULL = register(NullDevice())
