"""`torch._check` and its kin: a condition, and the error that a library raises if it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._tensor import Tensor

__all__ = ["_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
           "_check_tensor_all_with", "_check_type", "_check_value", "_check_with"]

Message = Callable[[], Any] | None


def _check_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raise an error of a type unless a condition holds."""
    if isinstance(cond, Tensor) or not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False. (Could this error message be improved? If so, "
                         "please report an enhancement request to PyTorch.)")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Message = None) -> None:
    """Raise RuntimeError unless a condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raise NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raise unless a number can be a size."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raise an error of a type unless all elements of a tensor hold."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype) != "torch.bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raise RuntimeError unless all elements of a tensor hold."""
    _check_tensor_all_with(RuntimeError, cond, message)
