"""`torch.utils._device`: a default device for new tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._device import DeviceLike, as_device

__all__ = ["device_decorator", "set_device"]


def device_decorator(device: DeviceLike, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run with a device as the default."""

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        with as_device(device):
            return func(*args, **kwargs)

    return run


def set_device(device: DeviceLike) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function's new tensors are on a device.

    >>> import mindtorch_v2 as torch
    >>> set_device("meta")(lambda: torch.empty(2))().device
    device(type='meta')
    """
    return functools.partial(device_decorator, as_device(device))
