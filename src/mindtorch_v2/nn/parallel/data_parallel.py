"""`DataParallel` without accelerators: the module itself, as PyTorch does it on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...profiler.record_function import record_function
from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls its module; there are no devices to divide a batch among."""

    def __init__(self, module: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                 dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's output."""
        with record_function("DataParallel.forward"):
            return self.module(*inputs, **kwargs)


def data_parallel(module: Any, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                  dim: int = 0, module_kwargs: dict[str, Any] | None = None) -> Any:
    """The module's output."""
    arguments = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return module(*arguments, **(module_kwargs or {}))
