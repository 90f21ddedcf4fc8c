"""`torch.autograd`: gradients on demand."""

from __future__ import annotations

import importlib
from typing import Any

from .._autograd.anomaly import detect_anomaly, set_detect_anomaly
from .._autograd.api import backward, grad
from .._autograd.function import Function
from .._autograd.grad_mode import _GradMode, enable_grad, inference_mode, no_grad, set_grad_enabled
from ..profiler.record_function import _record_function_with_args_enter, _record_function_with_args_exit
from . import function, graph, profiler, profiler_util
from .gradcheck import gradcheck, gradgradcheck  # the function hides the module, as in PyTorch
from .graph import GradientEdge, _unsafe_preserve_version_counter
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "_calculate_shape",
    "_force_original_view_tracking",
    "_record_function_with_args_enter",
    "_record_function_with_args_exit",
    "_unsafe_preserve_version_counter",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "function",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "profiler",
    "profiler_util",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

# Loaded when first asked for: few programs touch them.
_SUBMODULES = ("_functions", "anomaly_mode", "forward_ad", "functional", "grad_mode", "profiler_legacy", "variable")
_LATE = dict.fromkeys(("DeviceType", "_KinetoEvent", "_ProfilerResult", "_add_metadata_json", "_disable_profiler",
                       "_enable_profiler", "_kineto_step", "_prepare_profiler", "_profiler_enabled", "_profiler_type",
                       "_supported_activities", "_toggle_collection_dynamic", "kineto_available"), "._C._autograd")
_LATE.update(dict.fromkeys(("SavedTensor", "_get_sequence_nr", "_pop_saved_tensors_default_hooks",
                            "_push_saved_tensors_default_hooks"), "._C._autograd"))
_LATE.update(dict.fromkeys(("_engine_run_backward", "_is_checkpoint_valid", "_make_grads",
                            "_tensor_or_tensors_to_tuple", "enforce_grad_layout_policy", "is_tensor_like"),
                           ".autograd._engine_names"))
_LATE["NestedIOFunction"] = ".autograd.function"
_LATE.update(dict.fromkeys(("ProfilerActivity", "ProfilerConfig", "ProfilerState"), "._C._profiler"))


class _Remembered(_GradMode):
    """A setting that changes nothing here; programs may ask for it."""

    held: list[bool]

    def __init__(self, mode: bool) -> None:
        self.prev, self.held[0] = self.held[0], bool(mode)
        self.mode = mode

    def clone(self) -> _Remembered:
        return type(self)(self.mode)

    def __call__(self, function: Any) -> Any:
        self.held[0] = self.prev
        return super().__call__(function)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.held[0] = self.prev


_MULTITHREADING = [True]


class set_multithreading_enabled(_Remembered):
    """Accepted for the programs that call it: backward runs in the thread that calls it."""

    held = _MULTITHREADING


def is_multithreading_enabled() -> bool:
    """The value of `set_multithreading_enabled`."""
    return _MULTITHREADING[0]


_VIEW_REPLAY = [False]


class _force_original_view_tracking(_Remembered):
    """Accepted for the programs that call it: which of two equal histories a view gets after its base was changed."""

    held = _VIEW_REPLAY


def is_view_replay_enabled() -> bool:
    """The value of `_force_original_view_tracking`."""
    return _VIEW_REPLAY[0]


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output, or of what an edge leads to, and of one gradient for it."""
    shape = output.node._input_metadata[output.output_nr].shape if isinstance(output, GradientEdge) else output.shape
    return shape, grad.shape[1:] if is_grads_batched else grad.shape


def __getattr__(name: str) -> Any:
    if name == "torch":
        return importlib.import_module(__name__.partition(".")[0])
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name], __name__.partition(".")[0]), name)
    raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")
