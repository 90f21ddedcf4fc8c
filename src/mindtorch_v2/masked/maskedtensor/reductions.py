"""Reductions of masked tensors: over the elements that the mask selects."""

from __future__ import annotations

from typing import Any

from ... import ops
from ..._dispatch.namespace import aten
from ..._dtype import bool_
from ..._tensor import strided
from .. import _ops
from .core import MaskedTensor, is_masked_tensor

__all__: list[str] = []

REDUCE_NAMES = ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std"]
_PLACES = ("argmin", "argmax")
NATIVE_REDUCE_FNS = [getattr(ops.aten, name) for name in REDUCE_NAMES]


def _is_reduction(fn: Any) -> bool:
    return fn in NATIVE_REDUCE_FNS


def _all(data: Any, dim: Any = None, *, keepdim: bool = False, mask: Any) -> Any:
    """Whether all selected elements are true."""
    filled = aten.logical_or(aten.to(data, bool_), aten.logical_not(mask))
    return aten.all(filled) if dim is None else aten.all(filled, dim, keepdim=keepdim)


def _reduce(name: str, input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if not is_masked_tensor(input):
        raise TypeError(f"{name} of masked tensors: the input must be a MaskedTensor")
    data, mask = input.get_data(), input.get_mask()
    if data.layout != strided:
        data, mask = data.to_dense(), mask.to_dense()
    dims = None if isinstance(dim, (tuple, list)) and not dim else dim
    more = {} if name == "all" else {"dtype": dtype}
    made = (_all if name == "all" else getattr(_ops, name))(data, dims, keepdim=keepdim, mask=mask, **more)
    if name in _PLACES:
        made = made.to(data.dtype)
    chosen = mask.any() if dims is None else _ops._output_mask(_ops.amax, data, dims, keepdim=keepdim, mask=mask)
    if keepdim and dims is None:
        chosen = chosen.reshape(made.shape)
    return MaskedTensor._from_values(made, chosen)


def _apply_reduction(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """A reduction by its name or its op."""
    return _reduce(fn if isinstance(fn, str) else fn.overloadpacket.__name__, *args, **kwargs)
