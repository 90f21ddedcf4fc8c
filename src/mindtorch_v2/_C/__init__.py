"""`torch._C`: names of PyTorch's C++ side that Python programs use. Only what has a meaning here is present."""

from __future__ import annotations

import importlib
from typing import Any

from .._device import device
from .._dtype import dtype
from .._random import Generator, default_generator
from .._shape import Size

__all__ = ["Generator", "Size", "_autograd", "_profiler", "default_generator", "device", "dtype"]

_SUBMODULES = ("_autograd", "_profiler")


def _get_privateuse1_backend_name() -> str:
    """How the device type that PyTorch keeps for others is called here."""
    return "npu"


class _GraphExecutor:
    """Settings of what runs compiled graphs, of which there are none here."""

    optimize = True


def _get_graph_executor_optimize(new_settings: bool | None = None) -> bool:
    """Whether compiled graphs would be optimized; with an argument, say so from now on and return what was before."""
    before = _GraphExecutor.optimize
    if new_settings is not None:
        _GraphExecutor.optimize = bool(new_settings)
    return before


def _set_graph_executor_optimize(optimize: bool) -> None:
    """Say whether compiled graphs would be optimized. Nothing is compiled, so that this changes nothing."""
    _GraphExecutor.optimize = bool(optimize)


def _log_api_usage_once(event: str) -> None:
    """PyTorch can be built to report which of its parts are used; this runtime reports nothing."""


# Names whose modules a program without them need not load.
_ELSEWHERE = {"_AutoDispatchBelowAutograd": ("_library.definition", "below_autograd"),
              "DisableTorchFunction": ("_dispatch.overriding", "DisableTorchFunction"),
              "DisableTorchFunctionSubclass": ("_dispatch.overriding", "DisableTorchFunctionSubclass"),
              "Tag": ("_library.tags", "Tag"), "_disabled_torch_function_impl": ("_tensor", "DISABLED")}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        module, attribute = _ELSEWHERE[name]
        return getattr(importlib.import_module(f"{__package__.rpartition('.')[0]}.{module}"), attribute)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}': this runtime has no C++ side, and only the "
                         "names of it that Python programs are known to need")
