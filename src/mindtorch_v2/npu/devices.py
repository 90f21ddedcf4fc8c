"""Which NPUs there are, and which one a thread works on."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from .._backends.npu import runtime
from .._backends.npu.memory import allocator
from .._backends.npu.stream import index_of
from .._device import DeviceLike
from .._tensor import Tensor

AI_CORES, VECTOR_CORES, L2_SIZE = 0, 1, 2


def is_available() -> bool:
    """Whether there is an NPU that can be used."""
    return runtime.unavailable_reason() is None


def unavailable_reason() -> str | None:
    """Why there is no NPU, in a sentence; None if there is one."""
    return runtime.unavailable_reason()


def device_count() -> int:
    """How many NPUs there are."""
    return runtime.device_count()


def init() -> None:
    """Start the runtime; it starts by itself when it is needed."""
    runtime.initialize()


def is_initialized() -> bool:
    """Whether the runtime has been started in this process."""
    return runtime.PROCESS.initialized and not runtime.PROCESS.forked


def _index(where: Any) -> int:
    index = index_of(where)
    runtime.bind(index)
    return index


def set_device(device: DeviceLike) -> None:
    """Make an NPU the one that new tensors of this thread are on."""
    if isinstance(device, int) and device < 0:
        return
    runtime.choose(_index(device))


def current_device() -> int:
    """The number of the thread's NPU."""
    runtime.initialize()
    return runtime.current()


class device:
    """A block in which an NPU is the thread's; None or -1 changes nothing."""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = -1 if device is None or device == -1 else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = runtime.current()
            runtime.choose(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            runtime.choose(self.prev_idx)


class device_of(device):
    """A block in which the NPU of a tensor is the thread's; a tensor elsewhere changes nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device.index if obj.device.type == "npu" else None)


def synchronize(device: DeviceLike = None) -> None:
    """Wait until an NPU has done all that was queued; errors of that work are raised here."""
    runtime.wait(_index(device), "aclrtSynchronizeDevice")


def get_device_name(device: DeviceLike = None) -> str:
    """The name of the chip; the simulator says that it is one."""
    index = _index(device)
    opened = runtime.bind(index)
    found = opened.raw("aclrtGetSocName")()
    name = found.decode() if found else "unknown NPU"
    return f"{name} (simulator)" if opened.simulated and "simulat" not in name.lower() else name


@dataclass(frozen=True)
class NPUDeviceProperties:
    """What is known of an NPU."""

    name: str
    total_memory: int
    cube_core_num: int
    vector_core_num: int
    L2_cache_size: int
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 0
    simulated: bool = False


def get_device_properties(device: DeviceLike = None) -> NPUDeviceProperties:
    """Name, memory and cores of an NPU."""
    index = _index(device)
    opened = runtime.bind(index)

    def capability(which: int) -> int:
        value = ctypes.c_int64()
        opened.call("aclGetDeviceCapability", index, which, ctypes.byref(value))
        return value.value

    cores = capability(AI_CORES)
    return NPUDeviceProperties(get_device_name(index), allocator(index).capacity()[1], cores, capability(VECTOR_CORES),
                               capability(L2_SIZE), multi_processor_count=cores, simulated=opened.simulated)


def get_device_capability(device: DeviceLike = None) -> None:
    """None: NPUs have no compute capability as CUDA devices have."""
    _index(device)


def can_device_access_peer(device: DeviceLike, peer_device: Any) -> bool:
    """Whether one NPU can reach another's memory."""
    here, there = _index(device), _index(peer_device)
    can = ctypes.c_int32()
    runtime.bind(here).call("aclrtDeviceCanAccessPeer", ctypes.byref(can), here, there)
    return bool(can.value)


def utilization(device: DeviceLike = None) -> int:
    """How busy an NPU is, which the libraries that this runtime calls do not tell."""
    _index(device)
    raise NotImplementedError("torch.npu.utilization: the runtime's libraries do not tell; use the npu-smi tool")


def is_bf16_supported() -> bool:
    """Whether the NPU computes in bfloat16: all but the first generations do."""
    if not is_available():
        return False
    name = get_device_name()
    return not name.startswith(("Ascend910A", "Ascend910Pr", "Ascend310P", "Ascend910B ")) and "910ProB" not in name


