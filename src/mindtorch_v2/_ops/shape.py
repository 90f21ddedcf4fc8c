"""Repeating, turning and shifting tensors, grids, and windows of a copy."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backends.cpu import shape as kernels
from .._backends.cpu import view as views
from .._backends.meta import MetaArray
from .._construct import tensor as make_tensor
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import INTEGER, int64
from .._memory_format import contiguous_format
from .._shape import as_numbers, as_shape, wrap_dim
from .._tensor import Tensor

# -- turning and shifting --------------------------------------------------------------------------------------------

declare("flip(Tensor self, int[] dims) -> Tensor", cpu=kernels.flip, variadic="dims",
        grad={"self": lambda grad, dims: aten.flip(grad, dims)})


def _flipper(name: str, dim: int) -> None:
    def flip(self: Tensor) -> Tensor:
        if self.ndim <= dim:
            raise RuntimeError(f"Input must be >= {dim + 1}-d.")
        return aten.flip(self, (dim,))

    declare(f"{name}(Tensor self) -> Tensor", composite=flip)


_flipper("fliplr", 1)
_flipper("flipud", 0)


def _roll_backward(grad: Tensor, shifts: Any, dims: Any) -> Tensor:
    return aten.roll(grad, [-s for s in as_numbers(shifts)], dims)


declare("roll(Tensor self, int[1] shifts, int[1] dims=()) -> Tensor", cpu=kernels.roll, grad={"self": _roll_backward})
declare("rot90(Tensor self, int k=1, int[] dims=(0, 1)) -> Tensor", cpu=kernels.rot90,
        grad={"self": lambda grad, k, dims: aten.rot90(grad, -k, dims)})

# -- repeating -------------------------------------------------------------------------------------------------------


def _repeat_backward(grad: Tensor, self_shape: Any, repeats: Sequence[int]) -> Tensor:
    if 0 in repeats:
        return aten.zeros(self_shape, dtype=grad.dtype, device=grad.device)
    lead = len(repeats) - len(self_shape)
    shape: list[int] = []
    summed: list[int] = list(range(lead))
    shape += repeats[:lead]
    for times, extent in zip(repeats[lead:], self_shape, strict=True):
        if times != 1:
            summed.append(len(shape))
            shape.append(times)
        shape.append(extent)
    if not summed:
        return grad
    return aten.sum__dim_IntList(aten.reshape(grad, tuple(shape)), summed)


declare("repeat(Tensor self, int[] repeats) -> Tensor", cpu=kernels.repeat, variadic="repeats", where="m",
        grad={"self": _repeat_backward})


def _tile(self: Tensor, dims: Any) -> Tensor:
    repeats = as_shape((dims,)) if not isinstance(dims, int) else (dims,)
    return aten.repeat(self, (1,) * (self.ndim - len(repeats)) + repeats)


declare("tile(Tensor self, int[] dims) -> Tensor", composite=_tile, variadic="dims")


def _repeated_shape(repeats: Any, output_size: int | None) -> Any:
    if output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    return MetaArray.empty((output_size,), repeats.dtype)


declare("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
        cpu=kernels.repeat_positions, meta=_repeated_shape, where="n")


def _repeat_each(self: Tensor, repeats: int, dim: int | None, output_size: int | None) -> Tensor:
    if dim is None:
        self, dim = aten.flatten(self), 0
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    at = wrap_dim(dim, self.ndim)
    wide = aten.unsqueeze(self, at + 1)
    shape = list(wide._a.shape)
    shape[at + 1] = repeats
    copied = aten.clone(aten.expand(wide, tuple(shape)), memory_format=contiguous_format)
    return aten.flatten(copied, at, at + 1)


def _repeat_by_tensor(self: Tensor, repeats: Tensor, dim: int | None, output_size: int | None) -> Tensor:
    if dim is None:
        self, dim = aten.flatten(self), 0
    at = wrap_dim(dim, self.ndim)
    extent = self._a.shape[at] if self.ndim else 1
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if not repeats.ndim or repeats._a.size == 1:
        repeats = aten.expand(aten.reshape(repeats, (1,)), (extent,))
    elif repeats._a.size != extent:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats._a.size} and "
            f"input.size({at}) = {extent}"
        )
    return aten.index_select(self, at, aten.repeat_interleave__Tensor(repeats, output_size=output_size))


declare("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        composite=_repeat_each, where="n")
declare("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        composite=_repeat_by_tensor, where="n")


@choose("repeat_interleave")
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Every entry of a dimension repeated; with one argument, position i repeated `input[i]` times."""
    if repeats is None:
        return aten.repeat_interleave__Tensor(input, output_size=output_size)
    if isinstance(repeats, Tensor):
        return aten.repeat_interleave__self_Tensor(input, repeats, dim, output_size=output_size)
    if not hasattr(repeats, "__index__"):
        raise TypeError("repeat_interleave() received an invalid combination of arguments - repeats must be an int or "
                        f"a Tensor, not {type(repeats).__name__}")
    return aten.repeat_interleave__self_int(input, int(repeats), dim, output_size=output_size)


# -- grids and combinations ------------------------------------------------------------------------------------------


def _meshgrid(tensors: Sequence[Tensor], indexing: str) -> tuple[Tensor, ...]:
    if not len(tensors):
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor}")
        if tensor._a.dtype != tensors[0]._a.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    given = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = tuple(t._a.size for t in given)
    grids = []
    for position, tensor in enumerate(given):
        sizes = tuple(n if d == position else 1 for d, n in enumerate(shape))
        grids.append(aten.expand(aten.view__default(tensor, sizes), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


declare("meshgrid(Tensor[] tensors) -> Tensor[]", composite=lambda tensors: _meshgrid(tensors, "ij"), where="n")
declare("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", composite=_meshgrid, where="n")


@choose("meshgrid", where="f")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors as coordinates of a grid."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if indexing is None:
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      UserWarning, stacklevel=2)
        return aten.meshgrid__default(list(given))
    return aten.meshgrid__indexing(list(given), indexing=indexing)


def _vector(tensor: Tensor) -> None:
    if tensor.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._a.shape)}")


def _cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    for tensor in tensors:
        _vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    return aten.stack([aten.flatten(grid) for grid in aten.meshgrid__default(tensors)], 1)


declare("cartesian_prod(Tensor[] tensors) -> Tensor", composite=_cartesian_prod, where="n")
choose("cartesian_prod", where="f")(lambda *tensors: aten.cartesian_prod__default(list(tensors)))


def _combinations(self: Tensor, r: int, with_replacement: bool) -> Tensor:
    _vector(self)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return aten.new_empty(self, (0,))
    grids = aten.meshgrid__default([self] * r)
    order = aten.meshgrid__default([aten.arange(self._a.size, device=self.device)] * r)
    mask = aten.full(grids[0]._a.shape, True, device=self.device)
    before = aten.le if with_replacement else aten.lt
    for first, second in itertools.pairwise(order):
        mask = aten.mul_(mask, before(first, second))
    return aten.stack([aten.masked_select(grid, mask) for grid in grids], 1)


declare("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", composite=_combinations, where="f")


def _one_hot(self: Tensor, num_classes: int) -> Tensor:
    if self._a.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    array = self._a
    if not array.size or (type(array) is MetaArray and num_classes != -1):
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return aten.zeros((*array.shape, num_classes), dtype=self.dtype, device=self.device)
    if self.is_meta and num_classes > 0:
        return aten.empty((*array.shape, num_classes), dtype=self.dtype, device=self.device)
    low, high = aten.aminmax__default(self)
    if aten.item(low) < 0:
        raise RuntimeError("Class values must be non-negative.")
    highest = aten.item(high)
    if num_classes == -1:
        num_classes = highest + 1
    elif highest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    made = aten.zeros((*array.shape, num_classes), dtype=self.dtype, device=self.device)
    return aten.scatter___value(made, -1, aten.unsqueeze(self, -1), 1)


declare("one_hot(Tensor self, int num_classes=-1) -> Tensor", composite=_one_hot, where="n")

# -- windows of a copy -----------------------------------------------------------------------------------------------


def _zeros_for(grad: Tensor, shape: Any) -> Tensor:
    return aten.zeros(shape, dtype=grad.dtype, device=grad.device)


declare(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", cpu=kernels.placed(views.select),
    grad={"self": lambda grad, src_shape, dim, index: aten.select_scatter(
              grad, _zeros_for(grad, src_shape), dim, index),
          "src": lambda grad, dim, index: aten.select(grad, dim, index)},
)
declare(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    cpu=kernels.placed(views.slice_dim),
    grad={"self": lambda grad, src_shape, dim, start, end, step: aten.slice_scatter(
              grad, _zeros_for(grad, src_shape), dim, start, end, step),
          "src": lambda grad, dim, start, end, step: aten.slice(grad, dim, start, end, step)},
)
declare(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    cpu=kernels.placed(views.diagonal),
    grad={"self": lambda grad, src_shape, offset, dim1, dim2: aten.diagonal_scatter(
              grad, _zeros_for(grad, src_shape), offset, dim1, dim2),
          "src": lambda grad, offset, dim1, dim2: aten.diagonal(grad, offset, dim1, dim2)},
)
declare(
    "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", cpu=kernels.narrow_copy,
    grad={"self": lambda grad, self_shape, dim, start, length: aten.slice_backward(
        grad, self_shape, dim, (first := start + self_shape[dim] if start < 0 else start), first + length, 1)},
)


@choose("unravel_index", where="f")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Row-major positions as one coordinate tensor per dimension."""
    if indices.dtype.category != INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    # How far apart the entries of each dimension are, from the last, whose entries are neighbours.
    steps = [1, *itertools.accumulate(sizes[:0:-1], operator.mul)][::-1] if sizes else []
    where: dict[str, Any] = {"dtype": int64, "device": indices.device}
    coordinates = aten.floor_divide(aten.unsqueeze(indices, -1), make_tensor(steps, **where))
    return aten.unbind(aten.remainder(coordinates, make_tensor(sizes, **where)), -1)
