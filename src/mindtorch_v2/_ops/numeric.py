"""Numerical helpers: covariance, finite differences, parts of floating numbers, segments, norms along dimensions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._autograd.graph import as_leaf
from .._backends.base import placed, to_host
from .._backends.cpu import numeric as kernels
from .._backends.sparse import SparseArray
from .._device import DeviceLike
from .._dispatch.dtype_rules import unsupported
from .._dispatch.layouts import suggested_format
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dtype import INTEGER, DefaultDtype, DType, float64
from .._memory_format import preserve_format
from .._shape import as_shape, wrap_dim
from .._tensor import Tensor, wrap
from .create import OPTIONS, out_dtype, range_out
from .formulas import NOT_IMPLEMENTED, conj, not_implemented
from .return_types import named

# -- parts of a number -----------------------------------------------------------------------------------------------


def _frexp_backward(grads: Any, result1: Any) -> Any:
    # A number is its mantissa times a power of 2.
    return grads[0] * aten.exp2(-aten.to(aten.detach(result1), grads[0].dtype))


declare("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", cpu=kernels.frexp, where="n",
        differentiable=(0,), grad={"self": _frexp_backward})


FREXP = named("frexp", ("mantissa", "exponent"))


@choose("frexp", where="fm")
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """Mantissas between 1/2 and 1, and exponents of 2."""
    made = aten.frexp__Tensor(input, out=out)
    return (FREXP if out is None else FREXP.written)(made)


@choose("float_power_", where="m")
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power` in place, for tensors that have its dtype already."""
    other = exponent.dtype.is_complex if isinstance(exponent, Tensor) else isinstance(exponent, complex)
    wanted = float64.to_complex() if other or self.dtype.is_complex else float64
    if self.dtype is not wanted:
        raise RuntimeError(f"the base given to float_power_ has dtype {pretty(self.dtype)} but the operation's result "
                           f"requires dtype {pretty(wanted)}")
    return aten.pow_(self, aten.to(exponent, wanted) if isinstance(exponent, Tensor) else exponent)


# -- filling ---------------------------------------------------------------------------------------------------------

@choose("fill", where="f")
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` filled with one value."""
    return aten.fill__Tensor(input, value) if isinstance(value, Tensor) else aten.fill__Scalar(input, value)


def _fill_diagonal(self: Tensor, fill_value: Any, wrap_around: bool) -> Tensor:
    shape = self._a.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    steps = self.stride()
    rows, columns = shape[0], shape[1]
    count = min(shape)
    main = aten.as_strided(self, (count,), (sum(steps),), self.storage_offset())
    aten.fill_(main, fill_value)
    if wrap_around and len(shape) == 2 and rows > columns + 1:
        # After each full diagonal one row is left out.
        offset = self.storage_offset() + steps[0] * (columns + 1)
        for start in range(0, rows - columns - 1, columns + 1):
            size = min(columns, rows - columns - 1 - start)
            aten.fill_(aten.as_strided(self, (size,), (sum(steps),), offset + steps[0] * start), fill_value)
    return self


declare("fill_diagonal_(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", composite=_fill_diagonal,
        where="m")


# -- shapes ----------------------------------------------------------------------------------------------------------


def _sum_to_size(self: Tensor, size: Any) -> Tensor:
    wanted = as_shape((size,)) if not isinstance(size, int) else (size,)
    shape = self._a.shape
    lead = len(shape) - len(wanted)
    if lead < 0 or any(n not in (1, have) for n, have in zip(wanted, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    if not wanted:
        return aten.sum(self)
    dims = [*range(lead), *(lead + i for i, n in enumerate(wanted) if n == 1 and shape[lead + i] != 1)]
    made = aten.sum__dim_IntList(self, dims, True) if dims else self
    return aten.view(made, wanted) if lead else made




def _is_set_to(self: Tensor, tensor: Tensor) -> bool:
    mine, other = self._a, tensor._a
    return (mine.shape == other.shape and mine.strides == other.strides and self.data_ptr() == tensor.data_ptr()
            and self.untyped_storage() == tensor.untyped_storage())


declare("is_same_size(Tensor self, Tensor other) -> bool", where="n",
        composite=lambda self, other: tuple(self._a.shape) == tuple(other._a.shape))
declare("is_set_to(Tensor self, Tensor tensor) -> bool", composite=_is_set_to, where="n")
def _resize_sparse_as(self: Tensor, template: Tensor) -> Tensor:
    mine, other = self._a, template._a
    if not isinstance(other, SparseArray) or other.layout != mine.layout:
        raise NotImplementedError("Could not run 'aten::resize_' with arguments from the 'SparseCPU' backend: both or "
                                  "neither of the tensors have to be sparse, in the same layout")
    if mine.shape != other.shape or len(mine.indices) != len(other.indices):
        if mine.indices.shape[1]:
            raise NotImplementedError("resize_as_ of a sparse tensor that has elements is not supported")
        mine.take_over(SparseArray(other.indices[:, :0].copy(), np.zeros((0, *other.values.shape[1:]), mine.dtype),
                                   other.shape, True, mine.layout))
    return self


def _resize_as(self: Tensor, the_template: Tensor, memory_format: Any) -> Tensor:
    if isinstance(self._a, SparseArray):
        return _resize_sparse_as(self, the_template)
    if memory_format is preserve_format:
        memory_format = suggested_format(the_template._a)
    return aten.resize_(self, the_template._a.shape, memory_format=memory_format)


declare("resize_as_(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor", where="n",
        composite=_resize_as)
declare("sum_to_size(Tensor self, int[] size) -> Tensor", composite=_sum_to_size, where="m", variadic="size")


declare("hash_tensor(Tensor self, int[1] dim=(), *, bool keepdim=False, int mode=0) -> Tensor",
        cpu=kernels.hash_tensor)
declare("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", cpu=kernels.nonzero_static)


# -- norms -----------------------------------------------------------------------------------------------------------


def _renorm_norms(self: Tensor, p: Any, dim: int) -> Any:
    others = [d for d in range(self.ndim) if d != dim]
    return aten.linalg_vector_norm(self, p, others, True)


def _renorm_backward(grad: Tensor, self: Tensor, p: Any, dim: int, maxnorm: Any) -> Any:
    at = wrap_dim(dim, self.ndim)
    others = [d for d in range(self.ndim) if d != at]
    norms = _renorm_norms(self, p, at)
    inverse = aten.reciprocal(norms + 1e-7)
    along = aten.sum__dim_IntList(conj(self) * grad, others, True)
    if self.dtype.is_complex:
        along = aten.real(along)
    slope = _norm_slope(self, norms, p)
    inner = maxnorm * inverse * (grad - slope * along * inverse)
    return aten.where(norms > maxnorm, inner, grad)


def _norm_slope(self: Tensor, norms: Any, p: Any) -> Any:
    """The derivative of each norm by the elements."""
    if p == 2:
        return self / aten.where(norms == 0, 1.0, norms)
    size = aten.abs(self)
    if p == math.inf:
        # Shared by the elements of the largest size.
        largest = aten.to(size == norms, size.dtype)
        others = [d for d in range(self.ndim) if norms._a.shape[d] == 1]
        return aten.sgn(self) * largest / aten.sum__dim_IntList(largest, others, True)
    return aten.sgn(self) * aten.pow(size, p - 1) / aten.pow(aten.where(norms == 0, 1.0, norms), p - 1)


declare("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", cpu=kernels.renorm, inplace=True,
        grad={"self": _renorm_backward})
declare("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", where="n",
        composite=lambda self, dim, keepdim: aten.linalg_vector_norm(self, 2, dim, keepdim))
declare("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", where="n",
        composite=lambda self, keepdim: aten.linalg_matrix_norm(self, "nuc", (-2, -1), keepdim))
declare("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", where="n",
        composite=lambda self, dim, keepdim: aten.linalg_matrix_norm(self, "nuc", dim, keepdim))


@choose("frobenius_norm", where="f")
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along dimensions."""
    if isinstance(dim, (list, tuple)) and len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return aten.frobenius_norm__dim(input, dim, keepdim)


@choose("nuclear_norm", where="f")
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices."""
    if dim is None or isinstance(dim, bool):
        return aten.nuclear_norm__default(input, bool(dim) or keepdim)
    return aten.nuclear_norm__dim(input, dim, keepdim)


# -- covariance ------------------------------------------------------------------------------------------------------


def _weights(name: str, weights: Any, count: int, integral: bool) -> Any:
    if weights is None:
        return None
    if weights.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} "
                           "dimensions")
    if integral != (weights.dtype.category == INTEGER):
        raise RuntimeError(f"cov(): expected {name} to have {'integral' if integral else 'floating point'} dtype but "
                           f"got {name} with {pretty(weights.dtype)} dtype")
    if weights._a.size != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but "
                           f"got {weights._a.size} != {count}")
    if bool(aten.any(aten.lt(weights, 0))):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights


def _cov(self: Tensor, correction: int, fweights: Any, aweights: Any) -> Tensor:
    if self.ndim > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{self.ndim} dimensions")
    if self.dtype.category == 0:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    table = aten.view(self, (1, -1)) if self.ndim < 2 else self
    count = table._a.shape[1]
    weights = _weights("fweights", fweights, count, True)
    extra = _weights("aweights", aweights, count, False)
    if extra is not None:
        weights = extra if weights is None else weights * extra
    if weights is None:
        mean = aten.sum__dim_IntList(table, (1,)) / count
        scale: Any = count - correction
    else:
        total = aten.sum(weights)
        if not total.is_meta and total.item() == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = aten.sum__dim_IntList(table * weights, (1,)) / total
        scale = total - correction if extra is None or correction == 0 else (
            total - correction * aten.sum(weights * extra) / total)
    if bool(scale <= 0):
        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
                      "observations.", UserWarning, stacklevel=3)
    centred = table - aten.unsqueeze(mean, 1)
    other = adjoint_of(centred if weights is None else centred * weights)
    bottom = aten.clamp(scale, min=0) if isinstance(scale, Tensor) else max(scale, 0)
    return aten.squeeze__default(aten.true_divide(aten.mm(centred, other), bottom))


def adjoint_of(x: Any) -> Any:
    """The conjugate transpose."""
    return conj(aten.t(x))


def _corrcoef(self: Tensor) -> Tensor:
    if self.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{self.ndim} dimensions")
    found = aten.cov(self)
    if found.ndim == 0:
        return found / found
    diagonal = aten.diagonal(found)
    spread = aten.sqrt(aten.real(diagonal) if found.dtype.is_complex else diagonal)
    found = found / aten.view(spread, (-1, 1)) / aten.view(spread, (1, -1))
    if found.dtype.is_complex:
        return aten.complex(aten.clamp(aten.real(found), -1, 1), aten.clamp(aten.imag(found), -1, 1))
    return aten.clamp(found, -1, 1)


declare("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        composite=_cov)
declare("corrcoef(Tensor self) -> Tensor", composite=_corrcoef)


# -- segments --------------------------------------------------------------------------------------------------------


def _segment_kernel(data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool,
                    initial: Any) -> Any:
    if reduce not in ("sum", "prod", "mean", "max", "min", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    given = offsets if lengths is None else lengths
    if given.dtype not in (np.int64, np.int32):
        raise unsupported("_segment_reduce_lengths_cpu_kernel1", given.dtype)
    lengths = np.diff(offsets) if lengths is None else lengths
    at = wrap_dim(axis, data.ndim)
    if at != lengths.ndim - 1:
        raise RuntimeError("segment_reduce(): Expected axis to be the last dimension of lengths but got "
                           f"{axis}.")
    if not unsafe:
        if np.any(lengths < 0):
            raise RuntimeError("lengths contains negative value!")
        if np.any(lengths.sum(-1) != data.shape[at]):
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe.")
    if data.dtype.kind in "biuc":
        raise unsupported("_segment_reduce_cpu", data.dtype)
    return kernels.segment_reduce(data, _REDUCTIONS.get(reduce, reduce), lengths, at, initial)


def _segment_backward(grad: Tensor, output: Tensor, data: Tensor, reduce: str, lengths: Tensor | None,
                      offsets: Tensor | None, axis: int, initial: Any) -> Tensor:
    return aten._segment_reduce_backward(grad, output, data, _REDUCTIONS.get(reduce, reduce), lengths=lengths,
                                         offsets=offsets, axis=axis, initial=initial)


_REDUCTIONS = {"max": "amax", "min": "amin"}
declare(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
    "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor", cpu=_segment_kernel, where="f",
    grad={"data": lambda grad, result, data, reduce, lengths, offsets, axis, initial: _segment_backward(
        grad, result, data, reduce, lengths, offsets, axis, initial)},
)
declare(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, "
    "Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor", where="n",
    cpu=lambda grad, output, data, reduce, lengths, offsets, axis, initial: kernels.segment_reduce_backward(
        grad, data, output, reduce, np.diff(offsets) if lengths is None else lengths, wrap_dim(axis, data.ndim),
        initial),
    node=NOT_IMPLEMENTED, grad={("grad", "output", "data"): not_implemented("_segment_reduce_backward")},
)


# -- histograms and ranges -------------------------------------------------------------------------------------------


def _histogramdd(input: Tensor, bins: Any, range: Any, weight: Tensor | None, density: bool) -> Any:
    columns = input._a.shape[-1]
    if input._a.dtype.kind in "biuc" or input._a.dtype.itemsize == 2:
        raise unsupported("histogramdd", input._a.dtype)
    points = to_host(aten.reshape(input, (-1, columns))._a)
    if isinstance(bins, (list, tuple)) and bins and isinstance(bins[0], Tensor):
        wanted: Any = [to_host(b._a) for b in bins]
    else:
        wanted = [bins] * columns if isinstance(bins, int) else list(bins)
    if len(wanted) != columns:
        if isinstance(bins[0], Tensor):
            raise RuntimeError(f"torch.histogramdd: expected {columns} sequences of bin edges for a "
                               f"{columns}-dimensional histogram but got {len(wanted)}")
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input. They "
                           f"are {len(wanted)} and {columns}.")
    if range is not None and len(range) != 2 * columns:
        raise RuntimeError(f"torch.histogramdd: for a {columns}-dimensional histogram range should have {2 * columns} "
                           f"elements, but got {len(range)}")
    flat_weight = None if weight is None else to_host(weight._a).reshape(-1)
    counts, edges = kernels.histogramdd(points, wanted, range, flat_weight, density)
    return wrap(placed(counts, input.device)), tuple(wrap(placed(e, input.device)) for e in edges)


for _overload, _bins in (("", "int[] bins"), (".int_bins", "int bins"), (".TensorList_bins", "Tensor[] bins")):
    declare(f"histogramdd{_overload}(Tensor self, {_bins}, float[]? range=None, Tensor? weight=None, "
            "bool density=False) -> (Tensor hist, Tensor[] bin_edges)", composite=_histogramdd, where="n")


@choose("histogramdd", where="f")
def histogramdd(input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None,
                density: bool = False) -> Any:
    """Counts of points in a grid of bins, and the edges of the bins in each dimension."""
    if isinstance(bins, int):
        form = aten.histogramdd__int_bins
    else:
        form = aten.histogramdd__TensorList_bins if bins and isinstance(bins[0], Tensor) else aten.histogramdd__default
    return named("histogramdd", ("hist", "bin_edges"))(form(input, bins, range, weight, density))


def _range(start: Any, end: Any, step: Any, dtype: DType | None, layout: Any, device: DeviceLike,
           pin_memory: bool | None) -> Tensor:
    kind = dtype or DefaultDtype.value
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step + 1)
    # Wherever the last step falls: the end is included.
    return aten.arange(start, start + count * step, step, dtype=kind, device=device)[:count]


declare(f"range.step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor", composite=_range, where="n")


@choose("range", where="f")
def range_(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: DType | None = None,
           layout: Any = None, device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """Numbers from `start` to `end`, which is included."""
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).", UserWarning, stacklevel=2)
    if out is not None:
        dtype = out_dtype("range", out, dtype)
    made = aten.range__step(start, end, step, dtype=dtype, device=device)
    return range_out(made, requires_grad, out)


declare(f"empty_permuted(int[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor", where="n",
        composite=lambda size, order, dtype, layout, device, pin: _empty_permuted(size, order, dtype, device))


def _empty_permuted(size: Sequence[int], order: Sequence[int], dtype: DType | None, device: DeviceLike) -> Tensor:
    if len(order) != len(size):
        raise RuntimeError(f"Number of dimensions in size does not match the length of the physical_layout; i.e. "
                           f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}")
    for place, dim in enumerate(order):
        if not 0 <= dim < len(size):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} "
                               f"at index {place}); negative dims are not supported here")
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed in physical_layout")
    steps, step = [0] * len(size), 1
    for dim in reversed(order):
        steps[dim] = step
        step *= max(size[dim], 1)
    return aten.empty_strided(tuple(size), tuple(steps), dtype=dtype, device=device)


@choose("empty_permuted", where="f")
def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: DType | None = None,
                   layout: Any = None, device: DeviceLike = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Tensor:
    """Memory for a tensor whose dimensions lie in the given order, the outermost first."""
    made = aten.empty_permuted__default(size, physical_layout, dtype=dtype, layout=layout, device=device,
                                        pin_memory=pin_memory)
    return as_leaf(made) if requires_grad else made
