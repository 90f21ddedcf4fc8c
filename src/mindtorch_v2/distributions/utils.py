"""Helpers of the distributions: broadcasting parameters, lazily computed ones, probabilities and logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from numbers import Number
from typing import Any

from .._autograd.grad_mode import enable_grad
from .._construct import tensor
from .._device import DeviceLike
from .._dispatch.namespace import aten, public
from .._dtype import DType, finfo, get_default_dtype
from .._shape import Size
from .._tensor import Tensor

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the first tensor."""
    if not all(isinstance(value, (Tensor, Number)) for value in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")
    first = next((value for value in values if isinstance(value, Tensor)), None)
    dtype, device = (get_default_dtype(), None) if first is None else (first.dtype, first.device)
    made = [value if isinstance(value, Tensor) else tensor(value, dtype=dtype, device=device) for value in values]
    return tuple(aten.broadcast_tensors(made))


def _standard_normal(shape: Any, dtype: DType | None, device: DeviceLike = None) -> Any:
    """Normal numbers of mean 0 and deviation 1."""
    return public.empty(shape, dtype=dtype, device=device).normal_()


def sum_rightmost(value: Tensor, dims: int) -> Any:
    """The sum over the last `dims` dimensions."""
    if dims == 0:
        return value
    return value.reshape(Size((*value.shape[:value.dim() - dims], -1))).sum(-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities kept away from 0 and 1 by the dtype's precision."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities of log-odds, or of unnormalised log-probabilities along the last dimension."""
    return aten.sigmoid(logits) if is_binary else aten.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log-odds of probabilities, or their logarithms."""
    kept = clamp_probs(probs)
    return aten.log(kept) - aten.log1p(-kept) if is_binary else aten.log(kept)


class lazy_property:
    """An attribute that is computed when it is first read, and then stays."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The entries of lower triangles, row after row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    numbers = aten.arange(n, device=mat.device)
    below = numbers < numbers.view(-1, 1) + (diag + 1)
    return mat[..., below]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Lower triangles with the given entries, row after row."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if not round(n) - n < finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
                         "the lower triangular part of a square D x D matrix.")
    size = round(n)
    made = aten.zeros((*vec.shape[:-1], size, size), dtype=vec.dtype, device=vec.device)
    numbers = aten.arange(size, device=vec.device)
    made[..., numbers < numbers.view(-1, 1) + (diag + 1)] = vec
    return made


# The names that programs import from here, although they are PyTorch's private ones.
_sum_rightmost = sum_rightmost
