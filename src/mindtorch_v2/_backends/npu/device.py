"""The Ascend NPU as a device of this runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._device import device
from ..._dispatch.promotion import stored_scalar
from ..._shape import numel
from ..base import STAND_INS, Device, Kernel, once, register
from ..geometry import is_row_major, span_bytes
from . import composed, kernels, runtime
from .arrays import BOOL, NpuArray, contiguous, converted, expanded, is_whole, new
from .call import CALLS
from .generator import NpuEngine
from .host import PINNED
from .library import Unavailable, library
from .memory import Memory, allocator
from .runtime import bind, device_count, unavailable_reason
from .stream import DEVICE, Event, Stream, current_stream, stream_of

Shape = tuple[int, ...]
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3


class NpuDevice(Device):
    """Ascend NPUs: memory of their own, work queued on streams."""

    type = "npu"
    array_class = NpuArray
    profiler_type = 20
    profiler_name = "NPU"

    def count(self) -> int:
        return device_count()

    def current(self) -> int:
        return runtime.current()

    def resolve(self, where: device) -> device:
        index = runtime.current() if where.index is None else where.index
        if index >= device_count():
            bind(index)  # raises
        return DEVICE(index)

    # -- memory --------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, where: device) -> Memory:
        index = self.resolve(where).index or 0
        bind(index)
        return allocator(index).take(nbytes, stream_of(index).npu_stream)

    # -- copies --------------------------------------------------------------------------------------------------------

    def from_host(self, array: np.ndarray, where: device, non_blocking: bool = False) -> NpuArray:
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array).reshape(array.shape)
        made = self.empty(array.shape, array.dtype, where)
        if array.nbytes:
            index = made.memory.device.index
            self._copy_bytes(made.memory.pointer, array.ctypes.data, array.nbytes, HOST_TO_DEVICE, index,
                             PINNED.holds(array) if non_blocking else None)
        return made

    def to_host(self, array: NpuArray, non_blocking: bool = False) -> np.ndarray:
        if not is_whole(array):
            if array.dtype.kind == "c":  # no operator gathers its elements
                return np.ascontiguousarray(self._seen_on_host(array)[1])
            array = contiguous(array)
        item = array.dtype.itemsize
        row_major = is_row_major(array.shape, array.strides, item)
        nbytes = span_bytes(array.shape, array.strides, item)
        flat = PINNED.take(nbytes) if non_blocking and nbytes else np.empty(nbytes, np.uint8)
        if nbytes:
            block = PINNED.holds(flat) if non_blocking else None
            self._copy_bytes(flat.ctypes.data, array.data_ptr, nbytes, DEVICE_TO_HOST, array.memory.device.index, block)
        if row_major:
            return flat.view(array.dtype).reshape(array.shape) if nbytes else np.empty(array.shape, array.dtype)
        return np.ndarray(array.shape, array.dtype, flat, 0, array.strides)

    def _copy_bytes(self, to: int, source: int, nbytes: int, kind: int, index: int, pinned: int | None) -> None:
        """Copy between host and device; returns when it is done, unless the host's memory is pinned and stays alive."""
        opened = bind(index)
        stream = stream_of(index)
        opened.call("aclrtMemcpyAsync", to, nbytes, source, nbytes, kind, stream.npu_stream)
        if pinned is None:
            stream.synchronize()
        else:
            PINNED.used(pinned, stream)

    def copy(self, target: NpuArray, source: NpuArray, non_blocking: bool = False) -> NpuArray:
        if target.memory.device.index != source.memory.device.index:
            return self._copy_across(target, source)
        source = expanded(source, target.shape)
        if not target.size:
            return target
        if target.dtype == source.dtype and target.strides == source.strides and is_whole(target):
            nbytes = numel(target.shape) * target.dtype.itemsize
            index = target.memory.device.index
            bind(index).call("aclrtMemcpyAsync", target.data_ptr, nbytes, source.data_ptr, nbytes, DEVICE_TO_DEVICE,
                             stream_of(index).npu_stream)
            return target
        if "c" in (target.dtype.kind, source.dtype.kind) and kernels.fallback_wanted():
            return self._copy_on_host(target, source)
        CALLS.InplaceCopy(target, source)
        return target

    def _seen_on_host(self, array: NpuArray) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the memory that an array is in, on the host, and the array in them."""
        flat = self.to_host(array.whole())
        return flat, np.ndarray(array.shape, array.dtype, flat, array.offset, array.strides)

    def _copy_on_host(self, target: NpuArray, source: NpuArray) -> NpuArray:
        """Complex numbers, which no operator copies."""
        flat, there = self._seen_on_host(target)
        values = self.to_host(source)
        there[...] = values if target.dtype.kind == "c" else values.real
        self.copy(target.whole(), self.from_host(flat, target.device))
        return target

    def _copy_across(self, target: NpuArray, source: NpuArray) -> NpuArray:
        """Copy from one NPU to another, directly if they can reach each other."""
        there, here = target.memory.device.index, source.memory.device.index
        source = contiguous(converted(source, target.dtype))
        stream_of(here).synchronize()
        if not source.size:
            return target
        landed = new(target, source.shape)
        if runtime.peers(there, here):
            self._copy_bytes(landed.data_ptr, source.data_ptr, source.nbytes, DEVICE_TO_DEVICE, there, None)
        else:
            host = self.to_host(source)
            self._copy_bytes(landed.data_ptr, host.ctypes.data, host.nbytes, HOST_TO_DEVICE, there, None)
        return self.copy(target, landed)

    # -- fills ---------------------------------------------------------------------------------------------------------

    def fill(self, array: NpuArray, value: Any) -> NpuArray:
        if isinstance(value, (np.ndarray, np.generic)):
            value = value.item()
        stored_scalar(value, array.dtype)  # refuses what the dtype cannot hold
        whole, array = array, once(array)
        if not array.size:
            return whole
        if not value and value is not None and is_whole(array) and str(value)[:1] != "-":
            nbytes = numel(array.shape) * array.dtype.itemsize
            index = array.memory.device.index
            bind(index).call("aclrtMemsetAsync", array.data_ptr, nbytes, 0, nbytes, stream_of(index).npu_stream)
            return whole
        CALLS.InplaceFillScalar(array, bool(value) if array.dtype == BOOL else value)
        return whole

    # -- random numbers, streams and events ----------------------------------------------------------------------------

    def new_engine(self, where: device) -> NpuEngine:
        return NpuEngine()

    def synchronize(self, index: int | None = None) -> None:
        index = runtime.current() if index is None else index
        runtime.wait(index, "aclrtSynchronizeDevice")

    def current_stream(self, index: int | None = None) -> Stream:
        return current_stream(index)

    def new_stream(self, index: int | None = None, priority: int = 0) -> Stream:
        return Stream(index, priority)

    def new_event(self, enable_timing: bool = False) -> Event:
        return Event(enable_timing)

    def record_stream(self, array: NpuArray, stream: Stream) -> None:
        allocator(array.memory.device.index).record_stream(array.memory, stream)

    # -- kernels -------------------------------------------------------------------------------------------------------

    def kernel(self, op: Any, form: str) -> Kernel | None:
        found = kernels.find(op, form)
        if found is None or not kernels.fallback_wanted():
            return found
        return kernels.complex_on_cpu(found, kernels.on_cpu(op, form, self.to_host, self.from_host, self.copy))

    def quick(self, op: Any, form: str, kernel: Kernel) -> Kernel:
        return kernels.quick(op, form, kernel)

    def foreach(self, key: str) -> Kernel | None:
        return composed.foreach(key)

    def missing(self, op: Any, form: str) -> Kernel:
        formula = STAND_INS[0](op.key)
        if formula is not None:
            return kernels.explained(op, formula)
        if "sparse" in op.key:
            raise NotImplementedError(f"Could not run 'aten::{op.key}' with arguments from the 'NPU' backend: it has "
                                      "no sparse tensors")
        if kernels.fallback_wanted():
            return kernels.on_cpu(op, form, self.to_host, self.from_host, self.copy)
        raise NotImplementedError(
            f"Could not run 'aten::{op.key}' with arguments from the 'NPU' backend: there is no kernel for it. Set "
            "MINDTORCH_NPU_FALLBACK=1 to run such ops on the CPU, with a warning for each")

    # -- what a profiler is told ---------------------------------------------------------------------------------------

    def activities(self) -> Any:
        from .activity import LOG

        return LOG

    def block(self, array: NpuArray) -> tuple[int, int, int]:
        memory: Any = array.memory
        return memory.pointer, memory._block.size, memory.device.index


def load() -> Device:
    """Register the device, or say why there is none."""
    reason = unavailable_reason()
    if reason is not None:
        raise RuntimeError(f"No NPU is available: {reason}")
    found = NpuDevice()
    composed.HOST.append(found.to_host)
    composed.TO_DEVICE.append(found.from_host)
    return register(found)


def simulated() -> bool:
    """Whether the libraries are the simulator's."""
    try:
        return library().simulated
    except Unavailable:
        return False



