"""Process-wide settings of PyTorch programs; most have no effect here, as their docstrings say."""

from __future__ import annotations

import warnings
from typing import Any

from ._backends.cpu import blas, providers
from ._deterministic import Deterministic
from ._device import CPU, DeviceLike, as_device, device
from ._dispatch.state import THREAD
from ._dtype import dtype, set_default_dtype
from ._legacy import LegacyType, type_by_name
from ._warn import Always, warn_once


class _Settings:
    """What was set."""

    threads = providers.first_threads()
    interop_threads = threads
    matmul_precision = "highest"


def _thread_count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if value <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return value


def get_num_threads() -> int:
    """What `set_num_threads` was given, at first OMP_NUM_THREADS or the number of processors this process may use."""
    return _Settings.threads


def set_num_threads(num: int) -> None:
    """How many threads the C kernels use from now on, and NumPy's BLAS, which does linear algebra and float64."""
    _Settings.threads = _thread_count("set_num_threads", num)
    if providers.native is not None:
        providers.native.set_threads(num)
    blas.set_threads(num)


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was given."""
    return _Settings.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Remember a number. It has no effect: ops run one after the other."""
    _Settings.interop_threads = _thread_count("set_num_interop_threads", num)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Refuse what PyTorch calls nondeterministic, and fill new memory. Kernels here are deterministic anyway."""
    if not isinstance(mode, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not "
                        f"{type(mode).__name__}")
    if not isinstance(warn_only, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'warn_only' must be bool, not "
                        f"{type(warn_only).__name__}")
    Deterministic.on = bool(mode)
    Deterministic.warn_only = bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was given."""
    return Deterministic.on


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What `use_deterministic_algorithms` was given for `warn_only`."""
    return Deterministic.warn_only


def get_deterministic_debug_mode() -> int:
    """0 for off, 1 for warnings, 2 for errors."""
    if not Deterministic.on:
        return 0
    return 1 if Deterministic.warn_only else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by number or name."""
    modes = {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in modes:
        wanted = "one of `default`, `warn`, `error`" if isinstance(debug_mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {wanted}, but got {debug_mode}")
    mode = modes[debug_mode]
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was given."""
    return _Settings.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Remember a precision. It has no effect: float32 products are computed in float32."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
                      "setFloat32MatmulPrecision call has no effect.", stacklevel=2)
        return
    _Settings.matmul_precision = precision


def set_warn_always(b: bool) -> None:
    """Repeat warnings that PyTorch gives once; Python's filters still apply."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    Always.wanted = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was given."""
    return Always.wanted


def get_default_device() -> device:
    """Where new tensors of this thread are made."""
    return CPU if THREAD.state.default_device is None else as_device(THREAD.state.default_device)


def set_default_device(device: DeviceLike) -> None:
    """Make new tensors of this thread on a device; None goes back to the CPU."""
    THREAD.state.default_device = None if device is None else as_device(device)


def set_default_tensor_type(t: Any) -> None:
    """Set the default floating type by the name of an old tensor class, or the class."""
    warn_once("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
              "torch.set_default_dtype() and torch.set_default_device() as alternatives.")
    kind: dtype = type_by_name(t) if isinstance(t, str) else t.dtype if isinstance(t, LegacyType) else _bad_type(t)
    set_default_dtype(kind)


def _bad_type(value: Any) -> dtype:
    raise TypeError("invalid type object: only floating-point types are supported as the default type, and "
                    f"{value!r} is not a tensor type such as torch.FloatTensor")
