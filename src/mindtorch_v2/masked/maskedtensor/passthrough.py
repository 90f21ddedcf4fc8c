"""Ops that only move elements: they do the same to the data and to the mask."""

from __future__ import annotations

from typing import Any

from ... import ops
from .core import _get_data, _map_mt_args_kwargs, _maybe_get_mask, _wrap_result

__all__: list[str] = []

_NAMES = [
    "select", "transpose", "split", "t", "slice", "slice_backward", "select_backward", "index", "expand", "view",
    "_unsafe_view", "_reshape_alias", "cat", "unsqueeze", "unfold", "unfold_backward", "im2col", "col2im", "stack",
]
PASSTHROUGH_FNS = [getattr(ops.aten, name) for name in _NAMES]


def _is_pass_through_fn(fn: Any) -> bool:
    return fn in PASSTHROUGH_FNS


def _apply_pass_through_fn(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """An op on the data and on the mask."""
    data_args, data_kwargs = _map_mt_args_kwargs(args, kwargs, _get_data)
    mask_args, mask_kwargs = _map_mt_args_kwargs(args, kwargs, _maybe_get_mask)
    return _wrap_result(fn(*data_args, **data_kwargs), fn(*mask_args, **mask_kwargs))
