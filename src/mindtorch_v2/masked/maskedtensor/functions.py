"""Which op does what to masked tensors: the tables behind `__torch_function__` and `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ... import ops
from ..._dispatch.namespace import aten
from ..._tensor import sparse_coo, sparse_csr, strided
from .. import _ops
from .binary import NATIVE_BINARY_FNS, NATIVE_INPLACE_BINARY_FNS, _apply_native_binary
from .core import (
    MaskedTensor,
    _get_data,
    _map_mt_args_kwargs,
    _masks_match,
    is_masked_tensor,
)
from .passthrough import PASSTHROUGH_FNS, _apply_pass_through_fn
from .reductions import NATIVE_REDUCE_FNS, REDUCE_NAMES, _apply_reduction
from .sparse import at_places
from .unary import NATIVE_INPLACE_UNARY_FNS, NATIVE_UNARY_FNS, _apply_native_unary


def _where(condition: Any, input: Any, other: Any) -> Any:
    """Elements of two masked tensors by a plain condition; an element has a value if the chosen one has."""
    if not (is_masked_tensor(input) and is_masked_tensor(other)):
        raise ValueError("where of masked tensors: input and other must both be masked tensors")
    made = aten.where(condition, input.get_data(), other.get_data())
    return MaskedTensor._from_values(made, aten.where(condition, input.get_mask(), other.get_mask()))


def _softmax(input: Any, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return MaskedTensor._from_values(_ops.softmax(input.get_data(), dim, dtype=dtype, mask=input.get_mask()),
                                     input.get_mask())


def _in_layout(layout: Any, convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """Both parts in another layout; sparse data has the places that the mask selects."""

    def converted(input: Any, *unused: Any, **options: Any) -> Any:
        if input.layout == layout:
            return input
        data, mask = input.get_data(), input.get_mask()
        chosen = convert(mask)
        if layout == strided:
            return MaskedTensor._from_values(convert(data), chosen)
        dense = data if data.layout == strided else data.to_dense()
        return MaskedTensor._from_values(at_places(dense, chosen), chosen)

    return converted


def _contiguous(input: Any, **options: Any) -> Any:
    if input.is_sparse:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return input.clone()


_AT_FUNCTION: dict[str, Any] = {
    "where": _where, "softmax": _softmax, "contiguous": _contiguous,
    "to_dense": _in_layout(strided, lambda one: one.to_dense()),
    **dict.fromkeys(("to_sparse", "to_sparse_coo"), _in_layout(sparse_coo, lambda one: one.to_sparse())),
    "to_sparse_csr": _in_layout(sparse_csr, lambda one: one.to_sparse_csr()),
    **{name: partial(_apply_reduction, name) for name in REDUCE_NAMES},
}


def taken(function: Any) -> Any:
    """The function that replaces one of `torch`, or a method, for masked tensors; or None."""
    return _AT_FUNCTION.get(getattr(function, "__name__", ""))


def _on_data(op: Any, *args: Any, **kwargs: Any) -> Any:
    """An op on the data alone; the mask stays."""
    first = args[0]
    data_args, data_kwargs = _map_mt_args_kwargs(args, kwargs, _get_data)
    return MaskedTensor(op(*data_args, **data_kwargs), first._masked_mask)


def _on_both(op: Any, *args: Any, **kwargs: Any) -> Any:
    """An op on data and mask, which keep their dtypes."""
    first, *rest = args
    return MaskedTensor(op(first._masked_data, *rest, **kwargs), op(first._masked_mask, *rest, **kwargs))


def _item(op: Any, input: Any) -> Any:
    if not bool(input._masked_mask):
        raise ValueError("an element that the mask leaves out has no value")
    return op(input._masked_data)


def _copy_(op: Any, target: Any, source: Any, non_blocking: bool = False) -> Any:
    if not _masks_match(target, source):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    op(target._masked_data, _get_data(source), non_blocking)
    return target


def _new_empty_strided(op: Any, input: Any, size: Any, stride: Any, **kwargs: Any) -> Any:
    if tuple(size) != tuple(input.shape):
        raise ValueError(f"new_empty_strided of a masked tensor has its shape {tuple(input.shape)}, not {tuple(size)}")
    return MaskedTensor(op(input._masked_data, size, stride, **kwargs), input._masked_mask)


def _same_size(op: Any, first: Any, second: Any) -> Any:
    return op(_get_data(first), _get_data(second))


def _reduced(op: Any, *args: Any, **kwargs: Any) -> Any:
    return _apply_reduction(op, *args, **kwargs)


_AT_DISPATCH: dict[Any, Any] = {
    **dict.fromkeys(NATIVE_UNARY_FNS + NATIVE_INPLACE_UNARY_FNS, _apply_native_unary),
    **dict.fromkeys(NATIVE_BINARY_FNS + NATIVE_INPLACE_BINARY_FNS, _apply_native_binary),
    **dict.fromkeys(PASSTHROUGH_FNS, _apply_pass_through_fn),
    **dict.fromkeys(NATIVE_REDUCE_FNS, _reduced),
    **{getattr(ops.aten, name): _on_data for name in ("_to_copy", "ones_like", "_softmax_backward_data")},
    **{getattr(ops.aten, name): _on_both for name in ("clone", "detach", "contiguous")},
    **dict.fromkeys((ops.aten.isfinite, ops.aten.isinf), _apply_native_unary),
    ops.aten.new_empty_strided: _new_empty_strided,
    ops.aten._local_scalar_dense: _item, ops.aten.copy_: _copy_, ops.aten.is_same_size: _same_size,
}


def dispatched(packet: Any) -> Any:
    """What an op does to masked tensors; None where that is not defined."""
    return _AT_DISPATCH.get(packet)
