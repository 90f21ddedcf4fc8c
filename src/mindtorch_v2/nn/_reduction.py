"""`torch.nn._reduction`: names and numbers of reductions of losses."""

from __future__ import annotations

from .functional._reduction import get_enum, legacy_get_string, resolve

__all__ = ["get_enum", "legacy_get_string", "resolve"]


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number that the old pair of flags stands for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
