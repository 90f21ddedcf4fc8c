"""Looking up, counting and naming elements."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.namespace import aten
from ..._dtype import bool_, float32, float64, int32, int64
from ..._shape import wrap_dim
from ..._tensor import Tensor
from . import formula


@formula("searchsorted.Tensor")
def searchsorted(sequence: Tensor, self: Any, out_int32: bool, right: bool, side: str | None,
                 sorter: Tensor | None) -> Tensor:
    """Where elements would be inserted: steps of half the length, of a quarter and so on, for all of them at once."""
    if sequence.dim() != 1 and sequence.shape[:-1] != self.shape[:-1]:
        raise ValueError("boundaries and values differ in their first dimensions")  # the CPU's kernel explains it
    if side not in (None, "left", "right") or (right and side == "left"):
        raise ValueError("a side that is none, or not the one that right says")  # the CPU's kernel explains it
    if sorter is not None:
        if sorter.shape != sequence.shape:
            raise ValueError("a sorter of another shape")  # the CPU's kernel explains it
        sequence = sequence.gather(-1, sorter)
    count, to_right = sequence.shape[-1], right or side == "right"
    values = self.reshape(-1) if sequence.dim() == 1 else self
    place = aten.zeros_like(values, dtype=int64)
    step = 1 << count.bit_length()
    while step > 1 and count:
        step //= 2
        further = place + step
        found = sequence.gather(-1, (further - 1).clamp(max=count - 1))
        before = aten.logical_not(found > values if to_right else found >= values)
        place = aten.where(aten.logical_and(before, further <= count), further, place)
    return place.reshape(self.shape).to(int32 if out_int32 else int64)


@formula("bucketize.Tensor")
def bucketize(self: Any, boundaries: Tensor, out_int32: bool, right: bool) -> Tensor:
    """The bucket of each element between boundaries."""
    return searchsorted(boundaries, self, out_int32, right, None, None)


def _beside(value: Any, tensor: Tensor) -> Tensor:
    return aten.full((), value, dtype=aten.result_type(tensor, value), device=tensor.device)


@formula("searchsorted.Scalar")
def searchsorted_number(sequence: Tensor, value: Any, *rest: Any) -> Tensor:
    """Where a number would be inserted."""
    return searchsorted(sequence, _beside(value, sequence), *rest)


@formula("bucketize.Scalar")
def bucketize_number(value: Any, boundaries: Tensor, *rest: Any) -> Tensor:
    """The bucket of a number."""
    return bucketize(_beside(value, boundaries), boundaries, *rest)


@formula("isin.Tensor_Scalar")
def isin_number(elements: Tensor, value: Any, assume_unique: bool, invert: bool) -> Tensor:
    """Whether each element is a number."""
    return aten.ne(elements, value) if invert else aten.eq(elements, value)


@formula("isin.Scalar_Tensor")
def isin_tensor(value: Any, tests: Tensor, assume_unique: bool, invert: bool) -> Tensor:
    """Whether a number is among others."""
    found = aten.eq(tests, value).any()
    return aten.logical_not(found) if invert else found


@formula("bincount")
def bincount(self: Tensor, weights: Tensor | None, minlength: int) -> Tensor:
    """How often each number occurs. How many there are has to be known first."""
    if minlength < 0 or self.dim() != 1 or self.is_floating_point():
        raise ValueError("wrong arguments of bincount")  # the CPU's kernel explains it
    if not self.numel():
        return aten.zeros(minlength, dtype=int64, device=self.device)
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    least, most = self.min().item(), self.max().item()
    if least < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        weights = aten.ones_like(self, dtype=int64)
    elif weights.dtype is not float32:
        weights = weights.to(float64)
    made = aten.zeros(max(most + 1, minlength), dtype=weights.dtype, device=self.device)
    return made.index_add(0, self.to(int64), weights)


@formula("histc")
def histc(self: Tensor, bins: int, low: Any, high: Any) -> Tensor:
    """How many elements are in each of several equal stretches; the last one has its upper end too."""
    if bins <= 0 or not self.is_floating_point():
        raise ValueError("wrong arguments of histc")  # the CPU's kernel explains it
    if low == high and self.numel():
        low, high = self.min().item(), self.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high:
        low, high = low - 1, high + 1
    flat = self.reshape(-1)
    place = ((flat - low) * bins / (high - low)).to(int64).clamp(0, bins - 1)
    inside = aten.logical_and(flat >= low, flat <= high).to(self.dtype)
    return aten.zeros(bins, dtype=self.dtype, device=self.device).index_add(0, place, inside)


# -- what is there once ------------------------------------------------------------------------------------------------


def _runs(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where runs of equal elements, or rows, begin, the number of the run that each is in, and how long runs are."""
    count = rows.shape[0]
    fresh = aten.ones(count, dtype=bool_, device=rows.device)
    if count > 1:
        other = aten.ne(rows[1:], rows[:-1])
        fresh[1:] = other if other.dim() == 1 else other.any(1)
    begins = fresh.nonzero().reshape(-1)
    ends = aten.cat([begins[1:], aten.full((1,), count, dtype=int64, device=rows.device)])
    return begins, fresh.to(int64).cumsum(0) - 1, ends[:begins.shape[0]] - begins


def _wanted(found: Tensor, inverse: Tensor, lengths: Tensor, return_inverse: bool,
            return_counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """What was asked for; the rest is empty."""
    nothing = aten.empty(0, dtype=int64, device=found.device)
    return found, inverse if return_inverse else nothing, lengths if return_counts else nothing


def _back(order: Tensor, values: Tensor) -> Tensor:
    """Values in an order, where they came from."""
    return aten.zeros_like(order).scatter(0, order, values)


@formula("_unique2")
def unique(self: Tensor, in_order: bool, return_inverse: bool, return_counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The elements without repetition, in order."""
    values, order = self.reshape(-1).sort(stable=True)
    begins, number, lengths = _runs(values)
    return _wanted(values[begins], _back(order, number).reshape(self.shape), lengths, return_inverse, return_counts)


def _rows(self: Tensor, dim: int) -> Tensor:
    """Slices along a dimension as rows."""
    if not self.numel() and self.shape[dim]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    moved = self.movedim(dim, 0) if self.dim() else self.reshape(1)
    return moved.reshape(moved.shape[0], -1 if self.numel() else 1)


def _ranks(columns: Tensor) -> Tensor:
    """The place of each element among the distinct ones of its column."""
    values, order = columns.sort(dim=0, stable=True)
    steps = aten.zeros_like(order)
    steps[1:] = aten.ne(values[1:], values[:-1]).to(int64)
    return _back(order, steps.cumsum(0))


def _row_ranks(rows: Tensor) -> Tensor:
    """The place of each row among the distinct ones: those of two columns together are a column of half as many."""
    ranks = _ranks(rows)
    while ranks.shape[1] > 1:
        if ranks.shape[1] % 2:
            ranks = aten.cat([ranks, aten.zeros_like(ranks[:, :1])], 1)
        ranks = _ranks(ranks[:, ::2] * rows.shape[0] + ranks[:, 1::2])
    return ranks.reshape(-1)


@formula("unique_dim")
def unique_dim(self: Tensor, dim: int, in_order: bool, return_inverse: bool,
               return_counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The slices along a dimension without repetition, in order of their elements."""
    rows = _rows(self, dim)
    if not self.numel():
        nothing = aten.empty(0, dtype=int64, device=self.device)
        return self.clone(), nothing, nothing
    ranks, order = _row_ranks(rows).sort(stable=True)
    begins, number, lengths = _runs(ranks)
    found = self.index_select(dim, order[begins])
    return _wanted(found, _back(order, number), lengths, return_inverse, return_counts)


@formula("unique_consecutive")
def unique_consecutive(self: Tensor, return_inverse: bool, return_counts: bool,
                       dim: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """The first of each run of equal elements, or slices."""
    if dim is None:
        flat = self.reshape(-1)
        begins, number, lengths = _runs(flat)
        return _wanted(flat[begins], number.reshape(self.shape), lengths, return_inverse, return_counts)
    rows = _rows(self, dim)
    if not self.numel():
        nothing = aten.empty(0, dtype=int64, device=self.device)
        return self.clone(), nothing, nothing
    begins, number, lengths = _runs(rows)
    return _wanted(self.index_select(dim, begins), number, lengths, return_inverse, return_counts)


# -- the middle and the most frequent ----------------------------------------------------------------------------------


def _picked(self: Tensor, index: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values = self.gather(dim, index)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


@formula("mode")
def mode(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The most frequent value along a dimension, the smallest of several, at its last occurrence."""
    dim = wrap_dim(dim, self.dim())
    if not self.dim():
        return self.clone(), aten.zeros_like(self, dtype=int64)
    if not self.shape[dim]:
        raise ValueError("mode of nothing")  # the CPU's kernel explains it
    ordered, order = self.movedim(dim, -1).sort(dim=-1, stable=True)
    place = aten.arange(ordered.shape[-1], device=self.device)
    begins = aten.zeros_like(order)
    begins[..., 1:] = aten.ne(ordered[..., 1:], ordered[..., :-1]).to(int64) * place[1:]
    length = place - begins.cummax(-1)[0]
    # The first place where a run reaches the greatest length is the end of the first such run.
    end = aten.where(aten.eq(length, length.amax(-1, True)), place, place.shape[0]).amin(-1, True)
    return _picked(self, order.gather(-1, end).movedim(-1, dim), dim, keepdim)


@formula("nanmedian.dim")
def nanmedian_along(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The lower median along a dimension of what is a number."""
    dim = wrap_dim(dim, self.dim())
    if not self.dim():
        return self.clone(), aten.zeros_like(self, dtype=int64)
    if not self.shape[dim]:
        raise ValueError("nanmedian of nothing")  # the CPU's kernel explains it
    valid = aten.logical_not(aten.isnan(self)).sum([dim], True)
    middle = aten.div((valid - 1).clamp(min=0), 2, rounding_mode="floor")
    return _picked(self, self.sort(dim=dim, stable=True)[1].gather(dim, middle), dim, keepdim)


@formula("nanmedian")
def nanmedian(self: Tensor) -> Tensor:
    """The lower median of what is a number."""
    if not self.numel():
        return aten.full((), math.nan if self.is_floating_point() else 0, dtype=self.dtype, device=self.device)
    return nanmedian_along(self.reshape(-1), 0, False)[0]


@formula("repeat_interleave.Tensor")
def repeat_interleave(repeats: Tensor, output_size: int | None) -> Tensor:
    """Each number as often as is asked for. How many that are has to be known first."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (int32, int64):
        raise unsupported("repeat_interleave_cpu", repeats._a.dtype)
    if repeats.numel() and repeats.min().item() < 0:
        raise RuntimeError("repeats can not be negative")
    ends = repeats.cumsum(0)
    total = output_size if output_size is not None else ends[-1].item() if repeats.numel() else 0
    numbers = aten.arange(total, dtype=ends.dtype, device=repeats.device)
    return searchsorted(ends, numbers, False, True, None, None).to(repeats.dtype)
