"""`autocast`, the block in which ops choose their precision, and decorators for autograd functions inside one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .._device import MEANT
from .._dtype import DType, bfloat16, dtype, float16, float64
from .._tensor import Tensor
from . import settings
from .settings import is_autocast_available

SUPPORTED = (bfloat16, float16)


class autocast:
    """A block, or as a decorator a function, in which listed ops run in lower precision and others in float32.

    >>> import mindtorch_v2 as torch
    >>> layer = torch.nn.Linear(3, 2)
    >>> with autocast("cpu", dtype=torch.bfloat16):
    ...     out = layer(torch.ones(1, 3))
    >>> out.dtype, layer.weight.dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(self, device_type: str, dtype: DType | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        device_type = MEANT.get(device_type, device_type)
        self.fast_dtype = settings.get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        if enabled:
            problem = _problem(device_type, self.fast_dtype)
            if problem is not None:
                warnings.warn(problem, stacklevel=2)
                enabled = False
        self._enabled = enabled
        self._cache_enabled = settings.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        # One object may be entered several times, as a recursive function's decorator is.
        self._before: list[tuple[bool, dtype_type, bool]] = []

    def __enter__(self) -> autocast:
        kind = self.device
        self._before.append((settings.is_autocast_enabled(kind), settings.get_autocast_dtype(kind),
                             settings.is_autocast_cache_enabled()))
        settings.set_autocast_enabled(kind, bool(self._enabled))
        if isinstance(self.fast_dtype, dtype_type):
            settings.set_autocast_dtype(kind, self.fast_dtype)
        settings.set_autocast_cache_enabled(bool(self._cache_enabled))
        settings.autocast_increment_nesting()
        return self

    def __exit__(self, *exc: object) -> None:
        if settings.autocast_decrement_nesting() == 0:
            settings.clear_autocast_cache()
        enabled, fast_dtype, cache_enabled = self._before.pop()
        settings.set_autocast_enabled(self.device, enabled)
        settings.set_autocast_dtype(self.device, fast_dtype)
        settings.set_autocast_cache_enabled(cache_enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(function).__name__}. Did you mean "
                            "to use autocast as a context manager? For example:\n"
                            "    with torch.autocast(device_type=...):\n        output = model(input)")

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


dtype_type = dtype


def _problem(device_type: str, fast_dtype: Any) -> str | None:
    """Why autocast would switch itself off, as PyTorch warns."""
    if device_type == "cuda":
        return "CUDA is not available or torch_xla is imported. Disabling autocast."
    if device_type == "npu":
        from .._backends.npu.runtime import unavailable_reason

        if unavailable_reason() is not None:
            return "NPU is not available. Disabling autocast."
    if fast_dtype not in SUPPORTED:
        name = device_type.upper()
        return (f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, SUPPORTED))} currently.")
    return None


def _cast(value: Any, device_type: str, target: dtype) -> Any:
    """Floating point tensors of the device in `target`, wherever in the arguments they are."""
    if isinstance(value, Tensor):
        kind = value.dtype
        wanted = kind.is_floating_point and kind is not float64 and value.device.type == device_type
        return value.to(target) if wanted else value
    if isinstance(value, (str, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        pairs = {_cast(key, device_type, target): _cast(item, device_type, target) for key, item in value.items()}
        return type(value)(pairs)  # type: ignore[call-arg]
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, target) for item in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorator for the `forward` of an autograd function that is used inside autocast.

    With `cast_inputs`, forward gets floating point tensors in that dtype and runs with autocast off; without, it runs
    with autocast as it is. `custom_bwd` gives backward the same.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        enabled = settings.is_autocast_enabled(device_type)
        context._dtype = settings.get_autocast_dtype(device_type)
        context._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return forward(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return forward(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorator for the `backward` of an autograd function whose `forward` has `custom_fwd`: autocast as it had."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return backward(*args, **kwargs)

    return decorated


def renewed(device_type: str = "cpu") -> Callable[[], autocast]:
    """A maker of blocks with the autocast state of now, for code that computes something again later."""
    return functools.partial(autocast, device_type, settings.get_autocast_dtype(device_type),
                             settings.is_autocast_enabled(device_type), settings.is_autocast_cache_enabled())
