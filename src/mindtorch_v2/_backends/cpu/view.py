"""View kernels: other shapes and strides on the same memory. None of them copies."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.steps import as_strided as strided_step
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY, cpp_name, dtype
from ..._shape import as_shape, infer_size, numel, view_strides, wrap_dim
from . import providers

Array = Any
ndarray = np.ndarray


@providers.direct("from_strides")
def from_strides(a: Array, shape: Sequence[int], byte_strides: Sequence[int]) -> Array:
    """A view with any geometry that starts where `a` starts.

    NumPy's `as_strided` takes several microseconds. The constructor takes half of one but needs contiguous memory: that
    of `a`, or of its base if `a` is the same memory with permuted dimensions.
    """
    if a.size:
        base = a if a.flags.c_contiguous else a.base
        if base is a or (type(base) is ndarray and base.ndim == a.ndim and base.dtype == a.dtype
                         and base.flags.c_contiguous
                         and sorted(zip(base.shape, base.strides)) == sorted(zip(a.shape, a.strides))):
            try:
                return ndarray(tuple(shape), a.dtype, base, 0, tuple(byte_strides))
            except ValueError:
                pass  # the view reaches beyond `a`, into the rest of its storage
    return _within(a, shape, byte_strides, 0)


@providers.direct("reshaped")
def reshaped(a: Array, shape: Any) -> tuple[Sequence[int], Sequence[int] | None]:
    """A shape without its -1 and, of an array that is not in row-major order, the strides in elements with which it
    reads so: None if a copy is needed. Also of arrays of other devices."""
    size = infer_size(as_shape((shape,)) if not isinstance(shape, int) else (shape,), a.size)
    if a.flags.c_contiguous:
        return size, None
    item = a.dtype.itemsize
    return size, view_strides(a.shape, tuple(s // item for s in a.strides), size)


def owner(a: Array) -> Array:
    """The array that owns the memory of `a`."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def address(a: Array) -> int:
    """The address at which an array begins."""
    return a.__array_interface__["data"][0] if providers.native is None else providers.native.address(a)


def strided(a: Array, shape: Sequence[int], byte_strides: Sequence[int], byte_offset: int = 0) -> Array:
    """A view with any geometry. `byte_offset` counts from the first element of `a`."""
    return from_strides(a, shape, byte_strides) if byte_offset == 0 else _within(a, shape, byte_strides, byte_offset)


def _within(a: Array, shape: Sequence[int], byte_strides: Sequence[int], byte_offset: int) -> Array:
    """A view of the memory that `a` is in; unlike with NumPy's `as_strided`, its base leads to the owner."""
    base = owner(a)
    start = address(a) - address(base) + byte_offset
    flat = base if base.flags.c_contiguous else base.transpose(np.argsort(base.strides)[::-1])
    if byte_offset == 0 and not (a.size and flat.flags.c_contiguous):  # nothing to point into, or an owner with gaps
        return np.lib.stride_tricks.as_strided(a, shape, byte_strides)
    if flat.dtype.isbuiltin != 1 or not flat.flags.c_contiguous:
        flat = flat.reshape(-1).view(np.uint8)  # types from ml_dtypes are not buffers
    return ndarray(tuple(shape), a.dtype, flat, start, tuple(byte_strides))


def as_strided(a: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Array:
    """Any geometry, in elements, with an offset from the start of the storage."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    item = a.dtype.itemsize
    base = owner(a)
    available = base.nbytes // item
    own = (address(a) - address(base)) // item if a.size else 0
    start = own if storage_offset is None else storage_offset
    last = start + sum((n - 1) * s for n, s in zip(size, stride))
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start}")
    if min(size, default=0) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if numel(size) and last >= available:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and itemsize {item} "
            f"requiring a storage size of {(last + 1) * item} are out of bounds for storage of size {base.nbytes}"
        )
    if start > available or not (a.size or numel(size)):
        start = own  # it shows nothing, so it may begin anywhere
    return shown_once(strided(a, tuple(size), tuple(s * item for s in stride), (start - own) * item))


@providers.direct("view")
def view(a: Array, size: Sequence[int]) -> Array:
    """The same elements in another shape, or the same bytes as another type, where strides allow it."""
    if a.flags.c_contiguous:
        try:
            made = a.reshape(size)
            if made.shape == size or min(size) >= -1:  # NumPy treats every negative extent as -1
                return made
        except (TypeError, ValueError):
            pass  # a dtype, or a shape that does not fit: both are dealt with below
    if isinstance(size, dtype):
        return view_dtype(a, size)
    size = infer_size(size, a.size)
    item = a.dtype.itemsize
    steps = view_strides(a.shape, tuple(s // item for s in a.strides), size)
    if steps is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            "two contiguous subspaces). Use .reshape(...) instead."
        )
    return from_strides(a, size, tuple(s * item for s in steps))


_swapped = strided_step(ndarray.swapaxes, 3)
_reordered = strided_step(ndarray.transpose, 2)
_indexed = restrided_by_index = strided_step(operator.getitem, 2)
_reshaped = strided_step(ndarray.reshape, 2)
_squeezed = strided_step(ndarray.squeeze, 2)
restrided = strided_step(from_strides)
_shown = strided_step(lambda a, made: made)
view_step = step("aten::view")(view)
if providers.native is not None:
    providers.native.set_step("view", view_step)
    providers.native.set_step("as_strided", _shown)


@providers.direct("transpose")
def transpose(a: Array, dim0: int, dim1: int) -> Array:
    """Two dimensions swapped."""
    ndim = a.ndim
    if not (0 <= dim0 < ndim and 0 <= dim1 < ndim):
        dim0, dim1 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    return _swapped(a, dim0, dim1) if ndim else a.view()


transpose_step = step("aten::transpose", "int")(transpose)


@providers.direct("t")
def t(a: Array) -> Array:
    """A matrix transposed."""
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return transpose_step(a, 0, 0 if a.ndim < 2 else 1)


@providers.direct("permute")
def permute(a: Array, dims: Sequence[int]) -> Array:
    """All dimensions in a new order."""
    ndim = a.ndim
    if len(dims) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = [wrap_dim(d, ndim) for d in dims]
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _reordered(a, wrapped)


@providers.direct("expand")
def expand(a: Array, size: Sequence[int], implicit: bool = False) -> Array:
    """Dimensions of extent 1 repeated without memory; -1 keeps an extent."""
    lead = len(size) - a.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(a.shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({a.ndim})"
        )
    shape, strides = list(size), [0] * len(size)
    repeated = False
    for i in range(len(size) - 1, -1, -1):  # of several dimensions that do not fit, the last is named
        wanted = size[i]
        if i < lead:
            repeated = repeated or wanted > 1
            if wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {i}"
                )
            continue
        have = a.shape[i - lead]
        if wanted in (-1, have):
            shape[i], strides[i] = have, a.strides[i - lead]
        elif have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(a.shape)}"
            )
        elif wanted < 0:
            raise RuntimeError(f"The expanded size of the tensor ({wanted}) isn't allowed")
        else:
            repeated = True
    made = restrided(a, shape, strides)
    if repeated:
        made.flags.writeable = False  # see `shown_once`
    return made


def shown_once(a: Array) -> Array:
    """An array that is read-only if it shows an element twice: then refusing a write needs no check."""
    if 0 in a.strides and a.size and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape)):
        a.flags.writeable = False
    return a


expand_step = step("aten::expand")(expand)


def squeeze(a: Array) -> Array:
    """All dimensions of extent 1 removed."""
    return _squeezed(a, None)


@providers.direct("squeeze")
def squeeze_dims(a: Array, dim: int | Sequence[int]) -> Array:
    """The given dimensions removed where their extent is 1."""
    dims = (dim,) if isinstance(dim, int) else dim
    wrapped = [wrap_dim(d, a.ndim) for d in dims]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim {wrapped[-1]} appears multiple times in the list of dims")
    gone = tuple(d for d in wrapped if a.ndim and a.shape[d] == 1)
    return _squeezed(a, gone)


@providers.direct("unsqueeze")
def unsqueeze(a: Array, dim: int) -> Array:
    """A dimension of extent 1 inserted."""
    at = wrap_dim(dim, a.ndim + 1)
    # Not `a[None]`, whose new dimension has stride 0.
    return _reshaped(a, (*a.shape[:at], 1, *a.shape[at:]))


@providers.direct("select")
def select(a: Array, dim: int, index: int) -> Array:
    """One slice of a dimension, which disappears."""
    if dim == 0 and type(index) is int:
        try:
            return _indexed(a, (index, ...))
        except IndexError:
            pass  # explained below
    if not a.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, a.ndim)
    extent = a.shape[at]
    if not -extent <= index < extent:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {at}"
        )
    return _indexed(a, (slice(None),) * at + (index, ...))


select_step = step("aten::select", "int")(select)


@providers.direct("slice")
def slice_dim(a: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    """`a[start:end:step]` along one dimension."""
    if dim == 0 and step > 0 and a.ndim:
        return _indexed(a, slice(start, end, step))
    if step <= 0:
        raise ValueError("slice step must be positive")
    if not a.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, a.ndim)
    return _indexed(a, (slice(None),) * at + (slice(start, end, step),))


slice_step = step("aten::slice", "Tensor")(slice_dim)


def narrow_start(a: Array, dim: int, start: int, length: int) -> int:
    """The start of a piece of a dimension, counted from the front; refuses what does not fit."""
    if not a.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    at = wrap_dim(dim, a.ndim)
    extent = a.shape[at]
    if not -extent <= start <= extent:
        raise IndexError(
            f"start out of range (expected to be in range of [{-extent}, {extent}], but got {start})"
        )
    if start < 0:
        start += extent
    if start + length > extent:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({extent}).")
    return start


@step("aten::narrow")
def narrow(a: Array, dim: int, start: int, length: int) -> Array:
    """`length` entries of a dimension from `start`."""
    return slice_step(a, dim, start, start + length, 1)


def split_sizes(a: Array, split_sizes: Sequence[int], dim: int) -> list[Array]:
    """Consecutive pieces of given lengths."""
    at = wrap_dim(dim, a.ndim)
    extent = a.shape[at]
    if min(split_sizes, default=0) < 0:
        raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, but got "
                           f"split_sizes={list(split_sizes)}")
    if sum(split_sizes) != extent:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at dimension "
            f"{at}), but got split_sizes={list(split_sizes)}"
        )
    pieces, start = [], 0
    for length in split_sizes:
        pieces.append(slice_step(a, at, start, start + length, 1))
        start += length
    return pieces


@providers.direct("split")
def split(a: Array, split_size: int, dim: int) -> list[Array]:
    """Consecutive pieces of one length, the last one shorter if need be."""
    if not a.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    at = wrap_dim(dim, a.ndim)
    extent = a.shape[at]
    if split_size == 0:
        if extent:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}")
        return [a.view()]
    starts = range(0, max(1, extent), split_size)
    return [narrow(a, at, start, min(split_size, extent - start)) for start in starts]


def unbind(a: Array, dim: int) -> list[Array]:
    """All slices of a dimension."""
    if not a.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    at = wrap_dim(dim, a.ndim)
    return [select_step(a, at, i) for i in range(a.shape[at])]


def unfold(a: Array, dimension: int, size: int, step: int) -> Array:
    """Sliding windows along a dimension, as a new last dimension."""
    at = wrap_dim(dimension, a.ndim)
    extent = a.shape[at] if a.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {extent} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not a.ndim:
        return restrided(a, (size,), (a.dtype.itemsize,))
    shape = [*a.shape, size]
    shape[at] = (extent - size) // step + 1
    strides = [*a.strides, a.strides[at]]
    strides[at] *= step
    return restrided(a, shape, strides)


@strided_step
def _diagonal(a: Array, offset: int, first: int, second: int) -> Array:
    made = np.diagonal(a, offset, first, second)
    # NumPy marks diagonals read-only for historical reasons; PyTorch's are views like any other.
    made.flags.writeable = a.flags.writeable
    return made


def diagonal(a: Array, offset: int, dim1: int, dim2: int) -> Array:
    """A diagonal of two dimensions, as the last dimension."""
    first, second = wrap_dim(dim1, a.ndim), wrap_dim(dim2, a.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _diagonal(a, offset, first, second)


diagonal_step = step("aten::diagonal")(diagonal)


def view_as_real(a: Array) -> Array:
    """Complex numbers as pairs of real ones."""
    if a.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    real = np.dtype(f"f{a.dtype.itemsize // 2}")
    return from_strides(a.real, (*a.shape, 2), (*a.strides, real.itemsize))


def view_as_complex(a: Array) -> Array:
    """Pairs of real numbers as complex ones."""
    if a.dtype.kind != "f":
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           f"scalar type: {pretty(FROM_NUMPY[a.dtype])}")
    if not a.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if a.size and a.strides[-1] != a.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    pair = 2 * a.dtype.itemsize
    if a.size and any(step % pair for step, extent in zip(a.strides[:-1], a.shape) if extent > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if a.size and a.base is not None and (address(a) - address(owner(a))) % pair:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return a.view(np.dtype(f"c{a.dtype.itemsize * 2}"))[..., 0]


def view_dtype(a: Array, to: dtype) -> Array:
    """The same bytes read as another type."""
    have, want = a.dtype.itemsize, to.np.itemsize
    if have != want:
        change = f"to view {pretty(FROM_NUMPY[a.dtype])} as {pretty(to)} (different element sizes)"
        if not a.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 {change}")
        if a.size and a.strides[-1] != have:
            raise RuntimeError(f"self.stride(-1) must be 1 {change}, but got {a.strides[-1] // have}")
        if have < want:
            ratio = want // have
            if a.shape[-1] % ratio:
                raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {change}, but got {a.shape[-1]}")
            whole = owner(a)
            offset = (a.ctypes.data - whole.ctypes.data) // have
            if a.size and offset % ratio:
                raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {change}, but got {offset}")
            for i, step in enumerate(a.strides[:-1]):
                if a.size and step % want:
                    raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} {change}, but got "
                                       f"{step // have}")
        if not a.size:  # NumPy reads other elements only where the last stride is one
            return a.reshape(-1).view(to.np).reshape(*a.shape[:-1], a.shape[-1] * have // want)
    return a.view(to.np)


def pretty(kind: dtype) -> str:
    """PyTorch's C++ name of a dtype."""
    return cpp_name(kind.name)
