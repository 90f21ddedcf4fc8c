"""`torch.backends.quantized`: there are no quantized tensors here, so there is no engine that computes with them."""

from __future__ import annotations

import sys
from types import ModuleType

supported_engines = ["none"]


class _Engine(ModuleType):
    """This module, whose `engine` can be asked for and set to what is there."""

    @property
    def engine(self) -> str:
        """The engine in use."""
        return "none"

    @engine.setter
    def engine(self, name: str) -> None:
        if name not in supported_engines:
            raise RuntimeError(f"quantized engine {name} is not supported: this runtime has no quantized tensors")


sys.modules[__name__].__class__ = _Engine
