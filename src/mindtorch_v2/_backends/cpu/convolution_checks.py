"""PyTorch's checks of a convolution's arguments, with its words."""

from __future__ import annotations

import functools
from typing import Any

from ..._dispatch.promotion import pretty
from ..._dtype import FROM_NUMPY

Array = Any
Sizes = tuple[int, ...]
CPP_NAMES = {"Float": "float", "Double": "double", "Long": "long", "Int": "int", "Half": "c10::Half",
             "BFloat16": "c10::BFloat16", "ComplexFloat": "c10::complex<float>",
             "ComplexDouble": "c10::complex<double>"}


def _listed(values: Any) -> list[int]:
    return [values] if isinstance(values, int) else [int(v) for v in values]


def _type_name(dtype: Any) -> str:
    name = pretty(FROM_NUMPY[dtype])
    return CPP_NAMES.get(name, name)


def _sizes(values: Any) -> str:
    return "(" + " x ".join(str(v) for v in values) + ")"


def fixed(values: Any) -> Any:
    """One number or several, in a form that can be looked up."""
    return int(values) if isinstance(values, int) else tuple(map(int, values))


def check_convolution(x: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any,
                      transposed: bool, output_padding: Any, groups: int) -> None:
    """Raise PyTorch's error for arguments that do not fit."""
    _check(x.shape, weight.shape, None if bias is None else bias.shape, x.dtype, weight.dtype,
           None if bias is None else bias.dtype, fixed(stride), fixed(padding), fixed(dilation), transposed,
           fixed(output_padding), groups)


@functools.lru_cache(maxsize=1024)  # caches valid arguments; wrong ones are checked each time
def _check(x: Sizes, weight: Sizes, bias: Sizes | None, x_type: Any, weight_type: Any, bias_type: Any, stride: Any,
           padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int) -> None:
    count = len(weight) - 2
    if len(weight) < 3:
        raise RuntimeError(f"weight should have at least three dimensions, but got {list(weight)}")
    strides, margins, gaps, extra = (_listed(v) for v in (stride, padding, dilation, output_padding))
    for name, values in (("stride", strides), ("padding", margins), ("dilation", gaps), ("output_padding", extra)):
        if len(values) not in (1, count):
            raise RuntimeError(f"expected {name} to be a single integer value or a list of {count} values to match the "
                               f"convolution dimensions, but got {name}={values}")
    if min(margins) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(extra) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(strides) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(gaps) <= 0:
        raise RuntimeError("non-positive dilation is not supported: dilation should be greater than zero, but got "
                           f"{gaps}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(x) != len(weight):
        raise RuntimeError(f"Expected {len(weight)}-dimensional input for {len(weight)}-dimensional weight "
                           f"{list(weight)}, but got {len(x)}-dimensional input of size {list(x)} instead")
    if weight[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           f"weight of size {list(weight)} instead")
    if weight[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           f"got weight of size [{list(weight)}] instead")
    given = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    wanted = weight[0] if transposed else weight[1] * groups
    if x[1] != wanted:
        raise RuntimeError(f"Given {given}, weight of size {list(weight)}, expected input{list(x)} to have "
                           f"{wanted} channels, but got {x[1]} channels instead")
    channels = weight[1] * groups if transposed else weight[0]
    if bias is not None and bias != (channels,):
        about = f"Given transposed={int(transposed)}, weight" if transposed else "Given weight"
        raise RuntimeError(f"{about} of size {list(weight)}, expected bias to be 1-dimensional with {channels} "
                           f"elements, but got bias of size {list(bias)} instead")
    if x_type != weight_type:
        other = "bias" if bias is not None and bias_type == weight_type else "weight"
        raise RuntimeError(f"Input type ({_type_name(x_type)}) and {other} type ({_type_name(weight_type)}) should be "
                           f"the same: expected scalar type {pretty(FROM_NUMPY[x_type])} but found "
                           f"{pretty(FROM_NUMPY[weight_type])}")
    if bias is not None and bias_type != x_type:
        raise RuntimeError(f"Input type ({_type_name(x_type)}) and bias type ({_type_name(bias_type)}) should be the "
                           "same")
    strides, margins, gaps, extra = ((v * count if len(v) == 1 else v) for v in (strides, margins, gaps, extra))
    kernel = weight[2:]
    if 0 in kernel:
        raise RuntimeError(f"kernel size should be greater than zero, but got {_sizes(kernel)}")
    if transposed:
        _check_content(x)
        _check_transposed(x, kernel, strides, margins, gaps, extra)
        return
    padded = [n + 2 * p for n, p in zip(x[2:], margins)]
    reach = [d * (k - 1) + 1 for d, k in zip(gaps, kernel)]
    if any(r > n for r, n in zip(reach, padded)):
        raise RuntimeError(f"Calculated padded input size per channel: {_sizes(padded)}. Kernel size: {_sizes(reach)}. "
                           "Kernel size can't be greater than actual input size")
    _check_content(x)


def _check_content(x: Sizes) -> None:
    if 0 in x[2:] and x[0] and x[1]:
        shown = [*x[:2], 1, *x[2:]] if len(x) == 3 else list(x)
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {shown}")


def _check_transposed(x: Sizes, kernel: Any, strides: list[int], margins: list[int], gaps: list[int],
                      extra: list[int]) -> None:
    names = ("time", "height", "width")[-len(kernel):] if len(kernel) > 1 else ("width",)
    if any(e >= s and e >= d for e, s, d in zip(extra, strides, gaps)):
        parts = [f"{word}_{name}: {value}" for word, values in (("output_padding", extra), ("stride", strides),
                                                                 ("dilation", gaps))
                 for name, value in zip(names, values)]
        raise RuntimeError("output padding must be smaller than either stride or dilation, but got " + " ".join(parts))
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1
             for n, s, p, d, k, e in zip(x[2:], strides, margins, gaps, kernel, extra)]
    if min(sizes) < 1:
        raise RuntimeError(f"Given input size per channel: {_sizes(x[2:])}. Calculated output size per channel: "
                           f"{_sizes(sizes)}. Output size is too small")
