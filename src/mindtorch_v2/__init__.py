"""Run and profile PyTorch programs without PyTorch: `import mindtorch_v2 as torch`."""

from __future__ import annotations

import importlib as _importlib
import warnings as _warnings
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
from ._construct import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor
from ._device import device
from ._dispatch import dispatcher as _dispatcher
from ._dispatch.namespace import find as _find
from ._dispatch.namespace import load_late as _load_late
from ._dispatch.registry import is_public as _is_public
from ._dispatch.registry import public_names as _public_names
from ._dtype import ALL_DTYPES as _ALL_DTYPES
from ._dtype import dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._memory_format import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from ._random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from ._shape import Size
from ._tensor import Tensor, is_tensor, strided
from ._tensor_str import get_printoptions, set_printoptions

# The PyTorch version whose API this follows, then our own; programs compare the former.
__version__ = "2.13.0+mindtorch.0.1.0"

# PyTorch computes inf and nan silently. NumPy's error state is per thread and starts anew in each, so other threads
# are covered by the filter.
_np.seterr(all="ignore")
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mindtorch_v2\b")

for _dtype in _ALL_DTYPES:
    globals()[_dtype.name] = _dtype
    for _alias in _dtype.aliases:
        globals()[_alias] = _dtype

_tensor_methods.attach()
_methods.attach(_ops.LATE_METHODS)

inf, nan, pi, e = _np.inf, _np.nan, _np.pi, _np.e

# Loaded when first asked for, so that importing the package stays cheap.
_SUBMODULES = frozenset({
    "amp", "autograd", "backends", "cpu", "cuda", "distributed", "fft", "hub", "jit", "linalg", "multiprocessing",
    "nn", "npu", "ops", "optim", "profiler", "random", "serialization", "special", "testing", "torch_alias", "types",
    "utils", "version",
})
_FROM_SUBMODULES = {"load": "serialization", "save": "serialization"}
_FROM_SUBMODULES.update(dict.fromkeys((
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "is_storage", "numel", "typename"), "_legacy"))
_FROM_SUBMODULES.update(dict.fromkeys((
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "use_deterministic_algorithms"), "_settings"))
_FROM_SUBMODULES.update({"autocast": "amp", "compile": "_compile", "get_autocast_dtype": "amp",
                         "is_autocast_enabled": "amp"})


def _is_function(name: str) -> bool:
    return _is_public(name, "f")


def __getattr__(name: str) -> Any:
    found: Any
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _FROM_SUBMODULES:
        found = getattr(_importlib.import_module(f"{__name__}.{_FROM_SUBMODULES[name]}"), name)
    elif _is_function(name) or (not name.startswith("__") and _load_late() and _is_function(name)):
        found = _find(name)
    else:
        raise AttributeError(f"module 'torch' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    _load_late()
    return sorted({*globals(), *_public_names("f"), *_SUBMODULES, *_FROM_SUBMODULES})
