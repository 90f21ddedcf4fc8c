"""`torch._C`: names of PyTorch's C++ side that Python programs use. Only what has a meaning here is present."""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .._device import device
from .._dispatch.overriding import STATE
from .._dispatch.registry import public_names
from .._dispatch.state import THREAD
from .._dtype import dtype
from .._random import Generator, default_generator
from .._refused import TORCH_NAMES, refused
from .._shape import Size
from .._tensor import DISPATCHING, Tensor

__all__ = ["Generator", "Size", "_autograd", "_profiler", "default_generator", "device", "dtype"]

_SUBMODULES = ("_autograd", "_distributed_c10d", "_distributed_rpc", "_fft", "_functions", "_linalg", "_nn",
               "_profiler", "_special")


def _get_privateuse1_backend_name() -> str:
    """How the device type that PyTorch keeps for others is called here."""
    return "npu"


def _get_cpu_capability() -> str:
    """The instructions that the kernels use."""
    found: str = importlib.import_module(f"{__package__.rpartition('.')[0]}.backends.cpu").get_cpu_capability()
    return found


def _len_torch_function_stack() -> int:
    """How many modes take functions over in this thread."""
    return len(STATE.modes)


class _VariableFunctionsClass:
    """The functions of `torch` that are ops, under the name of their class in PyTorch."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[__name__.partition(".")[0]], name)

    def __dir__(self) -> list[str]:
        return public_names("f")


_VariableFunctions = _VariableFunctionsClass()


def _get_function_stack_at(level: int) -> Any:
    """One of the modes that take functions over in this thread, the outermost first."""
    return STATE.modes[level]


def _get_dispatch_stack_at(level: int) -> Any:
    """One of the dispatch modes that are active in this thread, the outermost first."""
    stack = importlib.import_module(f"{__package__.rpartition('.')[0]}.utils._python_dispatch")
    return stack._get_current_dispatch_mode_stack()[level]


def _dispatch_isTensorSubclassLike(tensor: Tensor) -> bool:
    """Whether ops must treat a tensor as one of a class with `__torch_dispatch__`."""
    return type(tensor) in DISPATCHING


def _len_torch_dispatch_stack() -> int:
    """How many dispatch modes are active in this thread."""
    stack = importlib.import_module(f"{__package__.rpartition('.')[0]}.utils._python_dispatch")
    return len(stack._get_current_dispatch_mode_stack())


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs now in this thread, -1 outside of any."""
    walk = THREAD.state.walk
    return -1 if walk is None else walk.task


def _current_autograd_node() -> Any:
    """The node that the backward pass of this thread runs now, None outside of any."""
    walk = THREAD.state.walk
    return None if walk is None else walk.current


def _current_graph_task_execution_order() -> list[Any]:
    """The nodes of the backward pass that runs now, in the order in which they are run."""
    walk = THREAD.state.walk
    if walk is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if __getattr__("_is_multithreading_enabled")():
        raise RuntimeError("get_current_graph_task_execution_order expects the current backward to be executed with "
                           "multithreading disabled, e.g. by running:\n\n>>> with "
                           "torch.autograd.set_multithreading_enabled(False):\n...     torch.autograd.grad(...)\n")
    return walk.planned()


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that runs now runs a node."""
    walk = THREAD.state.walk
    if walk is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return walk.will_reach(node)


class _WeakTensorRef:
    """Whether a tensor is still there."""

    def __init__(self, tensor: Any) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether nobody holds the tensor any more."""
        return self._reference() is None


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


def _setting(name: str) -> Callable[[bool], bool]:
    """A switch of TorchScript's: it can be set, answers what it was before, and changes nothing."""
    kept = [False]

    def set_it(value: bool) -> bool:
        before, kept[0] = kept[0], bool(value)
        return before

    set_it.__name__ = name
    return set_it


_jit_set_profiling_executor = _setting("_jit_set_profiling_executor")
_jit_set_profiling_mode = _setting("_jit_set_profiling_mode")
_jit_set_texpr_fuser_enabled = _setting("_jit_set_texpr_fuser_enabled")
_jit_override_can_fuse_on_cpu = _setting("_jit_override_can_fuse_on_cpu")
_jit_override_can_fuse_on_gpu = _setting("_jit_override_can_fuse_on_gpu")


def _log_api_usage_once(event: str) -> None:
    """PyTorch can be built to report which of its parts are used; this runtime reports nothing."""


def _get_tracing_state() -> None:
    """None: nothing is being traced."""
    return


def _is_tracing() -> bool:
    """False: programs are not traced."""
    return False


def _are_functorch_transforms_active() -> bool:
    """False: `vmap` and `grad` call the function with ordinary tensors."""
    return False


def _get_cudnn_enabled() -> bool:
    """False: it is a library of CUDA's."""
    return False


_has_xpu = _has_cuda = _has_mps = has_mkl = has_openmp = has_cuda = has_mps = has_xpu = False
has_lapack = has_spectral = True


def _is_torch_function_mode_enabled() -> bool:
    """Whether a `TorchFunctionMode` is active."""
    return bool(STATE.modes) and not STATE.all_off


def _is_alias_of(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors are views of one storage."""
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _get_accelerator(check: bool = False) -> device:
    """The device type of an accelerator that is there; without one, the CPU."""
    return device("cpu")


def _is_torch_function_enabled() -> bool:
    """Whether classes may take functions over."""
    return not STATE.classes_off


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes may."""
    return bool(STATE.all_off)


def _get_default_device() -> str:
    """The default device of new tensors."""
    return "cpu"


def _set_math_sdp_allow_fp16_bf16_reduction(flag: bool) -> None:
    """Allow sums of half precision inside attention, which is computed in single precision here."""


# Names whose modules a program without them need not load.
_ELSEWHERE = {
    "_ConvBackend": ("_C._convolution", "_ConvBackend"), "_select_conv_backend": ("_C._convolution",
                                                                                  "_select_conv_backend"),
    "PyTorchFileReader": ("_serialization._record_files", "PyTorchFileReader"),
    "PyTorchFileWriter": ("_serialization._record_files", "PyTorchFileWriter"),
    "_is_fwd_grad_enabled": ("_autograd.forward", "is_fwd_grad_enabled"),
              "_set_fwd_grad_enabled": ("_autograd.forward", "set_fwd_grad_enabled"),
              "_set_grad_enabled": ("_autograd.grad_mode", "set_grad"),
              "_is_multithreading_enabled": ("autograd", "is_multithreading_enabled"),
              "_is_view_replay_enabled": ("autograd", "is_view_replay_enabled"),
              "_is_grad_layout_enforcement_enabled": ("autograd._engine_names", "_is_grad_layout_enforcement_enabled"),
              "_set_grad_layout_enforcement_enabled": ("autograd._engine_names",
                                                       "_set_grad_layout_enforcement_enabled"),
              "_ImperativeEngine": ("autograd.variable", "ImperativeEngine"),
              "_increment_version": ("autograd.graph", "increment_version"),
              "is_grad_enabled": ("_autograd.grad_mode", "is_grad_enabled"),
              "is_inference_mode_enabled": ("_autograd.grad_mode", "is_inference_mode_enabled"),
              "_InferenceMode": ("_autograd.grad_mode", "inference_mode"),
              "_enter_dual_level": ("_autograd.forward", "enter_dual_level"),
              "_exit_dual_level": ("_autograd.forward", "exit_dual_level"),
              "_LinAlgError": ("_backends.cpu.linalg", "LinAlgError"),
              "_AutoDispatchBelowAutograd": ("_library.definition", "below_autograd"),
              "_get_autograd_fallback_mode": ("_library.definition", "get_autograd_fallback_mode"),
              "_set_autograd_fallback_mode": ("_library.definition", "set_autograd_fallback_mode"),
              "_DisableFuncTorch": ("_library.keys", "BelowTransforms"),
              "DisableTorchFunction": ("_dispatch.overriding", "DisableTorchFunction"),
              "DisableTorchFunctionSubclass": ("_dispatch.overriding", "DisableTorchFunctionSubclass"),
              "DispatchKey": ("_library.keys", "DispatchKey"), "DispatchKeySet": ("_library.keys", "DispatchKeySet"),
              "_ExcludeDispatchKeyGuard": ("_library.keys", "ExcludeKeys"), "_TensorMeta": ("_tensor", "TensorMeta"),
              "TensorBase": ("_tensor", "Tensor"), "_TensorBase": ("_tensor", "Tensor"),
              "parse_schema": ("_library.schema", "parse_signature"),
              "FunctionSchema": ("_library.schema", "FunctionSchema"), "Argument": ("_library.schema", "Argument"),
              "Tag": ("_library.tags", "Tag"), "_disabled_torch_function_impl": ("_tensor", "DISABLED"),
              "_disabled_torch_dispatch_impl": ("_tensor", "DISABLED_DISPATCH"),
              "_EnableTorchFunction": ("_dispatch.overriding", "EnableTorchFunction"),
              "_TorchFunctionState": ("_dispatch.overriding", "TorchFunctionState"),
              "_get_torch_function_state": ("_dispatch.overriding", "get_torch_function_state"),
              "_set_torch_function_state": ("_dispatch.overriding", "set_torch_function_state"),
              "_DisableTorchDispatch": ("_dispatch.dispatch_modes", "DisableTorchDispatch")}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        module, attribute = _ELSEWHERE[name]
        return getattr(importlib.import_module(f"{__package__.rpartition('.')[0]}.{module}"), attribute)
    if name in TORCH_NAMES:
        return refused(name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}': this runtime has no C++ side, and only the "
                         "names of it that Python programs are known to need")
