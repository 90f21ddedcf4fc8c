"""`torch.device`: a device type and an index."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from ._dispatch.state import THREAD

# Devices that are registered (`_backends/base.py`) are added.
KNOWN_TYPES = ["cpu", "meta", "npu"]
# Types that stand for others: `torch_npu.contrib.transfer_to_npu` lets "cuda" mean "npu".
MEANT: dict[str, str] = {}
# Named by programs that probe for hardware; building the value is allowed, using it is not.
FOREIGN_TYPES = ("cuda", "mps", "xpu", "hpu", "mtia", "xla", "vulkan", "ipu", "privateuseone")


class device:
    """The place of a tensor's memory; as a context, the place of new tensors.

    >>> import mindtorch_v2 as torch
    >>> torch.device("npu:0").index
    0
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __new__(cls, device: Any = None, index: int | None = None, *, type: Any = None) -> Any:
        return object.__new__(cls)

    def __init__(self, device: Any = None, index: int | None = None, *, type: Any = None) -> None:
        device = type if device is None else device
        if device is None:
            raise TypeError("device() received an invalid combination of arguments - got (), but expected a device or "
                            "a string")
        if index is not None and not isinstance(index, int):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if isinstance(device, self.__class__):
            if index is not None:
                raise TypeError("device(): argument 'type' (position 1) must be str, not torch.device")
            kind, number = device.type, device.index
        elif isinstance(device, int):
            kind, number = "npu", device
        elif isinstance(device, str):
            if not device:
                raise RuntimeError("Device string must not be empty")
            kind, separator, text = device.partition(":")
            if separator and not (text.isdigit() and (text == "0" or not text.startswith("0"))):
                raise RuntimeError(f"Invalid device string: '{device}'")
            number = int(text) if separator else None
            if number is not None and number > 1 << 31:
                raise RuntimeError(f"Could not parse device index '{text}' in device string '{device}'")
            kind = MEANT.get(kind, kind)
            if kind not in KNOWN_TYPES and kind not in FOREIGN_TYPES:
                raise RuntimeError(
                    f"Expected one of {', '.join((*KNOWN_TYPES, *FOREIGN_TYPES))} device type at start of "
                    f"device string: {kind}"
                )
        else:
            raise TypeError("device() received an invalid combination of arguments - got "
                            f"({device.__class__.__name__}), but expected a device or a string")
        if index is not None:
            if number is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {device}")
            number = index
        if number is not None and number < 0:
            raise RuntimeError(f"Device index must not be negative, got {number}")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", number)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        suffix = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{suffix})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        """Make new tensors of this thread here until the context ends."""
        state = THREAD.state
        state.outer_devices.append(state.default_device)
        state.default_device = self
        return self

    def __exit__(self, *exc: object) -> None:
        state = THREAD.state
        state.default_device = state.outer_devices.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that runs in the context, as a decorator."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return run

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type,) if self.index is None else (self.type, self.index))


CPU = device("cpu")
META = device("meta")


DeviceLike: TypeAlias = device | str | int | None  # what a device can be given as; None is the default one


def as_device(value: Any) -> device:
    """A device from a device, a string or None (the CPU)."""
    if value is None:
        return CPU
    if isinstance(value, device):
        return value
    return device(value)


def on_two_devices(first: device, other: device) -> RuntimeError:
    """The error for tensors on two devices that should be on one."""
    if "meta" in (first.type, other.type):
        return RuntimeError(f"Tensor on device {other} is not on the expected device {first}!")
    return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {first} and "
                        f"{other}!")
