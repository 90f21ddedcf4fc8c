"""Convolutions of one, two and three dimensions, plain and transposed.

Nested as in PyTorch: `conv2d > convolution > _convolution`, and below them `mkldnn_convolution` where a library does
the work; NumPy's own way has no name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._backends.cpu import convolution as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor
from .._warn import warn_once

Sizes = int | Sequence[int]

# -- the kernel and its derivative -------------------------------------------------------------------------------------


def _gradients(grad: Tensor, input: Any, weight: Any, bias_shape: Any, stride: Any, padding: Any, dilation: Any,
               transposed: bool, output_padding: Any, groups: int, needs: Any) -> tuple[Any, ...]:
    made = aten.convolution_backward(grad, input, weight, bias_shape, stride, padding, dilation, transposed,
                                     output_padding, groups, needs)
    return tuple(m if n else None for m, n in zip(made, needs, strict=True))


def _second_gradients(grads: Any, grad_output: Tensor, input: Any, weight: Any, stride: Any, padding: Any,
                      dilation: Any, transposed: bool, output_padding: Any, groups: int, output_mask: Any,
                      needs: Any) -> Any:
    """Each of the three gradients is linear in two of `grad_output`, `input` and `weight`: convolutions again."""
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    of_input, of_weight, of_bias = grads
    parts = []
    if needs[0] and output_mask[0]:
        parts.append(aten.convolution(of_input, weight, None, *rest))
    if needs[0] and output_mask[1]:
        parts.append(aten.convolution(input, of_weight, None, *rest))
    if needs[0] and output_mask[2]:
        column = aten.view(of_bias, (-1, *(1,) * (weight.ndim - 2)))
        parts.append(aten.expand(column, grad_output._a.shape))
    first = second = third = None
    for part in parts:
        first = part if first is None else first + part
    if needs[1] and output_mask[1]:
        second = aten.convolution_backward(grad_output, input, of_weight, None, *rest, (True, False, False))[0]
    if needs[2] and output_mask[0]:
        third = aten.convolution_backward(grad_output, of_input, weight, None, *rest, (False, True, False))[1]
    return first, second, third


ARGUMENTS = ("Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
             "int[] output_padding, int groups")
NODE: dict[str, Any] = {"node": "ConvolutionBackward0", "grad": {("input", "weight", "bias"): _gradients}}
declare(f"convolution({ARGUMENTS}) -> Tensor", cpu=kernels.convolution, where="f", **NODE)
declare(f"_convolution({ARGUMENTS}, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
        cpu=kernels.any_convolution, where="f", **NODE)
declare(
    "mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, int[] padding, int[] stride, int[] dilation, "
    "int groups) -> Tensor", cpu=kernels.mkldnn_convolution, where="f", node="ConvolutionBackward0",
    grad={("self", "weight", "bias"): lambda grad, self, weight, bias_shape, padding, stride, dilation, groups, needs:
          _gradients(grad, self, weight, bias_shape, stride, padding, dilation, False, (0,) * len(padding), groups,
                     needs)},
)
declare(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, "
    "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> "
    "(Tensor, Tensor, Tensor)", cpu=kernels.convolution_backward, where="n",
    grad={("grad_output", "input", "weight"): _second_gradients},
)

# -- the levels above it -----------------------------------------------------------------------------------------------


def _convolution_mode(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: str, dilation: Sizes,
                      groups: int) -> Tensor:
    kernel = weight._a.shape[2:]
    if padding == "valid":
        return aten.convolution(input, weight, bias, stride, (0,) * len(kernel), dilation, False, (0,) * len(kernel),
                                groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in _sequence(stride, len(kernel))):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(_sequence(dilation, len(kernel)), kernel)]
    if any(t % 2 for t in totals):
        warn_once("Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of "
                  "the input be created")
        # The window's own padding is symmetric; what is left over goes to the end.
        margins = [m for t in reversed(totals) for m in (0, t % 2)]
        input = aten.constant_pad_nd(input, margins, 0)
    return aten.convolution(input, weight, bias, stride, tuple(t // 2 for t in totals), dilation, False,
                            (0,) * len(kernel), groups)


declare(
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, "
    "int groups) -> Tensor", composite=_convolution_mode, where="f",
)


def _sequence(values: Sizes, count: int) -> tuple[int, ...]:
    sizes = (values,) if isinstance(values, int) else tuple(int(v) for v in values)
    return sizes * count if len(sizes) == 1 else sizes


def _batched(input: Tensor, spatial: int, name: str) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether it came with one."""
    ndim = input._a.ndim
    if ndim == spatial + 2:
        return input, True
    if ndim != spatial + 1:
        raise RuntimeError(f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, but got "
                           f"input of size: {list(input._a.shape)}")
    return aten.unsqueeze(input, 0), False


def _conv_flops(shapes: Any, arguments: tuple[Any, ...]) -> int:
    """Multiplications and additions, as PyTorch counts them: only for `conv2d` of a batch."""
    (images, channels, *sizes), (out, _, *kernel) = shapes[:2]
    if len(sizes) != 2:
        return -1
    stride, padding, dilation = (_sequence(v, 2) for v in arguments[3:6])
    positions = 1
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation):
        positions *= (n + 2 * p - d * (k - 1) - 1) // s + 1
    return 2 * images * positions * kernel[0] * kernel[1] * channels * out // int(arguments[6])


def _declare_plain(spatial: int) -> None:
    name = f"conv{spatial}d"
    ones, zeros = "[" + ", ".join("1" * spatial) + "]", "[" + ", ".join("0" * spatial) + "]"

    def plain(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes,
              groups: int) -> Tensor:
        batch, was_batched = _batched(input, spatial, name)
        made = aten.convolution(batch, weight, bias, _sequence(stride, spatial), _sequence(padding, spatial),
                                _sequence(dilation, spatial), False, (0,) * spatial, groups)
        if not batch._a.shape[1]:
            made = aten.narrow(made, 1, 0, 0)  # PyTorch's result without channels has none either
        return made if was_batched else aten.squeeze(made, 0)

    def by_word(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: str, dilation: Sizes,
                groups: int) -> Tensor:
        batch, was_batched = _batched(input, spatial, name)
        made = aten._convolution_mode(batch, weight, bias, _sequence(stride, spatial), padding,
                                      _sequence(dilation, spatial), groups)
        return made if was_batched else aten.squeeze(made, 0)

    declare(f"{name}(Tensor input, Tensor weight, Tensor? bias=None, int[{spatial}] stride={ones}, int[{spatial}] "
            f"padding={zeros}, int[{spatial}] dilation={ones}, int groups=1) -> Tensor", composite=plain, where="f",
            flops=_conv_flops if spatial == 2 else None)
    declare(f'{name}.padding(Tensor input, Tensor weight, Tensor? bias=None, int[{spatial}] stride={ones}, '
            f'str padding="valid", int[{spatial}] dilation={ones}, int groups=1) -> Tensor', composite=by_word,
            where="f")

    @choose(name, where="f")
    def chosen(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
               dilation: Sizes = 1, groups: int = 1) -> Tensor:
        form = getattr(aten, f"{name}__padding" if isinstance(padding, str) else f"{name}__default")
        return form(input, weight, bias, stride, padding, dilation, groups)

    chosen.__name__ = chosen.__qualname__ = name
    chosen.__doc__ = f"{spatial}-dimensional convolution; `padding` is numbers, 'same' or 'valid'."


def _declare_transposed(spatial: int) -> None:
    name = f"conv_transpose{spatial}d"
    ones, zeros = "[" + ", ".join("1" * spatial) + "]", "[" + ", ".join("0" * spatial) + "]"

    def transposed(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes,
                   output_padding: Sizes, groups: int, dilation: Sizes) -> Tensor:
        batch, was_batched = _batched(input, spatial, name)
        made = aten.convolution(batch, weight, bias, _sequence(stride, spatial), _sequence(padding, spatial),
                                _sequence(dilation, spatial), True, _sequence(output_padding, spatial), groups)
        return made if was_batched else aten.squeeze(made, 0)

    overload = "" if spatial == 1 else ".input"
    declare(f"{name}{overload}(Tensor input, Tensor weight, Tensor? bias=None, int[{spatial}] stride={ones}, "
            f"int[{spatial}] padding={zeros}, int[{spatial}] output_padding={zeros}, int groups=1, "
            f"int[{spatial}] dilation={ones}) -> Tensor", composite=transposed, where="f")


for _spatial in (1, 2, 3):
    _declare_plain(_spatial)
    _declare_transposed(_spatial)


# -- PyTorch's names of single kernels ---------------------------------------------------------------------------------


def _declare_kernel(name: str, spatial: int, transposed: bool, dilated: bool) -> None:
    """A convolution by the name of the kernel that PyTorch has for it; all are one kernel here."""
    def composite(self: Tensor, weight: Tensor, kernel_size: Sizes, bias: Tensor | None, stride: Sizes,
                  padding: Sizes, *rest: Any) -> Tensor:
        kernel = _sequence(kernel_size, spatial)
        if weight._a.shape[2:] != kernel:
            raise RuntimeError(f"{name}: expected a weight with windows of size {list(kernel)}, but got a weight of "
                               f"size {list(weight._a.shape)}")
        margins = _sequence(padding, spatial)
        for side, margin in zip(("width", "height", "depth"), reversed(margins)):
            if margin > 2**31 - 1:
                raise ValueError(f"Padding {side} too large: pad_{side}={margin}")
        extra = _sequence(rest[0], spatial) if transposed else (0,) * spatial
        dilation = _sequence(rest[-1], spatial) if dilated else (1,) * spatial
        batch, was_batched = _batched(self, spatial, name)
        made = aten.convolution(batch, weight, bias, _sequence(stride, spatial), margins, dilation, transposed, extra,
                                1)
        return made if was_batched else aten.squeeze(made, 0)

    zeros, ones = (0,) * spatial, (1,) * spatial
    more = f", int[{spatial}] output_padding={zeros}" * transposed + f", int[{spatial}] dilation={ones}" * dilated
    declare(f"{name}(Tensor self, Tensor weight, int[{spatial}] kernel_size, Tensor? bias=None, int[{spatial}] "
            f"stride={ones}, int[{spatial}] padding={zeros}{more}) -> Tensor", composite=composite, where="n")


for _name, _spatial, _kind in (("thnn_conv2d", 2, ""), ("slow_conv3d", 3, ""),
                               *((f"slow_conv_{kind}{n}d", n, kind) for kind in ("transpose", "dilated")
                                 for n in (2, 3))):
    _declare_kernel(_name, _spatial, _kind == "transpose", bool(_kind))


def _double_backward(ggI: Tensor | None, ggW: Tensor | None, ggb: Tensor | None, gO: Tensor, weight: Tensor,
                     self: Tensor, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                     groups: int, output_mask: Any) -> tuple[Any, ...]:
    given = (ggI is not None, ggW is not None, ggb is not None)
    found = _second_gradients((ggI, ggW, ggb), gO, self, weight, stride, padding, dilation, transposed, output_padding,
                              groups, given, output_mask)
    shapes = gO, self, weight
    return tuple(aten.zeros_like(like) if one is None else one for one, like in zip(found, shapes))


declare("_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, "
        "int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)", composite=_double_backward, where="n")
