"""Run and profile PyTorch programs without PyTorch: `import mindtorch_v2 as torch`."""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
import warnings as _warnings
from types import FunctionType as _FunctionType
from typing import Any

import numpy as _np

from . import _methods, _ops, _random, _tensor_methods
from ._autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._backends import meta as _meta
from ._backends import sparse_device as _sparse_device
from ._backends.cpu import device as _cpu_device
from ._construct import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor
from ._device import device
from ._dispatch import dispatcher as _dispatcher
from ._dispatch.namespace import LOOKUPS as _LOOKUPS
from ._dispatch.namespace import find as _find
from ._dispatch.namespace import load_late as _load_late
from ._dispatch.registry import is_public as _is_public
from ._dispatch.registry import public_names as _public_names
from ._dtype import ALL_DTYPES as _ALL_DTYPES
from ._dtype import FLOAT8 as _FLOAT8
from ._dtype import dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._memory_format import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from ._numpy_names import accept_axis as _accept_axis
from ._ops.late_names import METHODS as _LATE_METHODS
from ._outside import FINDER as _OUTSIDE
from ._random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from ._refused import TORCH_NAMES as _REFUSED
from ._refused import refused as _make_refused
from ._shape import Size
from ._tensor import Tensor, is_tensor, strided
from ._tensor_str import get_printoptions, set_printoptions
from .functional import NAMES as _SECOND_NAMES
from .torch_version import __version__

# PyTorch computes inf and nan silently. NumPy's error state is per thread and starts anew in each, so other threads
# are covered by the filter.
_np.seterr(all="ignore")
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mindtorch_v2\b")

for _dtype in (*_ALL_DTYPES, *_FLOAT8):
    globals()[_dtype.name] = _dtype
    for _alias in _dtype.aliases:
        globals()[_alias] = _dtype

if _OUTSIDE not in _sys.meta_path:
    _sys.meta_path.append(_OUTSIDE)

_tensor_methods.attach()
_methods.attach(_LATE_METHODS.split())

inf, nan, pi, e = _np.inf, _np.nan, _np.pi, _np.e

# Loaded when first asked for, so that importing the package stays cheap.
_SUBMODULES = frozenset({
    "_C", "_VF", "__config__", "__future__", "_custom_op", "_custom_ops", "_decomp", "_dynamo", "_environment",
    "_export", "_functorch", "_guards", "_higher_order_ops", "_inductor", "_linalg_utils", "_lobpcg", "_logging",
    "_lowrank", "_prims", "_prims_common", "_refs", "_subclasses", "_utils_internal",
    "_jit_internal", "_utils", "accelerator", "amp", "ao", "autograd", "backends", "compiler", "cpu", "cuda",
    "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx", "hub", "jit", "library",
    "linalg", "masked", "monitor", "mps", "mtia", "multiprocessing", "nested", "nn", "npu", "onnx", "ops", "optim",
    "overrides", "package", "profiler", "quantization", "quasirandom", "random", "return_types", "serialization",
    "signal", "sparse", "special", "storage", "testing", "torch_alias", "torch_version", "types", "utils", "version",
    "xpu",
})
_FROM_SUBMODULES = {"DispatchKey": "_library.keys", "DispatchKeySet": "_library.keys", "Tag": "_library.tags",
                    "_disable_dynamo": "_dynamo", "classes": "_classes", "load": "serialization",
                    "lobpcg": "_lobpcg", "save": "serialization",
                    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), "_serialization._record_files")}
_FROM_SUBMODULES.update(dict.fromkeys((
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "_tensor_classes", "numel", "typename"), "_legacy"))
_FROM_SUBMODULES.update(dict.fromkeys((
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "use_deterministic_algorithms"), "_settings"))
_FROM_SUBMODULES.update(dict.fromkeys((
    "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all", "_check_tensor_all_with",
    "_check_type", "_check_value", "_check_with"), "_checks"))
_FROM_SUBMODULES.update({"autocast": "amp", "compile": "_compile", "GradScaler": "amp", "vmap": "func"})
_FROM_SUBMODULES.update(dict.fromkeys((
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype",
    "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "is_autocast_ipu_enabled",
    "is_autocast_xla_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype", "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled"), "amp.settings"))
_FROM_SUBMODULES.update(dict.fromkeys((
    "AcceleratorError", "DisableTorchFunction", "DisableTorchFunctionSubclass", "Event", "FatalError", "JITException",
    "OutOfMemoryError", "Stream", "broadcast_shapes", "classproperty", "compiled_with_cxx11_abi", "cond",
    "cudnn_is_acceptable", "from_file", "get_device", "get_device_module", "has_lapack", "has_mkl", "has_openmp",
    "has_spectral", "init_num_threads", "is_conj", "is_distributed", "is_inference", "is_neg", "is_same_size",
    "is_signed", "is_vulkan_available", "jagged", "layout", "legacy_contiguous_format", "newaxis", "resize_as_",
    "_assert", "_debug_has_internal_overlap", "_is_zerotensor", "_mkldnn", "_segment_reduce", "_shape_as_tensor",
    "set_anomaly_enabled", "set_flush_denormal", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr",
    "sym_float", "sym_int",
    "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum", "to_dlpack", "zero_"), "_functions"))
_FROM_SUBMODULES.update(dict.fromkeys((
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "Storage",
    "StorageBase", "TypedStorage", "UntypedStorage", "_storage_classes", "is_storage"), "_typed_storage"))
_FROM_SUBMODULES.update(dict.fromkeys((
    "bit", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "chalf", "complex32", "float4_e2m1fn_x2",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int1", "int2", "int3",
    "int4", "int5", "int6", "int7", "per_channel_affine", "per_channel_affine_float_qparams", "per_channel_symmetric",
    "per_tensor_affine", "per_tensor_symmetric", "qint32", "qint8", "qscheme", "quint2x4", "quint4x2", "quint8",
    "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7"), "_named_dtypes"))


def _is_function(name: str) -> bool:
    return _is_public(name, "f")


def _called(name: str, function: Any) -> Any:
    """An op's function under its public name: programs compare it, and pickles find the function by it."""
    function.__module__ = f"{__name__}.functional" if name in _SECOND_NAMES else __name__
    if not _is_public(function.__qualname__, "f"):  # its own name in its file
        function.__name__ = function.__qualname__ = name
    return function


def __getattr__(name: str) -> Any:
    found: Any
    if name == "torch":  # PyTorch's module has its own name inside, which libraries use by mistake
        return _importlib.import_module(__package__)
    if name in _SUBMODULES:
        found = _importlib.import_module(f"{__package__}.{name}")
        if __name__ != __package__:  # the package stands in for `torch`
            _importlib.import_module(f"{__package__}.torch_alias").give_names(outside=True)
        return found
    if name in _FROM_SUBMODULES:
        found = getattr(_importlib.import_module(f"{__package__}.{_FROM_SUBMODULES[name]}"), name)
        if isinstance(found, _FunctionType) and _FROM_SUBMODULES[name].startswith("_"):
            _called(name, found)
    elif _is_function(name) or (_load_late(name) and _is_function(name)):
        function = _find(name)
        found = function if function is None else _called(name, _accept_axis(name, function))
    elif name in _REFUSED:
        found = _make_refused(name)
    elif (absent := _importlib.import_module(f"{__package__}._library.absent_ops").look_up(name)) is not None:
        found = absent
    else:
        raise AttributeError(f"module 'torch' has no attribute '{name}'")
    globals()[name] = found
    for noted in _LOOKUPS:
        noted(name, found)
    return found


def __dir__() -> list[str]:
    _load_late()
    return sorted({*globals(), *_public_names("f"), *_SUBMODULES, *_FROM_SUBMODULES, *_REFUSED})
