"""Reductions and normalizations of the elements that a mask selects. An input may be a masked tensor, with its mask."""

from __future__ import annotations

import math
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import FLOAT, INTEGER, DType, bool_, complex64, complex128, float32, float64, iinfo, int64
from .._shape import wrap_dim
from .._tensor import Tensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
           "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _mask(input: Tensor, mask: Any) -> Any:
    """The mask in the shape of the input, or None."""
    return None if mask is None else _input_mask(input, mask=mask)


def _filled(input: Tensor, mask: Any, value: float) -> Tensor:
    """The input with a value where it is masked out."""
    chosen = _mask(input, mask)
    return input if chosen is None else aten.where(chosen, input, aten.full((), value, dtype=input.dtype))


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions that an argument means, in order; all of them for None and ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim)) or (0,)
    given = [wrap_dim(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)]
    for one in given:
        if given.count(one) > 1:
            raise RuntimeError(f"dim={one} appears multiple times in the list of dims")
    return tuple(sorted(given))


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    return _canonical_dim(dim, input.ndim) if input.ndim else ()


_IDENTITIES: dict[str, Any] = {
    **dict.fromkeys(("sum", "cumsum"), 0), **dict.fromkeys(("prod", "cumprod"), 1), "median": math.nan,
    **dict.fromkeys(("mean", "var", "std"), None)}
_LOW, _HIGH = ("amax", "argmax", "logaddexp", "logsumexp"), ("amin", "argmin")


def _extreme_of(name: str, dtype: DType) -> float:
    """What no element of this dtype is under (or over)."""
    if dtype == bool_:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    if dtype.category > FLOAT:
        raise TypeError(f"{name}: elements of type {dtype} have no order")
    if name in _LOW:
        return -math.inf if dtype.category == FLOAT else iinfo(dtype).min
    return math.inf if dtype.category == FLOAT else iinfo(dtype).max


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The element that changes no result of a reduction; None for those that have none."""
    if op_name == "norm":
        value: Any = math.inf if args and float(args[0]) == -math.inf else 0
    elif op_name in _LOW or op_name in _HIGH:
        value = _extreme_of(op_name, input.dtype)
    elif op_name in _IDENTITIES:
        value = _IDENTITIES[op_name]
    else:
        raise NotImplementedError(f"identity of {op_name} on {input.dtype} input")
    if value is None:
        return None
    kind = input.dtype if op_name != "median" or input.dtype.category >= FLOAT else None
    return aten.full((), value, dtype=kind, device=input.device)


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The input where the mask selects, else the value."""
    return aten.where(mask, input, fill_value)


def _combine_input_and_mask(op: Any, input: Tensor, mask: Any, *args: Any) -> Tensor:
    """The input with the op's identity where it is masked out."""
    if mask is None:
        return input
    identity = _reduction_identity(op.__name__, input, *args)
    if identity is None:
        raise ValueError(f"masked {op.__name__}: no element leaves the result as it is")
    return _where(_input_mask(input, mask=mask), input, identity)


def _typed(input: Tensor, dtype: DType | None, *, floats: bool = False) -> Tensor:
    if dtype is None and input.dtype.category <= INTEGER and not floats:
        dtype = int64
    return input if dtype is None else aten.to(input, dtype)


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


def _extreme(name: str) -> Any:
    def extreme(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
                mask: Any = None) -> Tensor:
        given = input if dtype is None else aten.to(input, dtype)
        fill = 0 if mask is None else _extreme_of(name, given.dtype)
        return getattr(aten, name)(_filled(given, mask, fill), _dims(given, dim), keepdim)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"`torch.{name}` of the selected elements."
    return extreme


def _place(name: str) -> Any:
    def place(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
              mask: Any = None) -> Tensor:
        given = input if dtype is None else aten.to(input, dtype)
        fill = 0 if mask is None else _extreme_of(name, given.dtype)
        made = getattr(aten, name)(_filled(given, mask, fill), dim, keepdim)
        return aten.to(made, given.dtype)  # as PyTorch's are

    place.__name__ = place.__qualname__ = name
    place.__doc__ = f"`torch.{name}` of the selected elements."
    return place


amax, amin = _extreme("amax"), _extreme("amin")
argmax, argmin = _place("argmax"), _place("argmin")


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Tensor:
    chosen = _mask(input, mask)
    ones = aten.ones(input.shape, dtype=int64, device=input.device) if chosen is None else aten.to(chosen, int64)
    return aten.sum(ones, dims, keepdim)


def mean(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
         mask: Any = None) -> Tensor:
    """The mean of the selected elements; NaN where there is none."""
    given = _typed(input, dtype, floats=True)
    if given.dtype.category < FLOAT:
        raise ValueError("mean(): Could not infer output dtype. Input dtype must be either a floating point or complex "
                         f"dtype. Got: {given.dtype}")
    dims = _dims(given, dim)
    return aten.div(aten.sum(_filled(given, mask, 0), dims, keepdim), _count(given, dims, keepdim, mask))


def _moment(name: str) -> Any:
    def moment(input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: Any = None,
               keepdim: bool = False, dtype: DType | None = None, mask: Any = None) -> Tensor:
        given = _typed(input, dtype, floats=True)
        if given.dtype == bool_:
            raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported: there is no "
                               f"{name} of truth values")
        given = aten.to(given, aten.true_divide(given, 1).dtype) if given.dtype.category < FLOAT else given
        dims = _dims(given, dim)
        less = correction if correction is not None else 1 if unbiased in (None, True) else 0
        middle = aten.div(aten.sum(_filled(given, mask, 0), dims, True), _count(given, dims, True, mask))
        away = _filled(aten.sub(given, middle), mask, 0)
        squares = aten.mul(away, aten.conj(away))
        number = aten.clamp_min(aten.sub(_count(given, dims, keepdim, mask), less), 0)
        made = aten.div(aten.sum(squares, dims, keepdim), aten.to(number, given.dtype))
        return aten.sqrt(made) if name == "std" else made

    moment.__name__ = moment.__qualname__ = name
    moment.__doc__ = f"`torch.{name}` of the selected elements."
    return moment


var, std = _moment("var"), _moment("std")


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None,
           mask: Any = None) -> Tensor:
    """The median of the selected elements along a dimension."""
    given = input if dtype is None else aten.to(input, dtype)
    if given.dtype.category == FLOAT:
        return aten.nanmedian(_filled(given, mask, math.nan), dim, keepdim)[0]
    floats = aten.to(given, float32)
    return aten.to(aten.nanmedian(_filled(floats, mask, math.nan), dim, keepdim)[0], given.dtype)


def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
              mask: Any = None) -> Tensor:
    """`torch.logsumexp` of the selected elements."""
    given = input if dtype is None else aten.to(input, dtype)
    if given.dtype.category >= FLOAT:
        return aten.logsumexp(_filled(given, mask, -math.inf), _dims(given, dim), keepdim)
    fill = 0 if mask is None else _extreme_of("logsumexp", given.dtype)
    return aten.to(aten.logsumexp(_filled(given, mask, fill), _dims(given, dim), keepdim), given.dtype)


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
        fill = 0 if mask is None else _extreme_of("amax", given.dtype)
        return getattr(aten, "log_softmax" if name == "log_softmax" else "softmax")(
            _filled(given, mask, fill), dim)

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


def corresponding_real_dtype(complex_dtype: DType) -> DType:
    """The dtype of the parts of a complex dtype."""
    parts = {complex64: float32, complex128: float64}
    if complex_dtype not in parts:
        raise RuntimeError(f"expected a complex dtype, got {complex_dtype}")
    return parts[complex_dtype]


def _input_mask(input: Tensor, *args: Any, mask: Any = None, **kwargs: Any) -> Tensor:
    """The mask of a call in the shape of its input, as truth values."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    chosen = aten.expand(mask, input.shape) if mask.shape != input.shape else mask
    return chosen if chosen.dtype == bool_ else aten.ne(chosen, 0)


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
