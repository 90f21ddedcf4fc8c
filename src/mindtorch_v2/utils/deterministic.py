"""`torch.utils.deterministic`: whether new memory is filled while deterministic algorithms are wanted."""

from __future__ import annotations

import sys
import types

from .._deterministic import Deterministic


class _Switches(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether memory that `torch.empty` and its kin make is filled in deterministic mode."""
        return Deterministic.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        Deterministic.fill = mode


sys.modules[__name__].__class__ = _Switches
