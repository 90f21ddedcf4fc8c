"""Elements brought together by an index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._construct import tensor
from ..._dispatch.namespace import aten
from ..._dtype import bool_, int64, uint8
from ..._memory_format import contiguous_format
from ..._shape import wrap_dim
from ..._tensor import Tensor
from ..view import storage_cells
from . import formula


@formula("scatter_reduce.two")
def scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Elements reduced into the places that an index names along a dimension."""
    dim = wrap_dim(dim, self.dim())
    if self.dtype is bool_:
        return scatter_reduce(self.to(uint8), dim, index, src.to(uint8), reduce, include_self).to(bool_)
    if 0 in (self.dim(), index.dim(), src.dim()):  # an element by itself counts as one of a vector
        vectors = [one if one.dim() else one.reshape(1) for one in (self, index, src)]
        return scatter_reduce(vectors[0], dim, *vectors[1:], reduce, include_self).reshape(self.shape)
    src = _corner(src, index.shape)
    if reduce in ("amax", "amin"):
        return _extreme(self, dim, index, src, reduce, include_self)
    if reduce not in ("sum", "mean", "prod"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    start = self if include_self else self.scatter(dim, index, 1 if reduce == "prod" else 0)
    if reduce == "prod":
        return _product(start, dim, index, src)
    made = start.scatter_add(dim, index, src)
    if reduce == "sum":
        return made
    begun = aten.ones_like(self) if include_self else aten.ones_like(self).scatter(dim, index, 0)
    count = begun.scatter_add(dim, index, aten.ones_like(src)).clamp(min=1)
    return made / count if self.is_floating_point() else aten.div(made, count, rounding_mode="floor")


def _corner(src: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The part of a source that an index covers."""
    for d, n in enumerate(shape):
        src = src.narrow(d, 0, n) if src.shape[d] != n else src
    return src


def _runs(index: Tensor, dim: int, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """An order of the elements along a dimension in which those of one place are together, and the places then."""
    given = index if order is None else index.gather(dim, order)
    places, together = given.sort(dim=dim, stable=True)
    return places, together if order is None else order.gather(dim, together)


def _lasts(places: Tensor, dim: int) -> Tensor:
    """Which is the last element of its place, where those of one place are together."""
    last = aten.ones_like(places, dtype=bool_)
    count = places.shape[dim]
    if count > 1:
        mine, following = (places.narrow(dim, start, count - 1) for start in (0, 1))
        last.narrow(dim, 0, count - 1).copy_(aten.ne(mine, following))
    return last


def _extreme(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """The largest of each place stands last when sorted by value and then by place; it alone is written."""
    if reduce == "amin":
        return _turned(_extreme(_turned(self), dim, index, _turned(src), "amax", include_self))
    if not index.numel():
        return self.clone()
    places, order = _runs(index, dim, src.sort(dim=dim, stable=True)[1])
    largest = src.gather(dim, order)
    chosen = _lasts(places, dim)
    # The others go to one place more at the end, which is cut off.
    room = aten.cat([self, self.narrow(dim, 0, 1)], dim) if self.shape[dim] else self
    found = room.scatter(dim, places.masked_fill(aten.logical_not(chosen), self.shape[dim]), largest)
    found = found.narrow(dim, 0, self.shape[dim])
    if not include_self:
        return found.contiguous()
    # Places that nothing goes to keep their own element, which is the larger one of itself.
    return aten.maximum(self, found)


def _turned(x: Tensor) -> Tensor:
    """The other way round in order, and back: also for the smallest integer."""
    return -x if x.is_floating_point() else -1 - x if x.dtype.is_signed else 255 - x


def _product(start: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Products by place: in runs of one place, each element is multiplied by what is ever further behind it."""
    if not index.numel():
        return start.clone()
    places, order = _runs(index, dim)
    made, count, reach = src.gather(dim, order), src.shape[dim], 1
    while reach < count:
        rest = count - reach
        same = aten.eq(places.narrow(dim, reach, rest), places.narrow(dim, 0, rest))
        before = aten.where(same, made.narrow(dim, 0, rest), aten.ones_like(made.narrow(dim, 0, rest)))
        made = aten.cat([made.narrow(dim, 0, reach), made.narrow(dim, reach, rest) * before], dim)
        reach *= 2
    chosen = _lasts(places, dim)
    factors = aten.ones_like(start)
    room = aten.cat([factors, factors.narrow(dim, 0, 1)], dim)
    room = room.scatter(dim, places.masked_fill(aten.logical_not(chosen), start.shape[dim]), made)
    return start * room.narrow(dim, 0, start.shape[dim])


@formula("scatter.reduce")
def scatter_with(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> Tensor:
    """`scatter_reduce` by its old names."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return scatter_reduce(self, dim, index, src, "sum" if reduce == "add" else "prod", True)


@formula("scatter.value_reduce")
def scatter_number_with(self: Tensor, dim: int, index: Tensor, value: float, reduce: str) -> Tensor:
    """The same with one number."""
    return scatter_with(self, dim, index, aten.full(index.shape, value, dtype=self.dtype, device=self.device), reduce)


@formula("index_reduce")
def index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Slices reduced into those that an index names."""
    dim = wrap_dim(dim, self.dim())
    if self.dim() == 0:
        return index_reduce(self.reshape(1), 0, index, source.reshape(1), reduce, include_self).reshape(())
    slices = (*self.shape[:dim], index.numel(), *self.shape[dim + 1:])
    if index.dim() > 1 or source.shape != slices or source.dtype is not self.dtype:
        raise ValueError("a source that is not slices of self")  # the CPU's kernel explains it
    wide = index.reshape([-1 if d == dim else 1 for d in range(self.dim())]).expand(source.shape)
    return scatter_reduce(self, dim, wide, source, reduce, include_self)


@formula("masked_scatter")
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Elements of a source, one after the other, where a mask is true."""
    self, mask = aten.broadcast_tensors([self, mask])
    wanted, given = mask.sum().item(), source.reshape(-1)
    if wanted > given.numel():
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but number of elements of "
                           f"source < number of ones in mask: {given.numel()} < {wanted}")
    if not wanted:
        return self.clone()
    number = (mask.reshape(-1).to(int64).cumsum(0) - 1).clamp(min=0)
    return aten.where(mask, given[number].reshape(self.shape), self)


@formula("cummax")
def cummax(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The largest element up to each one, and where it is."""
    return _running(self, dim, lambda mine, before: aten.ge(mine, before))


@formula("cummin")
def cummin(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The smallest element up to each one, and where it is."""
    return _running(self, dim, lambda mine, before: aten.le(mine, before))


def _running(self: Tensor, dim: int, better: object) -> tuple[Tensor, Tensor]:
    """The distance that is looked back doubles with each round."""
    dim = wrap_dim(dim, self.dim())
    if self.dim() == 0:
        return self.clone(), aten.zeros_like(self, dtype=int64)
    count, reach, values = self.shape[dim], 1, self.clone()
    numbers = aten.arange(count, device=self.device)
    numbers = numbers.reshape([-1 if d == dim else 1 for d in range(self.dim())]).expand(self.shape).contiguous()
    while reach < count:
        rest = count - reach
        mine, before = values.narrow(dim, reach, rest), values.narrow(dim, 0, rest)
        keep = aten.logical_or(better(mine, before), aten.isnan(mine))  # type: ignore[operator]
        kept = [(values, aten.where(keep, mine, before)),
                (numbers, aten.where(keep, numbers.narrow(dim, reach, rest), numbers.narrow(dim, 0, rest)))]
        values, numbers = (aten.cat([whole.narrow(dim, 0, reach), new], dim) for whole, new in kept)
        reach *= 2
    return values, numbers


@formula("logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """Logarithms of running sums of exponentials."""
    dim = wrap_dim(dim, self.dim())
    if self.dim() == 0:
        return self.clone()
    made, reach = self, 1
    while reach < self.shape[dim]:
        rest = self.shape[dim] - reach
        added = aten.logaddexp(made.narrow(dim, reach, rest), made.narrow(dim, 0, rest))
        made = aten.cat([made.narrow(dim, 0, reach), added], dim)
        reach *= 2
    return made if made is not self else self.clone()


@formula("block_diag")
def block_diag(tensors: list[Tensor]) -> Tensor:
    """Matrices along the diagonal of one."""
    if any(one.dim() > 2 for one in tensors):
        raise ValueError("a block with more than two dimensions")  # the CPU's kernel explains it
    blocks = [one.reshape(1, -1) if one.dim() < 2 else one for one in tensors]
    width, before, rows = sum(one.shape[1] for one in blocks), 0, []
    for one in blocks:
        rows.append(aten.constant_pad_nd(one, [before, width - before - one.shape[1]]))
        before += one.shape[1]
    return aten.cat(rows, 0)


@formula("diagonal_scatter")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """A copy with another diagonal."""
    made = self.clone()
    made.diagonal(offset, dim1, dim2).copy_(src)
    return made


@formula("select_scatter")
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with another slice."""
    made = self.clone()
    made.select(dim, index).copy_(src)
    return made


@formula("slice_scatter")
def slice_scatter(self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """A copy with another stretch."""
    made = self.clone()
    begin, stop, _ = slice(start, end, step).indices(self.shape[dim])
    aten.slice(made, dim, begin, max(begin, stop), step).copy_(src)
    return made


@formula("_as_strided_backward")
def as_strided_backward(grad: Tensor, input_size: Any, input_stride: Any, input_offset: int, size: Any, stride: Any,
                        storage_offset: int) -> Tensor:
    """Each element of the gradient is added to the cell that it was read from; the input's are read of that."""
    read = storage_cells(size, stride, storage_offset)
    cells = storage_cells(input_size, input_stride, input_offset)
    flat = aten.zeros(int(max(read.max(initial=0), cells.max(initial=0))) + 1, dtype=grad.dtype, device=grad.device)
    flat = flat.index_add(0, tensor(read.reshape(-1), device=grad.device), grad.reshape(-1))
    # Cells that an input shows several times share their gradient equally among the elements.
    shown = np.maximum(np.bincount(cells.ravel(), minlength=flat.shape[0]), 1)
    return (flat / tensor(shown, dtype=grad.dtype, device=grad.device))[tensor(cells.copy(), device=grad.device)]


@formula("native_channel_shuffle")
def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """Channels of all groups in turn."""
    batch, channels = self.shape[:2]
    shape = (batch, groups, channels // groups, math.prod(self.shape[2:]))
    apart = self.reshape(shape).transpose(1, 2).clone(memory_format=contiguous_format)
    return apart.reshape(self.shape)
