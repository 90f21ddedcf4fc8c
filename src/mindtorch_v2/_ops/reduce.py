"""Reductions: sums, means, products, truth, extremes and their positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import reduce as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import FLOAT_DTYPES, pretty
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import FLOAT, DType, as_dtype
from .._shape import numel, reduced_shape, wrap_dims
from .._tensor import Tensor
from .formulas import conj, spread
from .return_types import named

Shape = tuple[int, ...]

MAX = named("max", ("values", "indices"))
MIN = named("min", ("values", "indices"))
AMINMAX = named("aminmax", ("min", "max"))


def kept(grad: Tensor, shape: Shape, dims: Shape, keepdim: bool) -> Any:
    """A reduced tensor with its reduced dimensions (already wrapped) put back with extent 1."""
    if not keepdim and shape:
        for dim in sorted(dims):
            grad = aten.unsqueeze(grad, dim)
    return grad


def check_flag(name: str, value: Any) -> None:
    """PyTorch's refusal of a second dimension given as a further argument, as in `x.sum(0, 1)`."""
    if type(value) is not bool:
        raise TypeError(f"{name}(): argument 'keepdim' (position 2) must be bool, not {type(value).__name__}")


# -- sums ----------------------------------------------------------------------------------------------------------


def _sum_backward(grad: Tensor, self_shape: Shape, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return aten.expand(grad, self_shape)
    return spread(grad, self_shape, wrap_dims(dim, len(self_shape)), keepdim)


declare(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", cpu=kernels.sum_all, cpu_full=kernels.sum_all_as,
    where="n", grad={"self": lambda grad, self_shape: aten.expand(grad, self_shape)},
)
declare(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.sum_dims, where="n", node="SumBackward1", grad={"self": _sum_backward},
)


# `x.sum()` and `x.sum(dim=None)` are two overloads, each with a node of its own.
NOT_GIVEN: Any = object()


def _one_of(name: str, dim: Any, axis: Any) -> Any:
    """The dimensions, which may be called `axis`."""
    if axis is NOT_GIVEN:
        if dim is NOT_GIVEN:
            raise TypeError(f"{name}() received an invalid combination of arguments: keepdim needs dim")
        return dim
    if dim is not NOT_GIVEN:
        raise TypeError(f"{name}() received dim and axis, which are two names of one argument")
    return axis


@choose("sum")
def sum_(input: Tensor, dim: Any = NOT_GIVEN, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None,
         axis: Any = NOT_GIVEN, keepdims: bool = False) -> Tensor:
    """The sum of all elements, or sums over dimensions."""
    if dim is NOT_GIVEN and axis is NOT_GIVEN and not keepdim and not keepdims:
        if dtype is None and out is None:
            return aten.sum__default(input)
        refuse_out("sum", out)
        return aten.sum__default(input, dtype=dtype)
    dim = _one_of("sum", dim, axis)
    keepdim = keepdim or keepdims
    if keepdim is not False and keepdim is not True:
        check_flag("sum", keepdim)
    return aten.sum__dim_IntList(input, dim, keepdim, dtype=dtype, out=out)


def refuse_out(name: str, out: Any) -> None:
    """The reduction of all elements is an overload of its own, which takes no `out=`."""
    if out is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, out=Tensor): out needs "
                        "dim")


def _nansum_backward(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Any:
    present = aten.logical_not(aten.isnan(self))
    return _sum_backward(grad, self._a.shape, dim, keepdim) * present


declare(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.nansum, grad={"self": _nansum_backward},
)


def _nanmean(self: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    if self._a.dtype not in FLOAT_DTYPES:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got "
                           f"{pretty(self.dtype)}")
    if dtype is not None and as_dtype(dtype, "nanmean").category < FLOAT:
        raise RuntimeError("nanmean(): could not infer output dtype. Optional dtype must be either a floating point or "
                           f"complex dtype. Got: {pretty(dtype)}")
    plain = aten.detach(self)
    present = aten.logical_not_(aten.ne(plain, plain))
    count = aten.sum__dim_IntList(present, dim, keepdim)
    return aten.div(aten.nansum(self, dim, keepdim, dtype=dtype), count)


declare("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        composite=_nanmean)


# -- means ---------------------------------------------------------------------------------------------------------


def _mean_backward(grad: Tensor, self_shape: Shape, dim: Any, keepdim: bool) -> Any:
    dims = wrap_dims(dim, len(self_shape))
    return aten.div__Scalar(spread(grad, self_shape, dims, keepdim), kernels.extent(self_shape, dims))


declare(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", cpu=kernels.mean_all, cpu_full=kernels.mean_all_as,
    where="n",
    grad={"self": lambda grad, self_shape: aten.div__Scalar(aten.expand(grad, self_shape), numel(self_shape))},
)
declare(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.mean_dims, where="n", node="MeanBackward1", grad={"self": _mean_backward},
)


@choose("mean")
def mean(input: Tensor, dim: Any = NOT_GIVEN, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None,
         axis: Any = NOT_GIVEN, keepdims: bool = False) -> Tensor:
    """The mean of all elements, or means over dimensions."""
    if dim is NOT_GIVEN and axis is NOT_GIVEN and not keepdim and not keepdims:
        return aten.mean__default(input, dtype=dtype, out=out)
    dim = _one_of("mean", dim, axis)
    keepdim = keepdim or keepdims
    if keepdim is not False and keepdim is not True:
        check_flag("mean", keepdim)
    return aten.mean__dim(input, dim, keepdim, dtype=dtype, out=out)


# -- products ------------------------------------------------------------------------------------------------------


def _products_of_others(self: Tensor, dim: int) -> Tensor:
    """For each element, the product of all others along a dimension: no division, so zeros do no harm."""
    count = self._a.shape[dim]
    one = aten.ones_like(aten.narrow(self, dim, 0, 1))
    before = aten.cumprod(aten.cat([one, aten.narrow(self, dim, 0, count - 1)], dim), dim)
    reverse = aten.flip(aten.narrow(self, dim, 1, count - 1), [dim])
    after = aten.flip(aten.cumprod(aten.cat([one, reverse], dim), dim), [dim])
    return before * after


def _prod_backward(grad: Tensor, self: Tensor, result: Tensor) -> Any:
    if not self._a.shape:
        return grad
    zeros = aten.nonzero(aten.eq(self, 0))
    if not zeros._a.shape[0]:
        return grad * conj(aten.div(result, self))
    flat = aten.reshape(self, (-1,))
    return grad * conj(aten.reshape(_products_of_others(flat, 0), self._a.shape))


def _prod_dim_backward(grad: Tensor, self: Tensor, dim: int, keepdim: bool, result: Tensor) -> Any:
    shape = self._a.shape
    if not shape:
        return grad
    dims = wrap_dims(dim, len(shape))
    grad, result = kept(grad, shape, dims, keepdim), kept(result, shape, dims, keepdim)
    if not aten.item(aten.sum(aten.sum__dim_IntList(aten.eq(self, 0), dims, True))):
        return grad * conj(aten.div(result, self))
    return grad * conj(_products_of_others(self, dims[0]))


declare(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", cpu=kernels.prod_all, where="n",
    grad={"self": _prod_backward},
)
declare(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.prod_dim, where="n", node="ProdBackward1", grad={"self": _prod_dim_backward},
)


@choose("prod")
def prod(input: Tensor, dim: Any = NOT_GIVEN, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None,
         axis: Any = NOT_GIVEN, keepdims: bool = False) -> Tensor:
    """The product of all elements, or products along a dimension."""
    dim = axis if dim is NOT_GIVEN else dim
    if dim is NOT_GIVEN and not keepdim:
        refuse_out("prod", out)
        return aten.prod__default(input, dtype=dtype)
    refuse_several("prod", dim)
    return aten.prod__dim_int(input, dim, keepdim or keepdims, dtype=dtype, out=out)


def refuse_several(name: str, dim: Any) -> None:
    """PyTorch's TypeError for reductions that take one dimension only."""
    if not hasattr(dim, "__index__") or isinstance(dim, bool):
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({type(dim).__name__}); "
                        "'dim' must be int")


# -- truth and counting --------------------------------------------------------------------------------------------


def _truth(name: str, kernel: Any) -> None:
    declare(f"{name}(Tensor self) -> Tensor", cpu=kernel, where="n")
    declare(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", cpu=kernel, where="n")
    declare(f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", cpu=kernel, where="n")
    whole, one, several = f"{name}__default", f"{name}__dim", f"{name}__dims"

    @choose(name)
    def truth(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None,
              keepdims: bool = False) -> Tensor:
        dim = axis if dim is None else dim
        keepdim = keepdim or keepdims
        if dim is None and not keepdim:
            return getattr(aten, whole)(input, out=out)
        if isinstance(dim, int):
            refuse_several(name, dim)
            return getattr(aten, one)(input, dim, keepdim, out=out)
        return getattr(aten, several)(input, dim, keepdim, out=out)

    truth.__name__ = name
    truth.__doc__ = f"Whether {name} elements are true (not zero)."


_truth("all", kernels.all_of)
_truth("any", kernels.any_of)
declare("count_nonzero(Tensor self, int? dim=None) -> Tensor", cpu=kernels.count_nonzero, where="n")
declare("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", cpu=kernels.count_nonzero, where="n")


@choose("count_nonzero")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not zero."""
    if isinstance(dim, bool):
        refuse_several("count_nonzero", dim)
    form = aten.count_nonzero__default if dim is None or isinstance(dim, int) else aten.count_nonzero__dim_IntList
    return form(input, dim)


# -- extremes ------------------------------------------------------------------------------------------------------


def evenly(grad: Tensor, self: Tensor, result: Tensor) -> Any:
    """The gradient of picking one value out of all: shared by the elements equal to it."""
    mask = aten.isnan(self) if aten.item(aten.isnan(result)) else aten.eq(self, result)
    return owned(aten.masked_fill_(aten.new_zeros(grad, self._a.shape), mask, grad / aten.sum(mask)))


def owned(made: Tensor) -> Tensor:
    """A new tensor that was filled in place, as if it had been computed at once: a leaf may take it over as its
    gradient without a copy. With a graph being recorded it keeps its version, which the graph may refer to.
    """
    if not THREAD.state.grad:
        made._st = None
    return made


def _selecting_backward(grad: Tensor, dim: int, indices: Tensor, sizes: Shape, keepdim: bool) -> Tensor:
    if not keepdim and sizes:
        grad, indices = aten.unsqueeze(grad, dim), aten.unsqueeze(indices, dim)
    return owned(aten.scatter_(aten.zeros(sizes, dtype=grad.dtype, device=grad.device), dim, indices, grad))


declare(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim) -> Tensor",
    composite=_selecting_backward, where="n",
)


def selected(grad: Tensor, self_shape: Shape, dim: int, keepdim: bool, result1: Tensor) -> Any:
    """The gradient of an op that picks one element along a dimension and says which."""
    return aten.value_selecting_reduction_backward(grad, dim, result1, self_shape, keepdim)


def _extremes(name: str, ufunc: np.ufunc, position: Any, binary: str, result: Any) -> None:
    node = name.capitalize()
    declare(f"{name}(Tensor self) -> Tensor", cpu=kernels.extreme_all(name, ufunc), where="n",
            node=f"{node}Backward1", grad={"self": evenly})
    declare(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            cpu=kernels.extreme_dim(name, position), where="n", differentiable=(0,), grad={"self": selected})
    declare(f"{name}.other(Tensor self, Tensor other) -> Tensor", where="n",
            composite=lambda self, other: getattr(aten, binary)(self, other))
    whole, along, pair = f"{name}__default", f"{name}__dim", f"{name}__other"

    @choose(name)
    def extreme(input: Tensor, dim: Any = NOT_GIVEN, keepdim: bool = False, *, other: Any = NOT_GIVEN,
                out: Any = None, axis: Any = NOT_GIVEN, keepdims: bool = False) -> Any:
        if dim is NOT_GIVEN:
            dim = axis if other is NOT_GIVEN else other
            if dim is NOT_GIVEN and not keepdim:
                return getattr(aten, whole)(input, out=out)
        if isinstance(dim, Tensor):
            if keepdim is not False:
                raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, "
                                f"{type(keepdim).__name__})")
            if out is not None:
                return getattr(aten, binary)(input, dim, out=out)
            return getattr(aten, pair)(input, dim)
        refuse_several(name, dim)
        made = getattr(aten, along)(input, dim, keepdim or keepdims, out=out)
        return (result if out is None else result.written)(made)

    extreme.__name__ = name
    extreme.__doc__ = f"The {name}imum: of all elements, along a dimension with its position, or of two tensors."
    declare(f"a{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
            cpu=kernels.extreme_dims(f"a{name}", ufunc), grad={"self": _shared_backward})
    declare(f"arg{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
            cpu=kernels.position_of(f"arg{name}", position))


def _shared(grad: Tensor, self: Tensor, dims: Shape, keepdim: bool, result: Tensor) -> Any:
    """The gradient of an extreme over dimensions: shared by the elements equal to it."""
    shape = self._a.shape
    restore = not keepdim and shape
    whole = reduced_shape(shape, dims, True)
    mask = aten.eq(self, aten.reshape(result, whole) if restore else result)
    if restore:
        grad = aten.reshape(grad, whole)
    return grad / aten.sum__dim_IntList(mask, dims, True) * mask


def _shared_backward(grad: Tensor, self: Tensor, dim: Any, keepdim: bool, result: Tensor) -> Any:
    return _shared(grad, self, wrap_dims(dim, self.ndim), keepdim, result)


def _aminmax_backward(grads: Any, self: Tensor, dim: int | None, keepdim: bool, result0: Tensor,
                      result1: Tensor) -> Any:
    dims = wrap_dims(dim, self.ndim)
    return _shared(grads[0], self, dims, keepdim, result0) + _shared(grads[1], self, dims, keepdim, result1)


_extremes("max", np.maximum, np.argmax, "maximum", MAX)
_extremes("min", np.minimum, np.argmin, "minimum", MIN)
declare("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        cpu=kernels.aminmax, where="n", grad={"self": _aminmax_backward})


@choose("aminmax")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element."""
    made = aten.aminmax__default(input, dim=dim, keepdim=keepdim, out=out)
    return (AMINMAX if out is None else AMINMAX.written)(made)
