"""`torch.utils._foreach_utils`: which tensors one kernel can process together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from .._device import device
from .._dtype import dtype

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Device types with one kernel for a list of tensors: none, `_foreach_` functions take them one by one."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """Types of devices that have a kernel for a whole step of an optimizer."""
    return ["cpu"]


def _group_tensors_by_device_and_dtype(
        tensorlistlist: Sequence[Sequence[Any]],
        with_indices: bool = False) -> dict[tuple[device, dtype], tuple[list[list[Any]], list[int]]]:
    """Lists of equal length, cut into groups in which the first list's tensors have one device and dtype."""
    groups: dict[tuple[device, dtype], tuple[list[list[Any]], list[int]]] = defaultdict(
        lambda: ([[] for _ in tensorlistlist], []))
    for position, tensors in enumerate(zip(*tensorlistlist, strict=True)):
        first = next(one for one in tensors if one is not None)
        lists, positions = groups[first.device, first.dtype]
        for members, tensor in zip(lists, tensors):
            members.append(tensor)
        if with_indices:
            positions.append(position)
    return dict(groups)


def _device_has_foreach_support(device: device) -> bool:
    return device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors: list[Any], device: device) -> bool:
    return _device_has_foreach_support(device) and all(one is None or hasattr(one, "dtype") for one in tensors)
