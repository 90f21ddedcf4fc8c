"""The devices of a trace: their numbers and names in PyTorch, and what is known about each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .codes import Code


class DeviceType(Code):
    """A device type that also equals its own name.

    >>> DeviceType.CPU == "CPU", DeviceType.PrivateUse1 == "NPU", DeviceType(20)
    (True, True, <DeviceType.PrivateUse1: 20>)

    The hash is the number's, so a member and its number are the same dictionary key; an equal string is not. To use
    names as keys, use `event["device_type"]`, which is a plain string.
    """

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    MTIA = 19
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    PrivateUse1 = 20

    @property
    def label(self) -> str:
        """The name users know: Ascend devices use PrivateUse1 and are called NPU."""
        return "NPU" if self is DeviceType.PrivateUse1 else self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other in (self.name, self.label)
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__
    # IntEnum prints as a bare number from Python 3.11 on; reprs and group keys need the name on every version.
    __str__ = Enum.__str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


@dataclass(frozen=True)
class DeviceFacts:
    """What views and files need to know about a device type."""

    word: str = ""  # in `torch.device("npu:0")`
    memory: str = ""  # its memory counts as memory of the "cpu" or of the "device"
    timed: bool = False  # its events have device time
    summed: bool = False  # its rows count in the table's total of device time
    runtime: str = ""  # category of the host's calls that queue work, in a Chrome trace


_HOST = DeviceFacts("cpu", "cpu")
DEVICES: dict[DeviceType, DeviceFacts] = {
    **{member: DeviceFacts() for member in DeviceType},
    DeviceType.CPU: _HOST,
    DeviceType.MKLDNN: DeviceFacts("mkldnn", "cpu"),
    DeviceType.IDEEP: DeviceFacts("ideep", "cpu"),
    DeviceType.CUDA: DeviceFacts("cuda", "device", True, True, "cuda_runtime"),
    DeviceType.HIP: DeviceFacts("hip", "device"),
    DeviceType.XPU: DeviceFacts("xpu", "device", True, True, "xpu_runtime"),
    DeviceType.MTIA: DeviceFacts("mtia", "", True, True, "mtia_runtime"),
    DeviceType.HPU: DeviceFacts("hpu", "", True, False, "hpu_runtime"),
    DeviceType.Meta: DeviceFacts("meta"),
    DeviceType.PrivateUse1: DeviceFacts("npu", "device", True, True, "privateuse1_runtime"),
}
TIMED = tuple(kind for kind, facts in DEVICES.items() if facts.timed)
CPU_MEMORY = tuple(kind for kind, facts in DEVICES.items() if facts.memory == "cpu")
DEVICE_MEMORY = tuple(kind for kind, facts in DEVICES.items() if facts.memory == "device")


def device_name(kind: int, index: int) -> str:
    """`cpu`, `npu:0`."""
    known = kind in set(DeviceType)
    name = (DEVICES[DeviceType(kind)].word if known else "") or f"device{kind}"
    return name if index < 0 or kind == DeviceType.CPU else f"{name}:{index}"
