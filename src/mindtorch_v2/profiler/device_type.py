"""`DeviceType`: where an event ran, numbered as PyTorch numbers device types."""

from __future__ import annotations

from enum import Enum, IntEnum


class DeviceType(IntEnum):
    """A device type that also equals its own name.

    >>> DeviceType.CPU == "CPU", DeviceType.PrivateUse1 == "NPU", DeviceType(20)
    (True, True, <DeviceType.PrivateUse1: 20>)

    The hash is the number's, so members and their numbers are the same dictionary key; a string that compares equal
    is not. Use `event["device_type"]`, a plain string, as a key where names are wanted.
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
        """The name users know: Ascend devices plug in as PrivateUse1 and are called NPU."""
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
