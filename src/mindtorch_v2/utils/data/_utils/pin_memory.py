"""Batches in pinned memory, from which a device copies while the program goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._device import DeviceLike
from ...._tensor import Tensor
from .collate import _like_mapping, _like_sequence


def pin_memory(data: Any, device: DeviceLike = None) -> Any:
    """The same data with its tensors in pinned memory; an object with a `pin_memory` of its own is asked for it."""
    if isinstance(data, Tensor):
        return data.pin_memory(device)
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, Sequence):
        return _like_sequence(data, [pin_memory(value, device) for value in data])
    return data
