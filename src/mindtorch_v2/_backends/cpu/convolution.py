"""Convolution kernels: matrix products over columns of window contents.

Columns are laid out `(channel, tap, image, position)`, so that forward and both gradients are each one large product.
If windows step by one, positions keep the pitch of the padded image: then a tap's row is one contiguous run, and the
positions between two image rows are cut off afterwards. Images are processed in blocks that limit the columns' memory.
16-bit floats are computed in float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.steps import step
from ..._dtype import HALF_TYPES
from . import providers, windows_in_c
from .convolution_checks import check_convolution, fixed
from .matmul import products
from .memory import contiguous_step, empty
from .onednn import convolution as onednn

Array = Any
Sizes = tuple[int, ...]
COLUMN_BYTES = 1 << 20
# Gradients of strided depthwise kernels pass over their data once per tap: these blocks stay in the cache.
DEPTH_BYTES = 1 << 19
# Pitched columns compute at most this much for every position that is kept; beyond it, exact columns are cheaper.
PITCH_WASTE = 1.4
# Below this many positions per image, one product over all images is faster than one product per image.
SMALL_IMAGE = 64


class Window(NamedTuple):
    """How a kernel moves over an image, one number per dimension."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes

    def steps_by_one(self) -> bool:
        return all(s == 1 for s in self.stride)

    def is_point(self) -> bool:
        return all(k == 1 for k in self.kernel) and not any(self.padding)

    def output(self, sizes: Sizes) -> Sizes:
        """How many positions an image of these sizes has."""
        return _output(self, sizes)

    def taps(self, out: Sizes) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
        """Every kernel element with the part of the padded image that it sees."""
        for tap in product(*map(range, self.kernel)):
            starts = [t * d for t, d in zip(tap, self.dilation)]
            yield tap, tuple(slice(a, a + (o - 1) * s + 1, s) for a, o, s in zip(starts, out, self.stride))

    def can_turn(self, sizes: Sizes, out: Sizes) -> bool:
        """Whether the gradient can be carried back by `turned`; output_padding may have left elements unseen."""
        return self.steps_by_one() and min(self.turned().padding) >= 0 and self.output(sizes) == out

    def turned(self) -> Window:
        """The window that carries an output's gradient back to the input, for windows that step by one."""
        padding = tuple(d * (k - 1) - p for k, p, d in zip(self.kernel, self.padding, self.dilation))
        return self._replace(padding=padding)


@functools.lru_cache(maxsize=1024)
def _output(window: Window, sizes: Sizes) -> Sizes:
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(sizes, *window))


class Columns:
    """Window contents of a batch as a matrix `(groups, channels * taps, images * positions)`, a block at a time."""

    def __init__(self, x: Array, window: Window, out: Sizes) -> None:
        images, channels, *sizes = x.shape
        self.out, self.images, self.channels, self.window = out, images, channels, window
        padded = tuple(n + 2 * p for n, p in zip(sizes, window.padding))
        self.pitched = (window.steps_by_one() and math.prod(out) > 0
                        and math.prod(padded[1:]) <= PITCH_WASTE * math.prod(out[1:]))
        steps = [math.prod(padded[i + 1:]) for i in range(len(padded))]
        area = math.prod(padded)
        # A pitched run of the last tap of the last image ends beyond the image.
        slack = sum((k - 1) * d * s for k, d, s in zip(window.kernel, window.dilation, steps))
        memory = np.zeros(images * channels * area + slack, x.dtype)
        self.padded = memory[: images * channels * area].reshape(images, channels, *padded)
        inside = tuple(slice(p, p + n) for p, n in zip(window.padding, sizes))
        self.padded[(slice(None), slice(None), *inside)] = x
        item = x.dtype.itemsize
        tap_strides = [d * s * item for d, s in zip(window.dilation, steps)]
        # Positions of one image in a block's layout; `kept` cuts a block's result to the real positions.
        self.laid = (out[0], *padded[1:]) if self.pitched else out
        self.kept = tuple(slice(0, o) for o in out)
        rows = (math.prod(self.laid),) if self.pitched else out
        row_strides = [item] if self.pitched else [w * s * item for w, s in zip(window.stride, steps)]
        self.view = as_strided(memory, (channels, *window.kernel, images, *rows),
                               (area * item, *tap_strides, channels * area * item, *row_strides), writeable=False)
        self.height = channels * math.prod(window.kernel)
        self.positions = math.prod(self.laid)
        self.block = max(1, COLUMN_BYTES // max(1, self.height * self.positions * item))

    def blocks(self, groups: int) -> Iterator[tuple[slice, Array]]:
        """The images of each block and their columns; the memory is reused for the next block."""
        axis = 1 + len(self.window.kernel)
        before = (slice(None),) * axis
        memory = np.empty(self.height * min(self.block, self.images) * self.positions, self.padded.dtype)
        for start in range(0, self.images, self.block):
            part = slice(start, min(start + self.block, self.images))
            source = self.view[(*before, part)]
            target = memory[: source.size].reshape(source.shape)
            np.copyto(target, source)
            yield part, target.reshape(groups, self.height // groups, (part.stop - start) * self.positions)

    def cut(self, made: Array, channels: int) -> Array:
        """A block's result `(channels, images * positions)` as a view `(images, channels, *out)`."""
        return made.reshape(channels, -1, *self.laid)[(slice(None), slice(None), *self.kept)].swapaxes(0, 1)

    def lay(self, y: Array, groups: int) -> Array:
        """`(images, channels, *out)` as a matrix `(groups, channels, images * positions)` to multiply columns with."""
        shape = (y.shape[1], y.shape[0], *self.laid)
        memory = np.zeros(shape, y.dtype) if self.pitched else np.empty(shape, y.dtype)
        memory[(slice(None), slice(None), *self.kept)] = y.swapaxes(0, 1)
        return memory.reshape(groups, y.shape[1] // groups, -1)


def turned_weight(weight: Array, groups: int) -> Array:
    """The weight for `Window.turned`: reversed in space, input and output channels exchanged within a group."""
    out, per_group, *kernel = weight.shape
    reverse = weight[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]
    grouped = reverse.reshape(groups, out // groups, per_group, *kernel).swapaxes(1, 2)
    return np.ascontiguousarray(grouped.reshape(groups * per_group, out // groups, *kernel))


def _pointwise(x: Array, matrix: Array, groups: int) -> Array:
    """A 1x1 kernel: `matrix` is `(groups, out, in)`."""
    images, channels, *sizes = x.shape
    positions = math.prod(sizes)
    out = groups * matrix.shape[1]
    made = empty((images, out, *sizes), x.dtype)
    if positions >= SMALL_IMAGE:
        products(matrix, x.reshape(images, groups, channels // groups, positions),
                 made.reshape(images, groups, out // groups, positions))
    else:
        joined = x.swapaxes(0, 1).reshape(groups, channels // groups, images * positions)
        made[...] = products(matrix, joined).reshape(out, images, *sizes).swapaxes(0, 1)
    return made


def _strided(window: Window) -> tuple[slice, ...]:
    return (slice(None), slice(None), *(slice(None, None, s) for s in window.stride))


def _inside(sizes: Sizes, padding: Sizes) -> tuple[slice, ...]:
    return (slice(None), slice(None), *(slice(p, p + n) for n, p in zip(sizes, padding)))


def _is_depthwise(weight: Array, groups: int) -> bool:
    return groups > 1 and weight.shape[1] == 1


def _depth_weight(weight: Array, groups: int, tap: Sizes) -> Array:
    spatial = weight.ndim - 2
    column: Array = weight[(slice(None), 0, *tap)]
    return column.reshape(groups, -1, *(1,) * spatial)


def first_of(name: str, *arguments: Any) -> Array | None:
    """The result of another provider than NumPy, or None."""
    return getattr(onednn if providers.onednn() else windows_in_c, name)(*arguments)


def forward(x: Array, weight: Array, bias: Array | None, window: Window, groups: int) -> Array:
    """Convolution of checked arrays of one dtype."""
    quick = first_of("forward", x, weight, bias, window, groups)
    if quick is not None:
        return quick
    out_channels, per_group = weight.shape[:2]
    out = window.output(x.shape[2:])
    shape = (x.shape[0], out_channels, *out)
    column = None if bias is None else bias.reshape(-1, *(1,) * len(out))
    if window.is_point():
        x = x[_strided(window)]
        made = _pointwise(x, weight.reshape(groups, out_channels // groups, per_group), groups)
    else:
        made = np.empty(shape, x.dtype)
        columns = Columns(x, window, out)
        matrix = weight.reshape(groups, out_channels // groups, per_group * math.prod(window.kernel))
        for part, block in columns.blocks(groups):
            result = columns.cut(products(matrix, block), out_channels)
            if column is None:
                made[part] = result
            else:
                np.add(result, column, out=made[part])
        return made
    if column is not None:
        made += column
    return made


def _depth_blocks(images: int, image_elements: int, itemsize: int) -> Iterator[slice]:
    block = max(1, DEPTH_BYTES // max(1, image_elements * itemsize))
    for start in range(0, images, block):
        yield slice(start, min(start + block, images))


def _depthwise_input_gradient(grad: Array, weight: Array, padded: Array, window: Window, groups: int) -> None:
    """Adds to the gradient of the padded input, tap by tap: with one channel per group, no products are needed."""
    images, _, *out = grad.shape
    split = grad.reshape(images, groups, -1, *out)
    for part in _depth_blocks(images, grad[:1].size, grad.itemsize):
        source, target = split[part], padded[part]
        scratch = np.empty_like(source)
        for tap, seen in window.taps(tuple(out)):
            np.multiply(source, _depth_weight(weight, groups, tap), out=scratch)
            target[(..., *seen)] += scratch[:, :, 0] if scratch.shape[2] == 1 else scratch.sum(2)


def input_gradient(grad: Array, weight: Array, shape: Sizes, window: Window, groups: int) -> Array:
    """Gradient of `forward` for its input, which has this shape; the forward of a transposed convolution."""
    quick = first_of("input_gradient", grad, weight, shape, window, groups)
    if quick is not None:
        return quick
    if not grad.size:
        return np.zeros(shape, grad.dtype)
    out_channels, per_group = weight.shape[:2]
    out, images = grad.shape[2:], grad.shape[0]
    if window.is_point():
        made = _pointwise(grad, weight.reshape(groups, out_channels // groups, per_group).swapaxes(1, 2), groups)
        if made.shape == shape:
            return made
        spread = np.zeros(shape, grad.dtype)
        spread[(..., *(slice(0, (o - 1) * s + 1, s) for o, s in zip(out, window.stride)))] = made
        return spread
    if window.can_turn(shape[2:], out) and out_channels <= 2 * shape[1]:
        return forward(grad, turned_weight(weight, groups), None, window.turned(), groups)
    sizes = shape[2:]
    # The last windows may end short of the padded image, or beyond it where output_padding made it longer.
    reach = tuple(max(n + 2 * p, (o - 1) * s + d * (k - 1) + 1) for n, p, o, s, d, k in zip(
        sizes, window.padding, out, window.stride, window.dilation, window.kernel))
    padded = np.zeros((images, shape[1], *reach), grad.dtype)
    if _is_depthwise(weight, groups):
        _depthwise_input_gradient(grad, weight, padded, window, groups)
    else:
        matrix = weight.reshape(groups, out_channels // groups, per_group * math.prod(window.kernel)).swapaxes(1, 2)
        height = shape[1] * math.prod(window.kernel)
        block = max(1, COLUMN_BYTES // max(1, height * math.prod(out) * grad.itemsize))
        for start in range(0, images, block):
            part = grad[start: start + block].swapaxes(0, 1).reshape(groups, out_channels // groups, -1)
            made = products(matrix, part).reshape(shape[1], *window.kernel, -1, *out)
            target = padded[start: start + block]
            for tap, seen in window.taps(out):
                target[(..., *seen)] += made[(slice(None), *tap)].swapaxes(0, 1)
    return np.ascontiguousarray(padded[_inside(sizes, window.padding)])


def weight_gradient(grad: Array, x: Array, shape: Sizes, window: Window, groups: int) -> Array:
    """Gradient of `forward` for its weight, which has this shape."""
    quick = first_of("weight_gradient", grad, x, shape, window, groups)
    if quick is not None:
        return quick
    out_channels, per_group = shape[:2]
    out = grad.shape[2:]
    if window.is_point():
        seen = x[_strided(window)][(..., *(slice(0, n) for n in out))]
        positions = grad.shape[0] * math.prod(out)
        left = grad.swapaxes(0, 1).reshape(groups, out_channels // groups, positions)
        right = seen.swapaxes(0, 1).reshape(groups, per_group, positions)
        made = empty(shape, grad.dtype)
        products(left, right.swapaxes(1, 2), made.reshape(groups, out_channels // groups, per_group))
        return made
    made = np.zeros(shape, grad.dtype)
    if window.can_turn(x.shape[2:], out) and out_channels < x.shape[1]:
        return _backward_of_output(grad, x, None, shape, window, groups)[1]
    matrix = made.reshape(groups, out_channels // groups, per_group * math.prod(shape[2:]))
    columns = Columns(x, window, out)
    for part, block in columns.blocks(groups):
        matrix += products(columns.lay(grad[part], groups), block.swapaxes(1, 2))
    return made


def _backward_of_output(grad: Array, x: Array, weight: Array | None, shape: Sizes, window: Window,
                        groups: int) -> tuple[Array | None, Array]:
    """Both gradients from the columns of the output's gradient; for windows that step by one."""
    out_channels, per_group, *kernel = shape
    columns = Columns(grad, window.turned(), x.shape[2:])
    first = None if weight is None else np.empty(x.shape, x.dtype)
    matrix = None if weight is None else turned_weight(weight, groups).reshape(groups, per_group, -1)
    total = np.zeros((groups, per_group, out_channels // groups * math.prod(kernel)), grad.dtype)
    for part, block in columns.blocks(groups):
        if first is not None:
            first[part] = columns.cut(products(matrix, block), x.shape[1])
        total += products(columns.lay(x[part], groups), block.swapaxes(1, 2))
    return first, turned_weight(total.reshape(groups * per_group, out_channels // groups, *kernel), groups)


def gradients(grad: Array, x: Array, weight: Array, window: Window, groups: int, needs_input: bool,
              needs_weight: bool) -> tuple[Array | None, Array | None]:
    """Gradients of `forward` for input and weight."""
    if needs_input and needs_weight:
        quick = first_of("input_gradient", grad, weight, x.shape, window, groups)
        if quick is not None:
            return quick, weight_gradient(grad, x, weight.shape, window, groups)
    out_channels = weight.shape[0]
    if (needs_input and needs_weight and not window.is_point() and window.can_turn(x.shape[2:], grad.shape[2:])
            and out_channels <= 2 * x.shape[1]):
        return _backward_of_output(grad, x, weight, weight.shape, window, groups)
    first = input_gradient(grad, weight, x.shape, window, groups) if needs_input else None
    return first, weight_gradient(grad, x, weight.shape, window, groups) if needs_weight else None


# -- the ops -----------------------------------------------------------------------------------------------------------


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _conjugate(a: Array) -> Array:
    return a.conj() if a.dtype.kind == "c" else a


def _expanded(values: Any, count: int) -> Sizes:
    sizes = (values,) if isinstance(values, int) else tuple(map(int, values))
    return sizes * count if len(sizes) == 1 else sizes


@functools.lru_cache(maxsize=1024)
def _window(kernel: Sizes, stride: Any, padding: Any, dilation: Any) -> Window:
    count = len(kernel)
    return Window(kernel, _expanded(stride, count), _expanded(padding, count), _expanded(dilation, count))


def make_window(weight: Array, stride: Any, padding: Any, dilation: Any) -> Window:
    """The window of a weight."""
    return _window(weight.shape[2:], fixed(stride), fixed(padding), fixed(dilation))


def _by_numpy(x: Array, weight: Array, bias: Array | None, window: Window, transposed: bool, output_padding: Any,
              groups: int) -> Array:
    if not transposed:
        made = forward(_wide(x), _wide(weight), None if bias is None else _wide(bias), window, groups)
        return made.astype(x.dtype, copy=False)
    extra = _expanded(output_padding, len(window.kernel))
    sizes = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(
        x.shape[2:], window.stride, window.padding, window.dilation, window.kernel, extra))
    shape = (x.shape[0], weight.shape[1] * groups, *sizes)
    made = input_gradient(_wide(x), _wide(weight), shape, window, groups)
    if bias is not None:
        made += _wide(bias).reshape(-1, *(1,) * len(sizes))
    return made.astype(x.dtype, copy=False)


def mkldnn_convolution(x: Array, weight: Array, bias: Array | None, padding: Any, stride: Any, dilation: Any,
                       groups: int) -> Array:
    """The convolution that PyTorch computes with oneDNN, which was called MKL-DNN when this op got its name."""
    check_convolution(x, weight, bias, stride, padding, dilation, False, 0, groups)
    if not has_fast_convolution(x, weight):
        raise RuntimeError("mkldnn_convolution needs float32 arrays with elements, and the C kernels or oneDNN")
    return _of_floats(x, weight, bias, padding, stride, dilation, groups)


def has_fast_convolution(x: Array, weight: Array) -> bool:
    """Whether one of the libraries takes these."""
    return (x.dtype is weight.dtype is providers.FLOAT32 and bool(x.size and weight.size) and not providers.NUMPY_ONLY
            and (providers.native is not None or onednn.library() is not None))


@providers.direct("mkldnn_convolution")
def _of_floats(x: Array, weight: Array, bias: Array | None, padding: Any, stride: Any, dilation: Any,
               groups: int) -> Array:
    return forward(x, weight, bias, make_window(weight, stride, padding, dilation), groups)


_fast_step = step("aten::mkldnn_convolution")(_of_floats)
if providers.native is not None:
    providers.native.set_step("mkldnn_convolution", _fast_step)


def _check_integers(x: Array, window: Window, transposed: bool) -> None:
    """Integers of fewer bits have only the plain convolution, booleans none."""
    if transposed:
        raise unsupported(f"slow_conv_transpose{max(2, x.ndim - 2)}d_out_cpu", x.dtype)
    spread = max(window.dilation) > 1
    if spread or x.dtype.kind == "b":
        raise unsupported("slow_conv_dilated<>" if spread else "slow_conv2d_cpu", x.dtype)


@providers.direct("convolution")
def any_convolution(x: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any,
                    transposed: bool, output_padding: Any, groups: int, benchmark: bool, deterministic: bool,
                    cudnn_enabled: bool, allow_tf32: bool) -> Array:
    """Convolution by any library that can do it; the last four arguments are for one that does not exist here."""
    check_convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    window = make_window(weight, stride, padding, dilation)
    if x.dtype.kind in "biu" and x.dtype != np.int64:
        _check_integers(x, window, transposed)
    if not transposed and has_fast_convolution(x, weight) and min(window.output(x.shape[2:])) > 0:
        return _fast_step(x, weight, bias, padding, stride, dilation, groups)
    return _by_numpy(x, weight, bias, window, transposed, output_padding, groups)


chosen_convolution = step("aten::_convolution")(any_convolution)


def convolution(x: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int) -> Array:
    """Convolution or, if `transposed`, the map that is its input's gradient."""
    return chosen_convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, False,
                              False, True, True)


@providers.direct("convolution_backward")
def convolution_backward(grad: Array, x: Array, weight: Array, bias_sizes: Any, stride: Any, padding: Any,
                         dilation: Any, transposed: bool, output_padding: Any, groups: int,
                         output_mask: Any) -> tuple[Array, Array, Array]:
    """Gradients of input, weight and bias; those not requested are empty."""
    if groups <= 0:
        raise RuntimeError(f"expected groups to be greater than 0, but got groups={groups}")
    window = make_window(weight, stride, padding, dilation)
    if not grad.flags.c_contiguous:
        grad = contiguous_step(grad)
    pull, seen, by = _wide(grad), _conjugate(_wide(x)), _conjugate(_wide(weight))
    first: Array | None = None
    second: Array | None = None
    if not (pull.size and seen.size and by.size):
        first = np.zeros(x.shape, x.dtype) if output_mask[0] else None
        second = np.zeros(weight.shape, x.dtype) if output_mask[1] else None
    elif transposed:
        if output_mask[0]:
            # With output_padding there may be room for more windows than the input has elements.
            first = forward(pull, by, None, window, groups)
            first = np.ascontiguousarray(first[(..., *(slice(0, n) for n in x.shape[2:]))])
        if output_mask[1]:
            second = weight_gradient(seen, pull, weight.shape, window, groups)
    else:
        first, second = gradients(pull, seen, by, window, groups, output_mask[0], output_mask[1])
    third = None
    if output_mask[2]:
        third = pull.sum((0, *range(2, pull.ndim)), out=empty((pull.shape[1],), pull.dtype))
    nothing = np.empty(0, x.dtype)
    return tuple(nothing if made is None else made.astype(x.dtype, copy=False)
                 for made in (first, second, third))
