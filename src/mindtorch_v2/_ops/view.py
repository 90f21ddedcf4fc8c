"""Views: ops whose result shares its input's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._autograd.inplace import with_layout
from .._backends.cpu import view as kernels
from .._backends.cpu.memory import copy_, zeros
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import INTEGER
from .._memory_format import contiguous_format
from .._shape import as_shape, broadcast_shapes, infer_size, numel, wrap_dim
from .._tensor import Tensor
from .._warn import warn_once


def _inverse(dims: Sequence[int]) -> list[int]:
    ndim = len(dims)
    order = [0] * ndim
    for position, dim in enumerate(dims):
        order[dim % ndim] = position
    return order


declare(
    "view(Tensor self, int[] size) -> Tensor", cpu=kernels.view, view=True, where="m", variadic="size",
    grad={"self": lambda grad, self_shape: aten.reshape(grad, self_shape)},
)
declare(
    "_unsafe_view(Tensor self, int[] size) -> Tensor", cpu=kernels.view, where="n",
    grad={"self": lambda grad, self_shape: aten.reshape(grad, self_shape)},
)


def _reshape(self: Tensor, shape: Any) -> Tensor:
    array = self._a
    size, steps = kernels.reshaped(array, shape)
    if array.flags.c_contiguous:
        return aten.view(self, size)
    if steps is not None:
        return aten._reshape_alias(self, size, steps)
    return aten._unsafe_view(aten.clone(self, memory_format=contiguous_format), size)


declare("reshape(Tensor self, int[] shape) -> Tensor", composite=_reshape, variadic="shape")
declare(
    "_reshape_alias(Tensor self, int[] size, int[] stride) -> Tensor",
    cpu=lambda a, size, stride: kernels.from_strides(a, size, [s * a.dtype.itemsize for s in stride]), view=True,
    where="n", grad={"self": lambda grad, self_shape: aten.reshape(grad, self_shape)},
)
declare(
    "transpose.int(Tensor self, int dim0, int dim1) -> Tensor", cpu=kernels.transpose, view=True,
    grad={"self": lambda grad, dim0, dim1: aten.transpose(grad, dim0, dim1)},
)
declare("t(Tensor self) -> Tensor", cpu=kernels.t, view=True, grad={"self": lambda grad: aten.t(grad)})
declare(
    "permute(Tensor self, int[] dims) -> Tensor", cpu=kernels.permute, view=True, variadic="dims",
    grad={"self": lambda grad, dims: aten.permute(grad, _inverse(dims))},
)


def _expand_backward(grad: Tensor, self_shape: Any) -> Tensor:
    """The gradient summed along the dimensions that were made longer, or made."""
    have = grad._a.shape
    lead = len(have) - len(self_shape)
    dims = [*range(lead), *(lead + i for i, size in enumerate(self_shape) if size == 1 and have[lead + i] != 1)]
    if dims:
        grad = aten.sum__dim_IntList(grad, dims, True)
    return aten.view(grad, self_shape) if lead else grad


declare(
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", cpu=kernels.expand, view=True,
    variadic="size", where="m",
    grad={"self": _expand_backward},
)


def _unsqueezed(grad: Tensor, shape: tuple[int, ...], dims: Any) -> Any:
    """A gradient with the dimensions of extent 1 that were removed; itself if there was none."""
    for dim in dims:
        if dim < len(shape) and shape[dim] == 1:
            grad = aten.unsqueeze(grad, dim)
    return grad


declare(
    "squeeze(Tensor self) -> Tensor", cpu=kernels.squeeze, view=True, where="n",
    grad={"self": lambda grad, self_shape: _unsqueezed(grad, self_shape, range(len(self_shape)))},
)
declare(
    "squeeze.dim(Tensor self, int dim) -> Tensor", cpu=kernels.squeeze_dims, view=True, where="n",
    node="SqueezeBackward1",
    grad={"self": lambda grad, self_shape, dim: _unsqueezed(grad, self_shape, (wrap_dim(dim, len(self_shape)),))},
)
declare(
    "squeeze.dims(Tensor self, int[] dim) -> Tensor", cpu=kernels.squeeze_dims, view=True, where="n",
    node="SqueezeBackward2",
    grad={"self": lambda grad, self_shape, dim: _unsqueezed(
        grad, self_shape, sorted(wrap_dim(one, len(self_shape)) for one in dim))},
)


@choose("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Remove dimensions of extent 1."""
    if dim is None:
        return aten.squeeze__default(input)
    if isinstance(dim, int):
        return aten.squeeze__dim(input, dim)
    return aten.squeeze__dim(input, dim.__index__()) if isinstance(dim, Tensor) else aten.squeeze__dims(input, dim)


declare(
    "unsqueeze(Tensor self, int dim) -> Tensor", cpu=kernels.unsqueeze, view=True,
    # Counted from the end, the dimension is the same one in the gradient.
    grad={"self": lambda grad, dim: aten.squeeze__dim(grad, dim)},
)


def _select_backward(grad: Tensor, self_shape: Any, dim: int, index: int) -> Tensor:
    return aten.select_backward(grad, self_shape, dim, index)


declare(
    "select.int(Tensor self, int dim, int index) -> Tensor", cpu=kernels.select, view=True,
    grad={"self": _select_backward},
)
declare(
    "slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    cpu=kernels.slice_dim, view=True, where="n",
    grad={"self": lambda grad, self_shape, dim, start, end, step: aten.slice_backward(
        grad, self_shape, dim, start, end, step)},
)


def _scatter_into_zeros(place: Any) -> Any:
    """The backward of a window: zeros with the gradient copied into the same window."""

    def kernel(grad: Tensor, input_sizes: Any, *window: Any) -> Any:
        whole = zeros(input_sizes, grad.dtype)
        copy_(place(whole, *window), grad)
        return whole

    return kernel


declare(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    cpu=_scatter_into_zeros(kernels.select_step), where="n",
    grad={"grad_output": lambda grad, dim, index: aten.select(grad, dim, index)},
)
declare(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, int step) -> Tensor",
    cpu=_scatter_into_zeros(kernels.slice_step), where="n",
    grad={"grad_output": lambda grad, dim, start, end, step: aten.slice(grad, dim, start, end, step)},
)
declare(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    cpu=_scatter_into_zeros(kernels.diagonal_step), where="n",
    grad={"grad_output": lambda grad, offset, dim1, dim2: aten.diagonal(grad, offset, dim1, dim2)},
)
declare(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", cpu=kernels.diagonal, view=True,
    grad={"self": lambda grad, self_shape, offset, dim1, dim2: aten.diagonal_backward(
        grad, self_shape, offset, dim1, dim2)},
)


def _narrow(self: Tensor, dim: int, start: Any, length: int) -> Tensor:
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != INTEGER):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = kernels.narrow_start(self._a, dim, int(start), length)
    return aten.slice(self, dim, start, start + length, 1)


declare("narrow(Tensor self, int dim, int start, int length) -> Tensor", composite=_narrow)


def _join_pieces(grads: Sequence[Tensor], dim: int) -> Tensor:
    return aten.cat(grads, dim)


declare(
    "split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", cpu=kernels.split, view=True, where="n",
    grad={"self": _join_pieces},
)
declare(
    "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", cpu=kernels.split_sizes, view=True,
    grad={"self": _join_pieces},
)


@choose("split")
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *,
          split_size: Any = None) -> tuple[Tensor, ...]:
    """Pieces of one length, or of given lengths."""
    wanted = split_size_or_sections if split_size is None else split_size
    if wanted is None:
        raise TypeError("split() missing 1 required positional argument: 'split_size'")
    if isinstance(wanted, Tensor) and wanted.numel() == 1:
        wanted = int(wanted)
    form = aten.split__Tensor if isinstance(wanted, int) else aten.split_with_sizes
    return form(tensor, wanted, dim)


def _chunk(self: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    extent = self._a.shape[wrap_dim(dim, self.ndim)]
    size = -(-extent // chunks)
    if size == 0:
        return aten.split_with_sizes(self, [0] * chunks, dim)
    return aten.split__Tensor(self, size, dim)


declare("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", composite=_chunk)
declare(
    "unbind.int(Tensor self, int dim=0) -> Tensor[]", cpu=kernels.unbind, view=True,
    grad={"self": lambda grads, dim: aten.stack(grads, dim)},
)


def _as_strided_backward(grad: Tensor, self_geometry: Any, size: Any, stride: Any, storage_offset: Any) -> Tensor:
    shape, steps, offset = self_geometry
    return aten._as_strided_backward(grad, shape, steps, offset, size, stride,
                                     offset if storage_offset is None else storage_offset)


def _as_strided_adjoint(grad: Tensor, input_size: Any, input_stride: Any, input_offset: int, size: Any, stride: Any,
                        storage_offset: int) -> Any:
    """Add each gradient element to the storage cell it read, then read the input's cells."""
    read, cells = storage_cells(size, stride, storage_offset), storage_cells(input_size, input_stride, input_offset)
    flat = np.zeros(max(int(read.max(initial=0)), int(cells.max(initial=0))) + 1, grad.dtype)
    np.add.at(flat, read, grad)
    # Cells read several times by an overlapping input share their gradient equally among the readers.
    readers = np.bincount(cells.ravel(), minlength=flat.size)
    return (flat / np.maximum(readers, 1).astype(flat.dtype))[cells]


def storage_cells(shape: Sequence[int], steps: Sequence[int], offset: int) -> Any:
    """Where in its storage each element of a view is."""
    cells = np.asarray(offset)
    for extent, step in zip(shape, steps):
        cells = cells[..., None] + np.arange(extent) * step
    return np.broadcast_to(cells, tuple(shape))


def _as_strided_second(grad: Tensor, input_stride: Any, input_offset: int, size: Any, stride: Any,
                       storage_offset: int) -> Tensor:
    """The same window of the gradient, laid out in memory as the input was."""
    laid_out = with_layout(grad, tuple(input_stride))
    return aten.as_strided(laid_out, size, stride, storage_offset - input_offset + laid_out.storage_offset())


declare(
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor", cpu=kernels.as_strided,
    view=True, grad={"self": _as_strided_backward},
)
declare(
    "_as_strided_backward(Tensor grad_output, int[] input_size, int[] input_stride, int input_offset, int[] size, "
    "int[] stride, int storage_offset) -> Tensor",
    cpu=_as_strided_adjoint, where="n",
    grad={"grad_output": _as_strided_second},
)


def _unfold_adjoint(grad: Tensor, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    whole = np.zeros(input_sizes, grad.dtype)
    at = wrap_dim(dim, len(input_sizes))
    windows = kernels.unfold(whole, at, size, step)
    if step >= size:
        windows[...] = grad
    else:
        index = np.arange(whole.size).reshape(input_sizes)
        np.add.at(whole.reshape(-1), kernels.unfold(index, at, size, step), grad)
    return whole


declare(
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor", cpu=kernels.unfold, view=True, where="m",
    grad={"self": lambda grad, self_shape, dimension, size, step: aten.unfold_backward(
        grad, self_shape, dimension, size, step)},
)
declare(
    "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor", cpu=_unfold_adjoint,
    where="n", grad={"grad_in": lambda grad, dim, size, step: aten.unfold(grad, dim, size, step)},
)
declare("view_as_real(Tensor self) -> Tensor", cpu=kernels.view_as_real, view=True, where="f",
        grad={"self": lambda grad: aten.view_as_complex(aten.clone(grad, memory_format=contiguous_format)
                                                         if grad.stride(-1) != 1 else aten.contiguous(grad))})
declare("view_as_complex(Tensor self) -> Tensor", cpu=kernels.view_as_complex, view=True, where="f",
        grad={"self": lambda grad: aten.view_as_real(grad)})
declare("alias(Tensor self) -> Tensor", cpu=lambda a: a.view(), view=True, where="n",
        grad={"self": lambda grad: grad})

# -- made of the above -----------------------------------------------------------------------------------------------


def _listed(dims: Any) -> list[int]:
    return [dims] if isinstance(dims, int) else list(dims)


def _movedim(self: Tensor, source: Any, destination: Any) -> Tensor:
    ndim = self.ndim
    sources = [wrap_dim(d, ndim) for d in ((source,) if isinstance(source, int) else source)]
    targets = [wrap_dim(d, ndim) for d in ((destination,) if isinstance(destination, int) else destination)]
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({_listed(source)} dims) should "
                           f"contain the same number of dims as destination ({_listed(destination)} dims)")
    for name, dims, as_given in (("source", sources, source), ("destination", targets, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({_listed(as_given)})")
    if not ndim:
        return aten.alias(self)
    order = [-1] * ndim
    for s, t in zip(sources, targets):
        order[t] = s
    rest = iter(d for d in range(ndim) if d not in sources)
    return aten.permute(self, [next(rest) if d < 0 else d for d in order])


declare("movedim.intlist(Tensor self, int[] source, int[] destination) -> Tensor", composite=_movedim)
declare("moveaxis.intlist(Tensor self, int[] source, int[] destination) -> Tensor", composite=_movedim)
declare("swapaxes(Tensor self, int axis0, int axis1) -> Tensor", composite=lambda self, axis0, axis1: aten.transpose(
    self, axis0, axis1))
declare("swapdims(Tensor self, int dim0, int dim1) -> Tensor", composite=lambda self, dim0, dim1: aten.transpose(
    self, dim0, dim1))


def _numpy_T(self: Tensor) -> Tensor:
    if not self.ndim:
        warn_once("Tensor.T is deprecated on 0-D tensors. It is the tensor itself there.")
    elif self.ndim != 2:
        warn_once("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: use "
                  "`x.mT` for batches of matrices, `x.permute(*range(x.ndim)[::-1])` to reverse the dimensions.")
    return aten.permute(self, range(self.ndim)[::-1])


declare("numpy_T(Tensor self) -> Tensor", composite=_numpy_T, where="n")
declare("mT(Tensor self) -> Tensor", composite=lambda self: _matrix_transpose(self), where="n")
declare("mH(Tensor self) -> Tensor", composite=lambda self: _adjoint(self), where="n")
declare("adjoint(Tensor self) -> Tensor", composite=lambda self: _adjoint(self, "adjoint()"))


def _matrix_h(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
                           + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""))
    return _adjoint(self, "Tensor.H")


declare("matrix_H(Tensor self) -> Tensor", composite=_matrix_h, where="n")


def _adjoint(self: Tensor, name: str = "Tensor.mH") -> Tensor:
    turned = _matrix_transpose(self, name, "Consider using x.conj().")
    return aten.conj(turned) if self._a.dtype.kind == "c" else turned


def _matrix_transpose(self: Tensor, name: str = "Tensor.mT", advice: str = "It is the tensor itself there.") -> Tensor:
    if not self.ndim:
        warn_once(f"{name} is deprecated on 0-D tensors. {advice}")
        return aten.alias(self)
    if self.ndim == 1:
        raise RuntimeError(f"{name.replace('T', 't', 1) if name[0] == 'T' else f'tensor.{name}'} is only supported on "
                           f"matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return aten.transpose(self, -2, -1)


def _flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    ndim = self.ndim
    start, end = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = self._a.shape
    # Like PyTorch's, it reshapes without a `reshape` of its own in the profile.
    if not ndim:
        return _reshape(self, (1,))
    if start == end:
        return self
    return _reshape(self, (*shape[:start], numel(shape[start:end + 1]), *shape[end + 1:]))


declare("flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", composite=_flatten)
declare("ravel(Tensor self) -> Tensor", composite=lambda self: aten.view(
    self if self._a.flags.c_contiguous else aten.contiguous(self), (-1,)))


def _unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    if not isinstance(sizes, int) and not len(sizes):
        raise RuntimeError("unflatten: sizes must be non-empty")
    at = wrap_dim(dim, self.ndim)
    shape = self._a.shape
    try:
        inner = infer_size(as_shape((sizes,)), shape[at])
    except RuntimeError as error:
        if "is invalid for input of size" not in str(error):
            raise
        raise RuntimeError(f"unflatten: Provided sizes {list(as_shape((sizes,)))} don't multiply up to the size of dim "
                           f"{at} ({shape[at]}) in the input tensor") from None
    return aten.view(self, (*shape[:at], *inner, *shape[at + 1:]))


declare("unflatten.int(Tensor self, int dim, int[] sizes) -> Tensor", composite=_unflatten)
declare("view_as(Tensor self, Tensor other) -> Tensor", composite=lambda self, other: aten.view(self, other._a.shape),
        where="m")
declare("reshape_as(Tensor self, Tensor other) -> Tensor", where="m",
        composite=lambda self, other: aten.reshape(self, other._a.shape))
declare("expand_as(Tensor self, Tensor other) -> Tensor", where="m",
        composite=lambda self, other: aten.expand(self, other._a.shape))


declare("broadcast_to(Tensor self, int[] size) -> Tensor", composite=lambda self, size: aten.expand(self, size),
        variadic="size")


def _broadcast_tensors(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    shape = broadcast_shapes(*(t._a.shape for t in tensors))
    return tuple(t if t._a.shape == shape else aten.expand(t, shape) for t in tensors)


declare("broadcast_tensors(Tensor[] tensors) -> Tensor[]", composite=_broadcast_tensors, where="n")


@choose("broadcast_tensors", where="f")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return aten.broadcast_tensors__default(list(given))
