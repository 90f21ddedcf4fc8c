"""Filling by index, flat positions, masks, triangles and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.base import on_device
from .._backends.cpu import gather as kernels
from .._backends.cpu.view import diagonal as diagonal_view
from .._device import DeviceLike
from .._dispatch.dtype_rules import unsupported
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import DType, int32, int64
from .._shape import broadcast_shapes, numel
from .._tensor import Tensor, wrap
from .create import OPTIONS
from .scatter import on_copy

# -- filling slices --------------------------------------------------------------------------------------------------


def _distinct(index: Tensor) -> Tensor:
    return wrap(_unique(index._a))


_unique = on_device(lambda array: np.unique(array))


declare(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    cpu=on_copy(kernels.index_fill, "K"), cpu_inplace=kernels.index_fill, where="n",
    grad={"self": lambda grad, dim, index: aten.index_fill__int_Scalar(grad, dim, index, 0)},
)
declare(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    cpu=on_copy(kernels.index_fill, "K"), cpu_inplace=kernels.index_fill, where="n", node="IndexFillBackward1",
    grad={"self": lambda grad, dim, index: aten.index_fill__int_Scalar(grad, dim, index, 0),
          "value": lambda grad, dim, index: aten.sum(aten.index_select(grad, dim, _distinct(index)))},
)


@choose("index_fill")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy with the named slices filled."""
    form = aten.index_fill__int_Tensor if isinstance(value, Tensor) else aten.index_fill__int_Scalar
    return form(input, dim, index, value)


@choose("index_fill_", where="m")
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Fill the named slices."""
    form = aten.index_fill___int_Tensor if isinstance(value, Tensor) else aten.index_fill___int_Scalar
    return form(input, dim, index, value)


# -- flat positions --------------------------------------------------------------------------------------------------

declare(
    "take(Tensor self, Tensor index) -> Tensor", cpu=kernels.take,
    grad={"self": lambda grad, self_shape, index: aten.put_(
        aten.zeros(self_shape, dtype=grad.dtype, device=grad.device), index, grad, True)},
)


def _put_grad_self(grad: Tensor, index: Tensor, source_shape: Any, accumulate: bool) -> Tensor:
    if accumulate:
        return grad
    return aten.put(grad, index, aten.zeros(source_shape, dtype=grad.dtype, device=grad.device), False)


declare(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", cpu=on_copy(kernels.put, "K"),
    cpu_inplace=kernels.put,
    grad={"self": _put_grad_self,
          "source": lambda grad, index, source_shape: aten.reshape(aten.take(grad, index), source_shape)},
)

# -- masks -----------------------------------------------------------------------------------------------------------

declare(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", cpu=kernels.masked_fill,
    cpu_inplace=kernels.masked_fill_inplace, where="n",
    grad={"self": lambda grad, mask: aten.masked_fill__Scalar(grad, mask, 0)},
)
declare(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", cpu=kernels.masked_fill,
    cpu_inplace=kernels.masked_fill_inplace, where="n", node="MaskedFillBackward1",
    grad={"self": lambda grad, mask: aten.masked_fill__Scalar(grad, mask, 0),
          "value": lambda grad, mask: aten.sum(aten.masked_select(grad, mask))},
)


@choose("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with `value` where `mask` is set."""
    form = aten.masked_fill__Tensor if isinstance(value, Tensor) else aten.masked_fill__Scalar
    return form(input, mask, value)


@choose("masked_fill_", where="m")
def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write `value` where `mask` is set."""
    form = aten.masked_fill___Tensor if isinstance(value, Tensor) else aten.masked_fill___Scalar
    return form(input, mask, value)


def _masked_select_backward(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    shape = broadcast_shapes(input._a.shape, mask._a.shape)
    return aten.masked_scatter_(aten.zeros(shape, dtype=grad.dtype, device=grad.device), mask, grad)


def _masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Any) -> Tensor:
    chosen = aten.masked_select(grad_output, mask)
    missing = numel(sizes) - chosen._a.size
    if missing:
        chosen = aten.cat([chosen, aten.zeros((missing,), dtype=grad_output.dtype, device=grad_output.device)], 0)
    return aten.view(chosen, tuple(sizes))


declare(
    "masked_select(Tensor self, Tensor mask) -> Tensor", cpu=kernels.masked_select, meta="data",
    grad={"self": lambda grad, self, mask: aten.masked_select_backward(grad, self, mask)},
)
declare("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor", where="n",
        composite=_masked_select_backward)


def _masked_scatter_copy(a: Any, mask: Any, source: Any) -> Any:
    shape = broadcast_shapes(a.shape, mask.shape)
    return kernels.masked_scatter(np.broadcast_to(a, shape).copy(), mask, source)


declare(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", cpu=_masked_scatter_copy,
    cpu_inplace=kernels.masked_scatter,
    grad={"self": lambda grad, mask: aten.masked_fill__Scalar(grad, mask, 0),
          "source": lambda grad, mask, source_shape: aten.masked_scatter_backward(grad, mask, source_shape)},
)
declare("masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes) -> Tensor", where="n",
        composite=_masked_scatter_backward)
declare("nonzero(Tensor self) -> Tensor", cpu=kernels.nonzero, meta="data", where="n")
declare("nonzero_numpy(Tensor self) -> Tensor[]", where="n",
        composite=lambda self: aten.unbind(aten.nonzero__default(self if self.ndim else aten.unsqueeze(self, 0)), 1))
declare("argwhere(Tensor self) -> Tensor", composite=lambda self: aten.nonzero__default(self))


@choose("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The positions of elements that are not 0: a row each, or with `as_tuple` a vector per dimension."""
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    return aten.nonzero_numpy(input) if as_tuple else aten.nonzero__default(input, out=out)


# -- triangles and diagonals -----------------------------------------------------------------------------------------


def _triangles(name: str) -> None:
    def keep(grad: Tensor, diagonal: int) -> Tensor:
        return getattr(aten, name)(grad, diagonal)

    def indices(row: int, col: int, offset: int, dtype: DType | None, layout: Any, device: DeviceLike,
                pin_memory: bool | None) -> Tensor:
        device = THREAD.state.default_device if device is None else device
        if dtype is not None and dtype not in (int32, int64):
            raise unsupported(f"{name}_indices", dtype.np)
        made = wrap(kernels.triangle_indices(name, row, col, offset))
        return aten.to(made, dtype or int64, device=device) if dtype is not None or device is not None else made

    declare(f"{name}(Tensor self, int diagonal=0) -> Tensor", inplace=True, grad={"self": keep},
            cpu=lambda a, diagonal: kernels.triangle(name, a, diagonal), meta="same")
    declare(f"{name}_indices(int row, int col, int offset=0, *, {OPTIONS}) -> Tensor", composite=indices, where="f")


_triangles("tril")
_triangles("triu")


def _diag(self: Tensor, diagonal: int) -> Tensor:
    if self.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    if self.ndim == 1:
        return aten.diag_embed(self, diagonal)
    return aten.diagonal_copy(self, diagonal)


declare("diag(Tensor self, int diagonal=0) -> Tensor", composite=_diag)
declare(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", where="f",
    cpu=lambda a, offset, dim1, dim2: diagonal_view(a, offset, dim1, dim2).copy(), node="DiagonalBackward0_copy",
    grad={"self": lambda grad, self_shape, offset, dim1, dim2: aten.diagonal_backward(
        grad, self_shape, offset, dim1, dim2)},
)
declare(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", cpu=kernels.diag_embed,
    grad={"self": lambda grad, offset, dim1, dim2: aten.diagonal(grad, offset, dim1, dim2)},
)
declare("diagflat(Tensor self, int offset=0) -> Tensor",
        composite=lambda self, offset: aten.diag(aten.reshape(self, (-1,)), offset))
declare(
    "trace(Tensor self) -> Tensor", cpu=kernels.trace,
    grad={"self": lambda grad, self_shape: aten.trace_backward(grad, self_shape)},
)
declare(
    "trace_backward(Tensor grad, int[] sizes) -> Tensor", cpu=kernels.trace_backward, where="n",
    grad={"grad": lambda grad: aten.trace(grad)},
)
