"""The functions that ask for and set a thread's autocast state: `torch.is_autocast_enabled` and its like."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._device import MEANT, device
from .._dispatch.autocast import DEFAULT_DTYPES, SETTINGS, set_enabled
from .._dispatch.state import THREAD
from .._dtype import DType, dtype


def _checked(function: str, device_type: Any) -> str:
    """A device type, which need not have autocast."""
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, "
                        f"not {type(device_type).__name__}")
    meant = MEANT.get(device_type, device_type)
    return meant if meant in DEFAULT_DTYPES else device(meant).type


def is_autocast_available(device_type: str) -> bool:
    """Whether PyTorch has autocast for a device type; the device itself may be missing.

    >>> is_autocast_available("cpu"), is_autocast_available("meta")
    (True, False)
    """
    return _checked("_is_autocast_available", device_type) in DEFAULT_DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread is inside an enabled autocast for a device type."""
    kind = _checked("is_autocast_enabled", device_type)
    if kind not in DEFAULT_DTYPES:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind in SETTINGS.enabled and (THREAD.state.autocast or kind not in ("cpu", "npu"))


def set_autocast_enabled(*args: Any) -> None:
    """`set_autocast_enabled(device_type, enabled)`, or only `enabled` for CUDA."""
    if len(args) not in (1, 2):
        raise TypeError("set_autocast_enabled() received an invalid combination of arguments - got "
                        f"({', '.join(type(value).__name__ for value in args)}), but expected one of:\n"
                        " * (str device_type, bool enabled)\n * (bool enabled)\n")
    kind = _checked("set_autocast_enabled", args[0]) if len(args) == 2 else MEANT.get("cuda", "cuda")
    if not isinstance(args[-1], bool):
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' (position {len(args)}) must be bool, "
                        f"not {type(args[-1]).__name__}")
    if kind not in DEFAULT_DTYPES:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    set_enabled(kind, args[-1])


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that ops on the lower precision list run in.

    >>> get_autocast_dtype("cpu")
    torch.bfloat16
    """
    kind = _checked("get_autocast_dtype", device_type)
    if kind not in DEFAULT_DTYPES:
        raise RuntimeError("unsupported scalarType")
    return SETTINGS.dtypes[kind]


def set_autocast_dtype(device_type: str, dtype: DType | None) -> None:
    """Set that dtype for this thread."""
    kind = _checked("set_autocast_dtype", device_type)
    if not isinstance(dtype, _dtype):
        raise TypeError(f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, "
                        f"not {type(dtype).__name__}")
    SETTINGS.dtypes[kind] = dtype


_dtype = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter is cast once and not at every use."""
    return SETTINGS.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether casts of parameters are kept for the rest of the outermost autocast."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    SETTINGS.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget the casts of parameters."""
    SETTINGS.cache.clear()


def autocast_increment_nesting() -> int:
    """Enter one more level of autocast; the depth after it."""
    SETTINGS.nesting += 1
    return SETTINGS.nesting


def autocast_decrement_nesting() -> int:
    """Leave a level of autocast; the depth after it."""
    SETTINGS.nesting -= 1
    return SETTINGS.nesting


def _deprecated(old: str, parameter: str, function: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    """A function per device, from before there was one with a device argument."""
    new = f"torch.{function.__name__}('{device_type}'{', ' if parameter else ''}{parameter})"

    def call(*args: Any) -> Any:
        warnings.warn(f"torch.{old}({parameter}) is deprecated. Please use {new} instead.", DeprecationWarning,
                      stacklevel=2)
        return function(device_type, *args)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"`{new}`."
    return call


get_autocast_cpu_dtype = _deprecated("get_autocast_cpu_dtype", "", get_autocast_dtype, "cpu")
get_autocast_gpu_dtype = _deprecated("get_autocast_gpu_dtype", "", get_autocast_dtype, "cuda")
get_autocast_ipu_dtype = _deprecated("get_autocast_ipu_dtype", "", get_autocast_dtype, "ipu")
get_autocast_xla_dtype = _deprecated("get_autocast_xla_dtype", "", get_autocast_dtype, "xla")
is_autocast_cpu_enabled = _deprecated("is_autocast_cpu_enabled", "", is_autocast_enabled, "cpu")
is_autocast_ipu_enabled = _deprecated("is_autocast_ipu_enabled", "", is_autocast_enabled, "ipu")
is_autocast_xla_enabled = _deprecated("is_autocast_xla_enabled", "", is_autocast_enabled, "xla")
set_autocast_cpu_dtype = _deprecated("set_autocast_cpu_dtype", "dtype", set_autocast_dtype, "cpu")
set_autocast_gpu_dtype = _deprecated("set_autocast_gpu_dtype", "dtype", set_autocast_dtype, "cuda")
set_autocast_ipu_dtype = _deprecated("set_autocast_ipu_dtype", "dtype", set_autocast_dtype, "ipu")
set_autocast_xla_dtype = _deprecated("set_autocast_xla_dtype", "dtype", set_autocast_dtype, "xla")
set_autocast_cpu_enabled = _deprecated("set_autocast_cpu_enabled", "enabled", set_autocast_enabled, "cpu")
set_autocast_ipu_enabled = _deprecated("set_autocast_ipu_enabled", "enabled", set_autocast_enabled, "ipu")
set_autocast_xla_enabled = _deprecated("set_autocast_xla_enabled", "enabled", set_autocast_enabled, "xla")

__all__ = [
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype",
    "is_autocast_available", "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "is_autocast_ipu_enabled", "is_autocast_xla_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
    "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
]
