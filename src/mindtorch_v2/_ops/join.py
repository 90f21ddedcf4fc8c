"""Joining tensors: cat, stack and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._backends.cpu import shape as kernels
from .._backends.cpu.providers import direct
from .._backends.cpu.view import view_step
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._shape import wrap_dim
from .._tensor import Tensor, wrap_known


def _cat_backward(grad: Tensor, tensors_shape: Any, dim: int) -> list[Tensor]:
    pieces = []
    start = 0
    at = wrap_dim(dim, grad.ndim)
    for shape in tensors_shape:
        if shape == (0,):
            pieces.append(aten.zeros((0,), dtype=grad.dtype, device=grad.device))
            continue
        pieces.append(aten.narrow(grad, at, start, shape[at]))
        start += shape[at]
    return pieces


@direct("stack")
def _stack(arrays: Sequence[Any], dim: int) -> Any:
    """Through `cat`, as PyTorch does, so that a profile shows where the time goes."""
    kernels.check_stack(arrays)
    at = wrap_dim(dim, arrays[0].ndim + 1)
    if at == arrays[0].ndim:
        return aten.cat([aten.unsqueeze(wrap_known(a), at) for a in arrays], at)._a
    # Joining along `at` puts the tensors one after the other there; the new dimension then only needs a name.
    first = arrays[0].shape
    return view_step(aten.cat__default([wrap_known(a) for a in arrays], at)._a, (*first[:at], len(arrays), *first[at:]))


declare("cat(Tensor[] tensors, int dim=0) -> Tensor", cpu=kernels.cat, where="n", grad={"tensors": _cat_backward})
declare("concat(Tensor[] tensors, int dim=0) -> Tensor", composite=lambda tensors, dim: aten.cat(tensors, dim),
        where="f")
declare("concatenate(Tensor[] tensors, int dim=0) -> Tensor", composite=lambda tensors, dim: aten.cat(tensors, dim),
        where="f")
declare(
    "stack(Tensor[] tensors, int dim=0) -> Tensor", cpu=_stack, where="n",
    grad={"tensors": lambda grad, tensors_shape, dim: [aten.select(grad, dim, i) for i in range(len(tensors_shape))]},
)


def _check_list(name: str, tensors: Sequence[Tensor]) -> None:
    # A tensor can be iterated over, so nothing would fail by itself.
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")


@choose("cat", where="f")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Any = None) -> Tensor:
    """Tensors joined along a dimension."""
    if type(tensors) is not list and type(tensors) is not tuple:
        _check_list("cat", tensors)
    return aten.cat__default(tensors, dim if axis is None else axis, out=out)


@choose("stack", where="f")
def stack(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Any = None) -> Tensor:
    """Tensors of one shape joined along a new dimension."""
    if type(tensors) is not list and type(tensors) is not tuple:
        _check_list("stack", tensors)
    return aten.stack__default(tensors, dim if axis is None else axis, out=out)


def _at_least(ndim: int) -> Any:
    def widen(self: Tensor) -> Tensor:
        if self.ndim >= ndim:
            return self
        if not self.ndim:
            return aten.reshape(self, (1,) * ndim)
        if self.ndim == 1:
            rows = aten.unsqueeze(self, 0)
            return rows if ndim == 2 else aten.unsqueeze(rows, -1)
        return aten.unsqueeze(self, -1)

    return widen


def _at_least_form(ndim: int) -> None:
    name = f"atleast_{ndim}d"
    declare(f"{name}(Tensor self) -> Tensor", composite=_at_least(ndim), where="n")
    declare(f"{name}.Sequence(Tensor[] tensors) -> Tensor[]", where="n",
            composite=lambda tensors: tuple(_at_least(ndim)(t) for t in tensors))

    @choose(name, where="f")
    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return getattr(aten, f"{name}__default")(tensors[0])
        given = tensors[0] if len(tensors) == 1 else tensors
        return getattr(aten, f"{name}__Sequence")(given)

    at_least.__name__ = name
    at_least.__doc__ = f"Tensors with at least {ndim} dimensions."


for _ndim in (1, 2, 3):
    _at_least_form(_ndim)


def _refuse_tensor(name: str, tensors: Any) -> None:
    if isinstance(tensors, Tensor):  # its rows would be joined
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")


def _stacker(name: str, ndim: int, dim: int) -> Any:
    def join(tensors: Sequence[Tensor]) -> Tensor:
        _refuse_tensor(name, tensors)
        if not len(tensors):
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        wide = getattr(aten, f"atleast_{ndim}d__Sequence")(tensors)
        return aten.cat(wide, 0 if name == "hstack" and wide[0].ndim == 1 else dim)

    return join


def _column_stack(tensors: Sequence[Tensor]) -> Tensor:
    _refuse_tensor("column_stack", tensors)
    if not len(tensors):
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return aten.hstack([aten.reshape(t, (t._a.size, 1)) if t.ndim <= 1 else t for t in tensors])


def _row_stack(tensors: Sequence[Tensor]) -> Tensor:
    _refuse_tensor("row_stack", tensors)
    return aten.vstack(tensors)


declare("hstack(Tensor[] tensors) -> Tensor", composite=_stacker("hstack", 1, 1), where="f")
declare("vstack(Tensor[] tensors) -> Tensor", composite=_stacker("vstack", 2, 0), where="f")
declare("row_stack(Tensor[] tensors) -> Tensor", composite=_row_stack, where="f")
declare("dstack(Tensor[] tensors) -> Tensor", composite=_stacker("dstack", 3, 2), where="f")
declare("column_stack(Tensor[] tensors) -> Tensor", composite=_column_stack, where="f")


def _block_diag_backward(grad: Tensor, tensors_shape: Any) -> list[Tensor]:
    pieces = []
    row = column = 0
    for shape in tensors_shape:
        rows, columns = ((1, 1, *shape)[-2:])
        block = aten.slice(aten.slice(grad, 0, row, row + rows, 1), 1, column, column + columns, 1)
        pieces.append(aten.reshape(block, shape) if len(shape) < 2 else block)
        row += rows
        column += columns
    return pieces


declare("block_diag(Tensor[] tensors) -> Tensor", cpu=kernels.block_diag, where="n",
        grad={"tensors": _block_diag_backward})


@choose("block_diag", where="f")
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of zeros."""
    return aten.block_diag__default(list(tensors))
