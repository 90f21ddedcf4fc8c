"""Functions of two tensors, element by element: masks of two masked tensors must be equal."""

from __future__ import annotations

from typing import Any

from ... import ops
from ..._tensor import Tensor, strided
from .core import MaskedTensor, _get_data, _masks_match, _maybe_get_mask, is_masked_tensor
from .sparse import of_values

__all__: list[str] = []

BINARY_NAMES = [
    "add", "atan2", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
    "bitwise_right_shift", "div", "divide", "floor_divide", "fmod", "logaddexp", "logaddexp2", "mul", "multiply",
    "nextafter", "remainder", "sub", "subtract", "true_divide", "eq", "ne", "le", "ge", "greater", "greater_equal",
    "gt", "less_equal", "lt", "less", "maximum", "minimum", "fmax", "fmin", "not_equal",
]
_NEW_ONLY = {"logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin", "equal"}
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _NEW_ONLY]
NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]


def _is_native_binary(fn: Any) -> bool:
    return fn in NATIVE_BINARY_FNS or fn in NATIVE_INPLACE_BINARY_FNS


def _apply_native_binary(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of the data of two operands, with the mask they have."""
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    first, second, *rest = args
    if rest:
        raise ValueError(f"{fn.overloadpacket.__name__} of masked tensors takes two operands")
    if not _masks_match(first, second):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    layouts = {one.layout for one in (first, second) if isinstance(one, Tensor) and one.dim()}
    if len(layouts) > 1 and layouts != {strided}:
        raise TypeError("Inputs should match sparsity/density; found "
                        + " and ".join(sorted(map(str, layouts))))
    mask = _maybe_get_mask(first) if is_masked_tensor(first) else _maybe_get_mask(second)
    made = of_values(fn, _get_data(first), _get_data(second))
    if fn.overloadpacket in NATIVE_INPLACE_BINARY_FNS and is_masked_tensor(first):
        first._set_data_mask(made, mask)
        return first
    return MaskedTensor(made, mask if mask.shape == made.shape else mask.expand(made.shape))
