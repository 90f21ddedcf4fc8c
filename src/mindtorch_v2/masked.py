"""`torch.masked`: reductions and normalizations of the elements that a mask selects.

>>> import mindtorch_v2 as torch
>>> torch.masked.sum(torch.tensor([1.0, 2.0, 3.0]), mask=torch.tensor([True, False, True]))
tensor(4.)
"""

from __future__ import annotations

import math
from typing import Any

from ._dispatch.namespace import aten
from ._dtype import FLOAT, INTEGER, DType, bool_, iinfo, int64
from ._shape import wrap_dim
from ._tensor import Tensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
           "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _mask(input: Tensor, mask: Any) -> Any:
    """The mask in the shape of the input, or None."""
    if mask is None:
        return None
    if mask.dtype.category != 0:
        raise TypeError(f"expected mask to be a boolean tensor, got {mask.dtype}")
    if mask.ndim > input.ndim:
        raise IndexError("_where: expected mask dimensionality to be less than or equal to the input's: "
                         f"{mask.ndim} and {input.ndim}")
    return aten.expand(mask, input.shape) if mask.shape != input.shape else mask


def _filled(input: Tensor, mask: Any, value: float) -> Tensor:
    """The input with a value where it is masked out."""
    chosen = _mask(input, mask)
    return input if chosen is None else aten.where(chosen, input, aten.full((), value, dtype=input.dtype))


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(input.ndim))
    return tuple(wrap_dim(d, input.ndim) for d in ((dim,) if isinstance(dim, int) else dim))


def _typed(input: Tensor, dtype: DType | None, *, floats: bool = False) -> Tensor:
    if dtype is None and input.dtype.category <= INTEGER and not floats:
        dtype = int64
    return input if dtype is None else aten.to(input, dtype)


def _lowest(dtype: Any) -> float:
    return -math.inf if dtype.category >= FLOAT else iinfo(dtype).min


def _highest(dtype: Any) -> float:
    return math.inf if dtype.category >= FLOAT else iinfo(dtype).max


def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
        mask: Any = None) -> Tensor:
    """The sum of the selected elements; 0 where there is none."""
    return aten.sum(_filled(_typed(input, dtype), mask, 0), _dims(input, dim), keepdim)


def prod(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
         mask: Any = None) -> Tensor:
    """The product of the selected elements; 1 where there is none."""
    made = _filled(_typed(input, dtype), mask, 1)
    for one in sorted(_dims(input, dim), reverse=True):
        made = aten.prod(made, one, keepdim)
    return made


def _extreme(name: str, lowest: bool) -> Any:
    def extreme(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
                mask: Any = None) -> Tensor:
        given = input if dtype is None else aten.to(input, dtype)
        fill = (_lowest if lowest else _highest)(given.dtype)
        return getattr(aten, name)(_filled(given, mask, fill), _dims(given, dim), keepdim)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"`torch.{name}` of the selected elements."
    return extreme


def _place(name: str, lowest: bool) -> Any:
    def place(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
              mask: Any = None) -> Tensor:
        given = input if dtype is None else aten.to(input, dtype)
        fill = (_lowest if lowest else _highest)(given.dtype)
        made = getattr(aten, name)(_filled(given, mask, fill), dim, bool(dim is not None and keepdim))
        return aten.to(made, given.dtype)  # as PyTorch's are

    place.__name__ = place.__qualname__ = name
    place.__doc__ = f"`torch.{name}` of the selected elements."
    return place


amax, amin = _extreme("amax", True), _extreme("amin", False)
argmax, argmin = _place("argmax", True), _place("argmin", False)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Tensor:
    chosen = _mask(input, mask)
    ones = aten.ones(input.shape, dtype=int64, device=input.device) if chosen is None else aten.to(chosen, int64)
    return aten.sum(ones, dims, keepdim)


def mean(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
         mask: Any = None) -> Tensor:
    """The mean of the selected elements; NaN where there is none."""
    given = _typed(input, dtype, floats=True)
    dims = _dims(given, dim)
    return aten.div(aten.sum(_filled(given, mask, 0), dims, keepdim), _count(given, dims, keepdim, mask))


def _moment(name: str) -> Any:
    def moment(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: Any = None,
               keepdim: bool = False, dtype: DType | None = None, mask: Any = None) -> Tensor:
        given = _typed(input, dtype, floats=True)
        given = aten.to(given, aten.true_divide(given, 1).dtype) if given.dtype.category < FLOAT else given
        dims = _dims(given, dim)
        less = correction if correction is not None else 1 if unbiased in (None, True) else 0
        middle = aten.div(aten.sum(_filled(given, mask, 0), dims, True), _count(given, dims, True, mask))
        away = _filled(aten.sub(given, middle), mask, 0)
        squares = aten.mul(away, aten.conj(away))
        number = aten.clamp_min(aten.sub(_count(given, dims, keepdim, mask), less), 0)
        made = aten.div(aten.sum(squares, dims, keepdim), number)
        return aten.sqrt(made) if name == "std" else made

    moment.__name__ = moment.__qualname__ = name
    moment.__doc__ = f"`torch.{name}` of the selected elements."
    return moment


var, std = _moment("var"), _moment("std")


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None,
           mask: Any = None) -> Tensor:
    """The median of the selected elements along a dimension."""
    given = input if dtype is None else aten.to(input, dtype)
    if given.dtype.category != FLOAT:
        raise ValueError(f"masked median expects a floating point tensor, got {given.dtype}")
    return aten.nanmedian(_filled(given, mask, math.nan), dim, keepdim)[0]


def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
              mask: Any = None) -> Tensor:
    """`torch.logsumexp` of the selected elements."""
    given = aten.to(input, dtype) if dtype is not None else aten.true_divide(input, 1)
    return aten.logsumexp(_filled(given, mask, -math.inf), _dims(given, dim), keepdim)


def logaddexp(input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Any = None,
              other_mask: Any = None) -> Tensor:
    """`log(exp(input) + exp(other))` of what both masks select."""
    first, second = (one if dtype is None else aten.to(one, dtype) for one in (input, other))
    return aten.logaddexp(_filled(first, input_mask, -math.inf), _filled(second, other_mask, -math.inf))


def norm(input: Tensor, ord: Any = 2, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
         mask: Any = None) -> Tensor:
    """The vector norm of the selected elements."""
    fill = math.inf if float(ord) < 0 else 0.0
    given = _typed(input, dtype, floats=True)
    return aten.linalg_vector_norm(_filled(given, mask, fill), float(ord), _dims(given, dim), keepdim)


def normalize(input: Tensor, ord: Any, dim: int, *, eps: float = 1e-12, dtype: DType | None = None,
              mask: Any = None) -> Tensor:
    """The input divided by the norm of its selected elements."""
    given = _typed(input, dtype, floats=True)
    size = aten.clamp_min(norm(given, ord, dim, keepdim=True, mask=mask), eps)
    return aten.div(_filled(given, mask, 0), size)


def _by_softmax(name: str, sign: int) -> Any:
    def normal(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Any = None) -> Tensor:
        given = input if dtype is None else aten.to(input, dtype)
        given = given if sign > 0 else aten.neg(given)
        return getattr(aten, "log_softmax" if name == "log_softmax" else "softmax")(
            _filled(given, mask, -math.inf), dim)

    normal.__name__ = normal.__qualname__ = name
    normal.__doc__ = f"`{name}` over the selected elements."
    return normal


softmax, log_softmax, softmin = _by_softmax("softmax", 1), _by_softmax("log_softmax", 1), _by_softmax("softmin", -1)


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Any = None) -> Tensor:
    """The running sum of the selected elements."""
    given = input if dtype is None else aten.to(input, dtype)
    return aten.cumsum(_filled(given, mask, 0), dim, dtype=given.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Any = None) -> Tensor:
    """The running product of the selected elements."""
    given = input if dtype is None else aten.to(input, dtype)
    return aten.cumprod(_filled(given, mask, 1), dim, dtype=given.dtype)


def _input_mask(input: Tensor, *args: Any, mask: Any = None, **kwargs: Any) -> Tensor:
    """The mask of a call in the shape of its input; without one, all elements."""
    chosen = _mask(input, mask)
    return aten.ones_like(input, dtype=bool_) if chosen is None else chosen


_EACH = ("cumprod", "cumsum", "log_softmax", "normalize", "softmax", "softmin")


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Which elements of a call's result come from elements that its mask selects."""
    chosen = _input_mask(input, mask=kwargs.get("mask"))
    if op.__name__ in _EACH:
        return chosen
    given = args[1:] if op.__name__ == "norm" else args
    dims = _dims(input, given[0] if given else kwargs.get("dim"))
    keepdim = bool(given[1]) if len(given) > 1 else kwargs.get("keepdim", False)
    return aten.any(chosen, dims, keepdim=keepdim) if input.ndim else chosen
