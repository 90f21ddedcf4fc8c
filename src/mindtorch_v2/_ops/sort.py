"""Sorting and selecting the largest."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import sort as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor
from .return_types import named

SORT = named("sort", ("values", "indices"))
TOPK = named("topk", ("values", "indices"))


def _permuted(grad: Tensor, self_shape: tuple[int, ...], dim: int, result1: Tensor) -> Any:
    return aten.value_selecting_reduction_backward(grad, dim, result1, self_shape, True)


declare(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", cpu=kernels.sort,
    where="n", differentiable=(0,), grad={"self": _permuted},
)
declare(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    cpu=kernels.sort_stable, where="n", differentiable=(0,), node="SortBackward1", grad={"self": _permuted},
)


@choose("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None, *,
         out: Any = None) -> Any:
    """Elements in order along a dimension, and where they came from."""
    if type(dim) is bool or type(descending) is int:
        raise TypeError("sort() received an invalid combination of arguments - got (Tensor, "
                        f"{type(dim).__name__}, {type(descending).__name__}), but expected (Tensor, int dim, bool "
                        "descending)")
    result = SORT if out is None else SORT.written
    if stable is None:
        return result(aten.sort__default(input, dim, descending, out=out))
    return result(aten.sort__stable(input, stable=stable, dim=dim, descending=descending, out=out))


declare("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", where="n",
        composite=lambda self, dim, descending: aten.sort__default(self, dim, descending)[1])
declare("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", where="n",
        composite=lambda self, stable, dim, descending: aten.sort__stable(
            self, stable=stable, dim=dim, descending=descending)[1])


@choose("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Tensor:
    """The positions that would sort along a dimension."""
    if stable is None:
        return aten.argsort__default(input, dim, descending)
    return aten.argsort__stable(input, stable=stable, dim=dim, descending=descending)


declare("msort(Tensor self) -> Tensor", composite=lambda self: aten.sort__default(self, 0, False)[0])
declare(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    cpu=kernels.topk, where="n", differentiable=(0,), grad={"self": _permuted},
)


@choose("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The k largest (or smallest) elements along a dimension, and where they are."""
    return (TOPK if out is None else TOPK.written)(aten.topk__default(input, k, dim, largest, sorted, out=out))
