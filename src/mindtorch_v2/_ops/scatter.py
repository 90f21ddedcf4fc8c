"""gather and the scatter family: one index per element, along one dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._backends.cpu import gather as slice_kernels
from .._backends.cpu import scatter as kernels
from .._backends.cpu.memory import copy_
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._shape import wrap_dim
from .._tensor import Tensor
from .._warn import warn_once
from .formulas import NOT_IMPLEMENTED, scaled


def on_copy(kernel: Callable[..., Any], order: Any = "C") -> Callable[..., Any]:
    """The functional form of a kernel that writes into its first array; `order` is NumPy's, "K" keeps the array's."""

    def functional(a: Any, *rest: Any) -> Any:
        return kernel(copy_(np.empty_like(a, order=order), a), *rest)

    return functional


# -- gather ----------------------------------------------------------------------------------------------------------

declare(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", cpu=kernels.gather,
    grad={"self": lambda grad, self, dim, index, sparse_grad: aten.gather_backward(
        grad, self, dim, index, sparse_grad)},
)
declare(
    "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor", where="n",
    composite=lambda grad, self, dim, index, sparse_grad: aten.scatter_add_(
        aten.new_zeros(grad, self._a.shape), dim, index, grad),
)


def _take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if indices._a.dtype != np.int64 and (dim is not None or indices._a.dtype != np.int32):
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{slice_kernels.name_of(indices._a)}")
    if dim is None:
        return aten.gather(aten.view(self, (-1,)) if self._a.flags.c_contiguous else aten.reshape(self, (-1,)), 0,
                           aten.reshape(indices, (-1,)))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    at = wrap_dim(dim, self.ndim)
    extent = self._a.shape[at]

    def around(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:at], 1, *shape[at + 1:])

    common = np.broadcast_shapes(around(self._a.shape), around(indices._a.shape))
    whole = aten.broadcast_to(self, (*common[:at], extent, *common[at + 1:]))
    chosen = aten.broadcast_to(indices, (*common[:at], indices._a.shape[at], *common[at + 1:]))
    return aten.gather(whole, at, aten.remainder(chosen, extent) if extent else chosen)


declare("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", composite=_take_along_dim)

# -- scatter ---------------------------------------------------------------------------------------------------------

declare(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", cpu=on_copy(kernels.scatter_src),
    cpu_inplace=kernels.scatter_src, where="n",
    grad={"self": lambda grad, dim, index: aten.scatter__value(grad, dim, index, 0),
          "src": lambda grad, dim, index: aten.gather(grad, dim, index)},
)
declare(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", cpu=on_copy(kernels.scatter_value),
    cpu_inplace=kernels.scatter_value, where="n", node="ScatterBackward1",
    grad={"self": lambda grad, dim, index: aten.scatter__value(grad, dim, index, 0)},
)


def _no_reduce_grad(grad: Tensor) -> Any:
    raise RuntimeError("derivative for aten::scatter with reduce= is not implemented; use scatter_reduce")


declare(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", where="n",
    cpu=on_copy(kernels.scatter_reduce_src), cpu_inplace=kernels.scatter_reduce_src, node=NOT_IMPLEMENTED,
    grad={("self", "src"): lambda grad, needs: _no_reduce_grad(grad)},
)
declare(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", where="n",
    cpu=on_copy(kernels.scatter_reduce_value), cpu_inplace=kernels.scatter_reduce_value, node=NOT_IMPLEMENTED,
    grad={"self": _no_reduce_grad},
)
OLD_REDUCE = ("The reduce argument of torch.scatter with Tensor src is deprecated; use torch.scatter_reduce, which has "
              "more reduction options.")


def _scatter_arguments(src: Any, value: Any) -> tuple[Any, bool]:
    given = src if value is None else value
    if given is None:
        raise TypeError("scatter() missing 1 required positional argument: \"src\" or \"value\"")
    return given, isinstance(given, Tensor)


@choose("scatter")
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None,
            out: Any = None) -> Tensor:
    """A copy with `src`, a tensor or a number, written (or reduced) where `index` says along `dim`."""
    given, is_tensor = _scatter_arguments(src, value)
    if reduce is None:
        form = aten.scatter__src if is_tensor else aten.scatter__value
        return form(input, dim, index, given, out=out)
    if is_tensor:
        warn_once(OLD_REDUCE)
    form = aten.scatter__reduce if is_tensor else aten.scatter__value_reduce
    return form(input, dim, index, given, reduce=reduce, out=out)


@choose("scatter_", where="m")
def scatter_(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
             reduce: str | None = None) -> Tensor:
    """`scatter` into this tensor."""
    given, is_tensor = _scatter_arguments(src, value)
    if reduce is None:
        form = aten.scatter___src if is_tensor else aten.scatter___value
        return form(input, dim, index, given)
    if is_tensor:
        warn_once(OLD_REDUCE)
    form = aten.scatter___reduce if is_tensor else aten.scatter___value_reduce
    return form(input, dim, index, given, reduce=reduce)


declare(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", cpu=on_copy(kernels.scatter_add),
    cpu_inplace=kernels.scatter_add,
    grad={"self": lambda grad: grad, "src": lambda grad, dim, index: aten.gather(grad, dim, index)},
)

# -- reductions: scatter_reduce and index_reduce differ only in how an index names positions -------------------------


class Places:
    """How one of the two ops reads, adds, reduces and clears the positions its index names."""

    def __init__(self, pick: Any, add: Any, reduce: Any, clear: Any) -> None:
        self.pick, self.add, self.reduce, self.clear = pick, add, reduce, clear


BY_ELEMENT = Places(
    lambda x, dim, index: aten.gather(x, dim, index),
    lambda x, dim, index, src: aten.scatter_add(x, dim, index, src),
    lambda x, dim, index, src, reduce, own: aten.scatter_reduce(x, dim, index, src, reduce, include_self=own),
    lambda x, dim, index: aten.scatter__value(x, dim, index, 0),
)
BY_SLICE = Places(
    lambda x, dim, index: aten.index_select(x, dim, index),
    lambda x, dim, index, src: aten.index_add(x, dim, index, src),
    lambda x, dim, index, src, reduce, own: aten.index_reduce(x, dim, index, src, reduce, include_self=own),
    lambda x, dim, index: aten.index_fill__int_Scalar(x, dim, index, 0),
)


def _reduce_backward(by: Places, grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str,
                     include_self: bool, result: Tensor) -> tuple[Tensor, Tensor]:
    if reduce == "sum":
        own, other = grad, by.pick(grad, dim, index)
    elif reduce == "mean":
        start = aten.ones_like(grad) if include_self else aten.zeros_like(grad)
        count = by.add(start, dim, index, aten.ones_like(src))
        count = aten.masked_fill__Scalar(count, aten.eq(count, 0), 1)
        own, other = grad / count, by.pick(grad, dim, index) / by.pick(count, dim, index)
    elif reduce == "prod":
        own, other = _product_backward(by, grad, self, dim, index, src, include_self, result)
    else:
        # Ties share the gradient equally.
        chosen = by.pick(result, dim, index)
        is_own, is_other = _as_grad(aten.eq(self, result), grad), _as_grad(aten.eq(src, chosen), grad)
        share = grad / by.add(is_own, dim, index, is_other)
        own, other = is_own * share, is_other * by.pick(share, dim, index)
    return own if include_self else by.clear(own, dim, index), other


def _product_backward(by: Places, grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool,
                      result: Tensor) -> tuple[Tensor, Tensor]:
    """Product of the others, by division; where the element is a position's only zero, by leaving it out."""
    own_one = aten.masked_fill__Scalar(self, aten.eq(self, 0), 1)
    own = grad * by.reduce(own_one, dim, index, src, "prod", include_self) / own_one
    is_zero = aten.eq(src, 0)
    zeros = by.pick(by.add(aten.zeros_like(self), dim, index, _as_grad(is_zero, grad)), dim, index)
    only_zero = aten.logical_and(is_zero, aten.eq(zeros, 1))
    without = by.reduce(self, dim, index, aten.masked_fill__Scalar(src, only_zero, 1), "prod", include_self)
    other = aten.where(only_zero, by.pick(grad * without, dim, index),
                       by.pick(grad * result, dim, index) / aten.masked_fill__Scalar(src, is_zero, 1))
    return own, other


def _as_grad(mask: Tensor, grad: Tensor) -> Any:
    return aten.to(mask, grad.dtype)


def _scatter_reduce_backward(grad: Tensor, self: Tensor, dim: Any, index: Any, src: Any, reduce: Any, include_self: Any,
                             result: Any, needs: Any) -> Any:
    return _reduce_backward(BY_ELEMENT, grad, self, dim, index, src, reduce, include_self, result)


def _index_reduce_backward(grad: Tensor, self: Tensor, dim: Any, index: Any, source: Any, reduce: Any,
                           include_self: Any, result: Any, needs: Any) -> Any:
    return _reduce_backward(BY_SLICE, grad, self, dim, index, source, reduce, include_self, result)


declare(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    cpu=on_copy(kernels.scatter_reduce), cpu_inplace=kernels.scatter_reduce,
    grad={("self", "src"): _scatter_reduce_backward},
)
declare(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    cpu=on_copy(slice_kernels.index_reduce), cpu_inplace=slice_kernels.index_reduce,
    grad={("self", "source"): _index_reduce_backward},
)

# -- slices named by a vector ----------------------------------------------------------------------------------------

declare(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", cpu=slice_kernels.index_select,
    grad={"self": lambda grad, self_shape, dim, index: aten.index_select_backward(grad, self_shape, dim, index)},
)
declare(
    "index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index) -> Tensor", where="n",
    composite=lambda grad, self_sizes, dim, index: aten.index_add_(
        aten.new_zeros(grad, self_sizes), dim, index, grad),
)


declare(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    cpu=on_copy(slice_kernels.index_add), cpu_inplace=slice_kernels.index_add,
    grad={"self": lambda grad: grad,
          "source": lambda grad, dim, index, source, alpha: scaled(
              aten.expand_as(aten.index_select(grad, dim, index), source), alpha)},
)
declare(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", cpu=on_copy(slice_kernels.index_copy),
    cpu_inplace=slice_kernels.index_copy,
    grad={"self": lambda grad, dim, index: aten.index_fill__int_Scalar(grad, dim, index, 0),
          "source": lambda grad, dim, index, source_shape: aten.index_select(grad, dim, index) if source_shape
          else aten.sum(aten.index_select(grad, dim, index))},
)
