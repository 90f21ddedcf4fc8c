"""Functions of one masked tensor, element by element: the mask stays."""

from __future__ import annotations

from typing import Any

from ... import ops
from .core import MaskedTensor, _get_data, _map_mt_args_kwargs, is_masked_tensor
from .sparse import of_values

__all__: list[str] = []

UNARY_NAMES = [
    "abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin", "asinh", "arcsinh", "atan",
    "arctan", "atanh", "arctanh", "bitwise_not", "ceil", "clamp", "clip", "conj_physical", "cos", "cosh",
    "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "floor", "frac", "lgamma", "log",
    "log10", "log1p", "log2", "logit", "i0", "isnan", "nan_to_num", "neg", "negative", "positive", "pow",
    "rad2deg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sgn", "signbit", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
]
_NEW_ONLY = {"angle", "positive", "signbit", "isnan"}
INPLACE_UNARY_NAMES = [f"{name}_" for name in UNARY_NAMES if name not in _NEW_ONLY]
UNARY_NAMES_UNSUPPORTED = [
    "atan2", "arctan2", "bitwise_left_shift", "bitwise_right_shift", "copysign", "float_power", "fmod", "frexp",
    "gradient", "imag", "ldexp", "lerp", "logical_not", "hypot", "igamma", "igammac", "mvlgamma", "nextafter",
    "polygamma", "real", "remainder", "true_divide", "xlogy",
]
NATIVE_UNARY_FNS = [getattr(ops.aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(ops.aten, name) for name in INPLACE_UNARY_NAMES]


def _is_native_unary(fn: Any) -> bool:
    return fn in NATIVE_UNARY_FNS or fn in NATIVE_INPLACE_UNARY_FNS


def _apply_native_unary(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of the data of the first argument, with its mask."""
    first = args[0]
    if not is_masked_tensor(first):
        raise TypeError("MaskedTensor: the first argument must be a masked tensor")
    rest, kwargs = _map_mt_args_kwargs(args[1:], kwargs, _get_data)
    made = of_values(lambda data: fn(data, *rest, **kwargs), _get_data(first))
    if fn.overloadpacket in NATIVE_INPLACE_UNARY_FNS:
        first._set_data_mask(made, first._masked_mask)
        return first
    return MaskedTensor(made, first._masked_mask)
