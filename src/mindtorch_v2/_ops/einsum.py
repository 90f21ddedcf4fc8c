"""Products named by labels: `einsum`, `tensordot`, `inner`, `kron`, all made of permuted and reshaped `bmm`s."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._backends.base import to_host
from .._dispatch.dispatcher import write_results
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._shape import wrap_dim
from .._tensor import Tensor

ELLIPSIS = "..."


def _labels(text: str, start: int, operand: int | None) -> list[str]:
    """The labels of an operand, or of the output; the ellipsis is one of them. `start` is where `text` begins."""
    labels: list[str] = []
    i = 0
    while i < len(text):
        char = text[i]
        if char == " ":
            i += 1
        elif char == ".":
            if ELLIPSIS in labels:
                raise RuntimeError("einsum(): found '.' for " + (
                    "output but an ellipsis (...) was already found" if operand is None else
                    f"operand {operand} for which an ellipsis was already found"))
            if text[i:i + 3] != ELLIPSIS:
                raise RuntimeError("einsum(): found '.' for " + (
                    "output that is not part of any ellipsis (...)" if operand is None else
                    f"operand {operand} that is not part of any ellipsis"))
            labels.append(ELLIPSIS)
            i += 3
        elif char.isascii() and char.isalpha():
            labels.append(char)
            i += 1
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation string, "
                               "subscripts must be in [a-zA-Z]")
    return labels


@functools.lru_cache(maxsize=256)
def _parse(equation: str, ndims: tuple[int, ...]) -> tuple[list[list[str]], list[str], int]:
    """Labels of operands with so many dimensions, labels of the output, and how many dimensions are behind the
    ellipsis."""
    left, arrow, right = equation.partition("->")
    pieces = left.split(",")
    if len(pieces) < len(ndims):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(pieces) > len(ndims):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    inputs, start, hidden = [], 0, 0
    for number, (piece, ndim) in enumerate(zip(pieces, ndims, strict=True)):
        labels = _labels(piece, start, number)
        start += len(piece) + 1
        named = len(labels) - (ELLIPSIS in labels)
        if ELLIPSIS in labels:
            if named > ndim:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                    f"dimensions ({ndim}) for operand {number}")
            hidden = max(hidden, ndim - named)
        elif named != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({ndim}) for operand {number} and no ellipsis was given")
        inputs.append(labels)
    if arrow:
        output = _labels(right, len(left) + 2, None)
        for label in output:
            if label != ELLIPSIS and output.count(label) > 1:
                raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
            if label != ELLIPSIS and not any(label in labels for labels in inputs):
                raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input "
                                   "operand")
    else:
        # Without an arrow: the ellipsis, then the labels seen once, in alphabetical order.
        every = [label for labels in inputs for label in labels]
        output = [ELLIPSIS] if ELLIPSIS in every else []
        output += sorted(label for label in set(every) - {ELLIPSIS} if every.count(label) == 1)
    return inputs, output, hidden


def _spell_out(labels: list[str], ndim: int, hidden: int) -> list[str]:
    """The ellipsis replaced by numbered labels; an operand with fewer hidden dimensions has the last ones."""
    if ELLIPSIS not in labels:
        return labels
    count = hidden if ndim < 0 else ndim - (len(labels) - 1)
    at = labels.index(ELLIPSIS)
    return labels[:at] + [f".{i}" for i in range(hidden - count, hidden)] + labels[at + 1:]


def _take_diagonals(operand: Tensor, labels: list[str], number: int) -> tuple[Tensor, list[str]]:
    """Repeated labels become one dimension, the diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            have, want = operand._a.shape[second], operand._a.shape[first]
            if have != want:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't "
                                   f"match, {have} != {want}")
            operand = aten.movedim(aten.diagonal(operand, 0, first, second), -1, first)
            del labels[second]
    return operand, labels


class _Pair(NamedTuple):
    """How two operands are multiplied: which dimensions are summed before, whether the two change places, how each is
    turned and folded for `bmm`, and how its result is unfolded and turned."""

    alone: tuple[list[int], list[int]]
    swapped: bool
    turned: tuple[list[int], list[int]]
    folded: tuple[tuple[int, ...], tuple[int, ...]]
    unfolded: list[int]
    back: list[int]


@functools.lru_cache(maxsize=256)
def _pair(left: tuple[int, ...], right: tuple[int, ...], summed: tuple[int, ...], may_swap: bool) -> _Pair:
    """For operands of these shapes; nothing is unfolded if no dimension that both have is summed."""
    batch, only_left, only_right, both = [], [], [], []
    alone: tuple[list[int], list[int]] = ([], [])
    for dim in range(len(left)):
        long_left, long_right = left[dim] != 1, right[dim] != 1
        if dim in summed:
            if long_left and long_right:
                both.append(dim)
            elif long_left or long_right:
                alone[long_right].append(dim)
        elif long_left and long_right:
            batch.append(dim)
        elif long_left:
            only_left.append(dim)
        else:
            only_right.append(dim)
    if not both:
        return _Pair(alone, False, ([], []), ((), ()), [], [])
    a, b = (tuple([1 if d in dims else n for d, n in enumerate(shape)]) for shape, dims in zip((left, right), alone))
    rest = [d for d in range(len(left)) if d in summed]
    swapped = bool(may_swap and only_left and only_right and only_right[-1] < only_left[0])
    if swapped:
        a, b, only_left, only_right = b, a, only_right, only_left

    def extent(shape: tuple[int, ...], dims: Sequence[int]) -> int:
        return math.prod(shape[d] for d in dims)

    idle = [d for d in rest if d not in both]
    order = batch + only_left + rest + only_right
    return _Pair(
        alone, swapped, (batch + only_left + both + idle + only_right, batch + both + idle + only_right + only_left),
        ((extent(a, batch), extent(a, only_left), extent(a, both)),
         (extent(a, batch), extent(a, both), extent(b, only_right))),
        [a[d] for d in batch + only_left] + [1] * len(rest) + [b[d] for d in only_right],
        [order.index(d) for d in range(len(left))])


def _pair_product(left: Tensor, right: Tensor, summed: Sequence[int], may_swap: bool = False) -> Tensor:
    """`(left * right).sum(summed, keepdim=True)` by one `bmm`; both have the same number of dimensions.

    With `may_swap` the order of the two follows the result, which then need not be turned.
    """
    if not summed:
        return aten.mul(left, right)
    how = _pair(left._a.shape, right._a.shape, tuple(summed), may_swap)
    for dim in how.alone[0]:
        left = aten.sum(left, (dim,), True)
    for dim in how.alone[1]:
        right = aten.sum(right, (dim,), True)
    if not how.unfolded:
        return aten.mul(left, right)
    if how.swapped:
        left, right = right, left
    made = aten.bmm(aten.reshape(aten.permute(left, how.turned[0]), how.folded[0]),
                    aten.reshape(aten.permute(right, how.turned[1]), how.folded[1]))
    return aten.permute(aten.view(made, how.unfolded), how.back)


class _Alignment(NamedTuple):
    """How operands are brought to the same dimensions: for each of them its new dimensions at the end and its order.
    The result keeps so many, and each product sums some."""

    operands: list[tuple[int, list[int]]]
    kept: int
    dims: int
    summed: list[list[int]]


@functools.lru_cache(maxsize=256)
def _alignment(labels: tuple[tuple[str, ...], ...], kept: tuple[str, ...],
               shapes: tuple[tuple[int, ...], ...]) -> _Alignment:
    """For operands of these labels, none of which an operand has twice, and shapes."""
    dropped = sorted({label for one in labels for label in one} - set(kept))
    order = [*kept, *dropped]
    sizes: dict[str, int] = {}
    operands = []
    for number, (own, shape) in enumerate(zip(labels, shapes, strict=True)):
        for label, extent in zip(own, shape, strict=True):
            known = sizes.get(label, 1)
            if extent != 1 and known not in (1, extent):
                raise RuntimeError(f"einsum(): subscript {label} has size {extent} for operand {number} which does "
                                   f"not broadcast with previously seen size {known}")
            sizes[label] = extent if known == 1 else known
        missing = [label for label in order if label not in own]
        present = [*own, *missing]
        operands.append((len(missing), [present.index(label) for label in order]))
    used = range(len(kept), len(order))
    # A label is summed as soon as no later operand carries it.
    last = {i: max((n for n, own in enumerate(labels) if order[i] in own), default=0) for i in used}
    summed = [[i for i in used if last[i] == number or (number == 1 and last[i] == 0)] for number in range(len(labels))]
    return _Alignment(operands, len(kept), len(order), summed)


def _einsum(equation: str, tensors: Sequence[Tensor], path: Any = None) -> Tensor:
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, output, hidden = _parse(equation, tuple([operand.ndim for operand in tensors]))
    prepared, spelled = [], []
    for number, (operand, labels) in enumerate(zip(tensors, inputs, strict=True)):
        if ELLIPSIS in labels:
            labels = _spell_out(labels, operand.ndim, hidden)
        if len(set(labels)) < len(labels):
            operand, labels = _take_diagonals(operand, labels, number)
        prepared.append(operand)
        spelled.append(tuple(labels))
    how = _alignment(tuple(spelled), tuple(_spell_out(output, -1, hidden)),
                     tuple([operand._a.shape for operand in prepared]))
    aligned = []
    for operand, (missing, turned) in zip(prepared, how.operands, strict=True):
        for _ in range(missing):
            operand = aten.unsqueeze(operand, operand.ndim)
        aligned.append(aten.permute(operand, turned))
    made = aligned[0]
    if len(aligned) == 1:
        return aten.sum(made, list(range(how.kept, how.dims))) if how.dims > how.kept else made
    for operand, now in zip(aligned[1:], how.summed[1:], strict=True):
        made = _pair_product(made, operand, now, may_swap=len(aligned) == 2)
    return aten.view(made, made._a.shape[: how.kept]) if how.dims > how.kept else made


declare("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", composite=_einsum, where="n")


@choose("einsum", where="f")
def einsum(*args: Any) -> Tensor:
    """Sum of products along labelled dimensions: `einsum("ij,jk->ik", a, b)`, or operands each with its list of
    integers: `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")
    if isinstance(args[0], Tensor):
        operands, lists = list(args[0:len(args) - len(args) % 2:2]), args[1::2]
        equation = ",".join(_from_integers(integers) for integers in lists)
        if len(args) % 2:
            equation += "->" + _from_integers(args[-1])
        return aten.einsum__default(equation, operands)
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    return aten.einsum__default(equation, operands)


def _from_integers(integers: Sequence[Any]) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for number in integers:
        if number is not Ellipsis and not 0 <= number < len(letters):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return "".join(ELLIPSIS if n is Ellipsis else letters[n] for n in integers)


# -- tensordot, inner, kron, cross ----------------------------------------------------------------------------------


def _tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self._a.dtype != other._a.dtype:
        raise RuntimeError("tensordot: both inputs should have same dtype")
    for tensor, dims in ((self, dims_self), (other, dims_other)):
        taken = [wrap_dim(d, tensor.ndim) for d in dims]
        for place, d in enumerate(taken):
            if d in taken[:place]:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    first = [wrap_dim(d, self.ndim) for d in dims_self]
    second = [wrap_dim(d, other.ndim) for d in dims_other]
    common = 1
    for given_a, given_b, a, b in zip(dims_self, dims_other, first, second, strict=True):
        have, want = self._a.shape[a], other._a.shape[b]
        if want == 1:
            self = aten.sum(self, (a,), True, dtype=self.dtype)
        elif have == 1:
            other = aten.sum(other, (b,), True, dtype=other.dtype)
        elif have != want:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {have} in dim {given_a} and "
                               f"second has size {want} in dim {given_b}")
        else:
            common *= have
    free_a = [d for d in range(self.ndim) if d not in first]
    free_b = [d for d in range(other.ndim) if d not in second]
    shape = [self._a.shape[d] for d in free_a] + [other._a.shape[d] for d in free_b]
    if not free_a and not free_b:
        left, right = aten.permute(self, first), aten.permute(other, second)
        return aten.reshape(aten.dot(aten.flatten(left), aten.flatten(right)), ())
    rows, columns = math.prod(self._a.shape[d] for d in free_a), math.prod(other._a.shape[d] for d in free_b)
    left = aten.reshape(aten.permute(self, [*free_a, *first]), (rows, common))
    right = aten.reshape(aten.permute(other, [*second, *free_b]), (common, columns))
    return aten.reshape(aten.mm(left, right), shape)


declare("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", composite=_tensordot,
        where="n")


@choose("tensordot", where="f")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Contraction of several dimensions: the last `dims` of `a` with the first of `b`, or two lists of dimensions."""
    if isinstance(dims, Tensor):
        dims = to_host(dims._a).tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = list(range(-dims, 0)), list(range(dims))
    elif isinstance(dims, list) and len(dims) == 1 and isinstance(dims[0], int):
        return tensordot(a, b, dims[0], out)  # a tensor with one element is a number
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    made = aten.tensordot__default(a, b, first, second)
    return made if out is None else write_results("tensordot", out, made)


def _inner(self: Tensor, other: Tensor) -> Tensor:
    if not self.ndim or not other.ndim:
        return aten.mul(self, other)
    if self._a.shape[-1] != other._a.shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(self._a.shape)} and {list(other._a.shape)}")
    return aten.tensordot__default(self, other, [-1], [-1])


declare("inner(Tensor self, Tensor other) -> Tensor", composite=_inner)


def _dense(x: Tensor) -> Tensor:
    return x if x._a.flags.c_contiguous else aten.contiguous(x)


def _kron(self: Tensor, other: Tensor) -> Tensor:
    ndim = max(self.ndim, other.ndim)
    a = (1,) * (ndim - self.ndim) + self._a.shape
    b = (1,) * (ndim - other.ndim) + other._a.shape
    spread_a = [extent for pair in zip(a, (1,) * ndim, strict=True) for extent in pair]
    spread_b = [extent for pair in zip((1,) * ndim, b, strict=True) for extent in pair]
    product = aten.mul(aten._unsafe_view(_dense(self), spread_a), aten._unsafe_view(_dense(other), spread_b))
    return aten._unsafe_view(product, [m * n for m, n in zip(a, b, strict=True)])


declare("kron(Tensor self, Tensor other) -> Tensor", composite=_kron)
