"""`autocast`, which can be used switched off only."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._dtype import bfloat16, dtype, float16

DEVICES = ("cpu", "cuda", "npu", "xpu", "mps", "hpu", "mtia", "xla", "meta")


class autocast:
    """A block in which ops would choose their precision. `enabled=True` raises on the CPU: that is not built.

    >>> with autocast("cpu", enabled=False):
    ...     pass
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in DEVICES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        if enabled and device_type == "cuda":
            # What PyTorch does where there is no CUDA: the program goes on in full precision.
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled:
            raise NotImplementedError(f"autocast('{device_type}', enabled=True): this runtime does not choose the "
                                      "precision of ops by itself. Use enabled=False, or convert the model with "
                                      "model.to(torch.bfloat16).")
        self.device = device_type
        self.fast_dtype = dtype
        self.enabled = enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


def is_autocast_available(device_type: str) -> bool:
    """False: no device has autocast here."""
    return False


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """False: autocast cannot be switched on."""
    return False


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that autocast would use."""
    return bfloat16 if device_type == "cpu" else float16
