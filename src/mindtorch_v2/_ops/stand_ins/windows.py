"""Windows that slide over planes and volumes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends.cpu.adaptive_pooling import adaptive_sizes, adaptive_windows
from ..._backends.cpu.pooling import Pool, pool_of
from ..._backends.cpu.rearrange import Blocks
from ..._construct import tensor
from ..._deterministic import alert
from ..._dispatch.namespace import aten
from ..._dtype import int64
from ..._tensor import Tensor
from . import FORMULAS, formula

Kernel = Callable[..., Any]
# Along one dimension: for each window the element of each tap, and whether there is one (else some element of the
# window stands in for it).
Line = tuple[np.ndarray, np.ndarray]


# -- largest elements --------------------------------------------------------------------------------------------------


def _line(starts: np.ndarray, reach: int, step: int, size: int, ends: np.ndarray | None = None) -> Line:
    places = starts[:, None] + np.arange(reach)[None] * step
    inside = (places >= 0) & (places < (size if ends is None else ends[:, None]))
    first = places[np.arange(len(places)), inside.argmax(1)]
    return np.where(inside, places, first[:, None]), inside


def _lines(pool: Pool) -> list[Line]:
    return [_line(np.arange(out) * stride - padding, kernel, dilation, size)
            for out, stride, padding, kernel, dilation, size in zip(
                pool.out, pool.stride, pool.padding, pool.kernel, pool.dilation, pool.sizes, strict=True)]


def _adaptive_lines(shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[Line]:
    found = []
    for size, out in zip(shape, sizes, strict=True):
        starts, ends = adaptive_windows(size, out)
        found.append(_line(starts, int((ends - starts).max(initial=1)), 1, size, ends))
    return found


def _largest(x: Tensor, lines: list[Line]) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its number in the plane or volume: all windows side by side."""
    spatial = len(lines)
    lead, sizes = tuple(x.shape[:-spatial]), tuple(x.shape[-spatial:])
    cells: Any = np.zeros((), np.int64)
    inside: Any = np.ones((), bool)
    for (places, there), size in zip(lines, sizes, strict=True):
        cells, inside = cells[..., None, None] * size + places, inside[..., None, None] & there
    order = [*range(0, 2 * spatial, 2), *range(1, 2 * spatial, 2)]
    cells, inside = (one.transpose(order).reshape(math.prod(len(places) for places, _ in lines), -1)
                     for one in (cells, inside))
    numbers = tensor(np.ascontiguousarray(cells).reshape(-1), device=x.device)
    shown = x.reshape(*lead, math.prod(sizes)).index_select(-1, numbers).reshape(*lead, *cells.shape)
    values, tap = shown.max(-1)
    if x.dtype.is_floating_point:  # of several NaN, the last is the largest
        numbered = tensor(np.where(inside, np.arange(cells.shape[1]), -1), device=x.device)
        tap = aten.maximum(tap, aten.where(aten.ne(shown, shown), numbered, -1).amax(-1))
    first = aten.arange(0, cells.size, cells.shape[1], device=x.device)
    shape = (*lead, *[len(places) for places, _ in lines])
    found = numbers.index_select(0, (tap + first).reshape(-1))
    return values.reshape(shape), found.reshape(shape)


def _put_back(values: Tensor, indices: Tensor, lead: Any, sizes: Any, add: bool = True) -> Tensor:
    """Values at their numbers in planes of zeros."""
    flat = aten.zeros((*lead, math.prod(sizes)), dtype=values.dtype, device=values.device)
    given = (*lead, -1) if values.numel() else (*lead, 0)
    put = flat.scatter_add if add else flat.scatter
    return put(-1, indices.reshape(given), values.reshape(given)).reshape(*lead, *sizes)


@formula("max_pool3d_with_indices")
def max_pool3d(self: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool) -> tuple[Tensor, Tensor]:
    """The largest elements of windows in a volume."""
    return _largest(self, _lines(pool_of("max_pool3d", self._a, 3, kernel_size, stride, padding, dilation, ceil_mode)))


@formula("max_pool3d_with_indices_backward")
def max_pool3d_backward(grad: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                        ceil_mode: bool, indices: Tensor) -> Tensor:
    """Gradients to where the largest were."""
    return _put_back(grad, indices, self.shape[:-3], self.shape[-3:])


def _adaptive_max(spatial: int) -> None:
    def forward(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        sizes = adaptive_sizes(f"adaptive_max_pool{spatial}d", self._a, output_size, spatial)
        if 0 in sizes:
            made = aten.empty((*self.shape[:-spatial], *sizes), dtype=self.dtype, device=self.device)
            return made, aten.empty_like(made, dtype=int64)
        return _largest(self, _adaptive_lines(tuple(self.shape[-spatial:]), sizes))

    def backward(grad: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        return _put_back(grad, indices, self.shape[:-spatial], self.shape[-spatial:])

    FORMULAS[f"adaptive_max_pool{spatial}d"] = forward
    FORMULAS[f"adaptive_max_pool{spatial}d_backward"] = backward


_adaptive_max(2)
_adaptive_max(3)


@formula("max_unpool2d")
def max_unpool2d(self: Tensor, indices: Tensor, output_size: Any) -> Tensor:
    """Elements back at the places that pooling took them from."""
    return _unpooled(self, indices, output_size, 2)


@formula("max_unpool3d")
def max_unpool3d(self: Tensor, indices: Tensor, output_size: Any, stride: Any, padding: Any) -> Tensor:
    """The same in volumes."""
    return _unpooled(self, indices, output_size, 3)


def _unpooled(self: Tensor, indices: Tensor, output_size: Any, spatial: int) -> Tensor:
    if indices.shape != self.shape or indices.dtype is not int64 or 0 in self.shape[1:]:
        raise ValueError("indices of another shape or type, or none")  # the CPU's kernel explains it
    alert(f"max_unpooling{spatial}d_forward_out")
    return _put_back(self, indices, self.shape[:-spatial], tuple(int(n) for n in output_size), False)


# -- means -------------------------------------------------------------------------------------------------------------


def _summed(x: Tensor, lines: list[Line], weights: list[np.ndarray]) -> Tensor:
    """Weighted sums of windows, one dimension after the other."""
    for d, ((places, inside), weight) in enumerate(zip(lines, weights, strict=True)):
        axis = x.dim() - len(lines) + d
        shown = x.index_select(axis, tensor(places.reshape(-1), device=x.device))
        shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1:])
        factor = tensor(inside * weight[:, None], dtype=x.dtype, device=x.device)
        x = (shown.reshape(shape) * factor.reshape(*places.shape, *[1] * (x.dim() - axis - 1))).sum(axis + 1)
    return x


def _spread(grad: Tensor, lines: list[Line], weights: list[np.ndarray], sizes: Any) -> Tensor:
    """The adjoint of `_summed`."""
    for d, ((places, inside), weight) in enumerate(zip(lines, weights, strict=True)):
        axis = grad.dim() - len(lines) + d
        factor = tensor(inside * weight[:, None], dtype=grad.dtype, device=grad.device)
        shown = grad.unsqueeze(axis + 1) * factor.reshape(*places.shape, *[1] * (grad.dim() - axis - 1))
        shape = (*grad.shape[:axis], sizes[d], *grad.shape[axis + 1:])
        flat = shown.reshape(*grad.shape[:axis], places.size, *grad.shape[axis + 1:])
        grad = aten.zeros(shape, dtype=grad.dtype, device=grad.device).index_add(
            axis, tensor(places.reshape(-1), device=grad.device), flat)
    return grad


def _shares(pool: Pool, include: bool, divisor: int | None) -> list[np.ndarray]:
    """What each window's sum is multiplied with, dimension by dimension."""
    made = []
    for out, stride, padding, kernel, size in zip(pool.out, pool.stride, pool.padding, pool.kernel, pool.sizes,
                                                  strict=True):
        start = np.arange(out) * stride - padding
        end = np.minimum(start + kernel, size + padding)
        if not include:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        made.append(1 / (end - start) if divisor is None else np.ones(out))
    if divisor is not None:
        made[0] = made[0] / divisor
    return made


@formula("avg_pool3d")
def avg_pool3d(self: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool,
               divisor: int | None) -> Tensor:
    """Means of windows in a volume."""
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    pool = pool_of("avg_pool3d", self._a, 3, kernel_size, stride, padding, 1, ceil_mode)
    shares = _shares(pool, include, divisor)
    if self.is_floating_point():
        return _summed(self, _lines(pool), shares)
    counts = np.rint(1 / np.einsum("i,j,k->ijk", *shares)).astype(np.int64)
    sums = _summed(self, _lines(pool), [np.ones(len(one)) for one in shares])
    return aten.div(sums, tensor(counts, dtype=self.dtype, device=self.device), rounding_mode="trunc")


@formula("avg_pool3d_backward")
def avg_pool3d_backward(grad: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                        include: bool, divisor: int | None) -> Tensor:
    """Gradients spread over windows."""
    pool = pool_of("avg_pool3d", self._a, 3, kernel_size, stride, padding, 1, ceil_mode)
    return _spread(grad, _lines(pool), _shares(pool, include, divisor), pool.sizes)


def _even_shares(lines: list[Line]) -> list[np.ndarray]:
    return [1 / inside.sum(1) for _, inside in lines]


@formula("_adaptive_avg_pool3d")
def adaptive_avg_pool3d(self: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows of a volume as are asked for."""
    sizes = adaptive_sizes("adaptive_avg_pool3d", self._a, output_size, 3)
    lines = _adaptive_lines(tuple(self.shape[-3:]), sizes)
    return _summed(self, lines, _even_shares(lines))


@formula("_adaptive_avg_pool3d_backward")
def adaptive_avg_pool3d_backward(grad: Tensor, self: Tensor) -> Tensor:
    """Gradients spread over such windows."""
    lines = _adaptive_lines(tuple(self.shape[-3:]), tuple(grad.shape[-3:]))
    return _spread(grad, lines, _even_shares(lines), self.shape[-3:])


# -- contents of windows -----------------------------------------------------------------------------------------------


def _taps(blocks: Blocks) -> Any:
    """For every tap of a window: what to cut out of the padded plane, as start, length and step of each dimension."""
    for row in range(blocks.kernel[0]):
        for column in range(blocks.kernel[1]):
            yield row, column, [(tap * d, (n - 1) * s + 1, s) for tap, d, n, s in zip(
                (row, column), blocks.dilation, blocks.out, blocks.stride, strict=True)]


def _cut(x: Tensor, cuts: list[tuple[int, int, int]]) -> Tensor:
    for d, (start, length, step) in enumerate(cuts):
        x = aten.slice(x, x.dim() - len(cuts) + d, start, start + length, step)
    return x


@formula("im2col")
def im2col(self: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """Window contents: channels and taps, then positions."""
    if self.dim() not in (3, 4):
        raise ValueError("planes of another number of dimensions")  # the CPU's kernel explains it
    blocks = Blocks(self.shape[-2:], kernel_size, dilation, padding, stride)
    if min(blocks.out) < 1 or 0 in self.shape[-3:]:
        raise ValueError("no window fits")
    top, left = blocks.padding
    padded = aten.constant_pad_nd(self, [left, left, top, top])
    shown = aten.stack([_cut(padded, cuts) for _, _, cuts in _taps(blocks)], -3)
    return shown.reshape(*self.shape[:-3], self.shape[-3] * math.prod(blocks.kernel), math.prod(blocks.out))


@formula("col2im")
def col2im(self: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """Sums of window contents at their places."""
    sizes = tuple(int(n) for n in output_size) if hasattr(output_size, "__len__") else (int(output_size),) * 2
    blocks = Blocks(sizes, kernel_size, dilation, padding, stride)
    if self.dim() not in (2, 3) or self.shape[-2] % math.prod(blocks.kernel) or self.shape[-1] != math.prod(blocks.out):
        raise ValueError("contents of other windows")  # the CPU's kernel explains it
    top, left = blocks.padding
    lead = (*self.shape[:-2], self.shape[-2] // math.prod(blocks.kernel))
    split = self.reshape(*lead, *blocks.kernel, *blocks.out)
    made = aten.zeros((*lead, sizes[0] + 2 * top, sizes[1] + 2 * left), dtype=self.dtype, device=self.device)
    for row, column, cuts in _taps(blocks):
        _cut(made, cuts).add_(split.select(len(lead), row).select(len(lead), column))
    return _cut(made, [(top, sizes[0], 1), (left, sizes[1], 1)]).contiguous()


@formula("unfold_backward")
def unfold_backward(grad: Tensor, input_sizes: Any, dim: int, size: int, step: int) -> Tensor:
    """Windows along a dimension, added where they came from."""
    made = aten.zeros(list(input_sizes), dtype=grad.dtype, device=grad.device)
    if made.dim() == 0:
        return grad.reshape(())
    dim %= made.dim()
    count = grad.shape[dim]
    for tap in range(size):
        aten.slice(made, dim, tap, tap + (count - 1) * step + 1, step).add_(grad.select(-1, tap))
    return made
