"""From a list of samples to a batch of tensors."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ...._construct import as_tensor, tensor
from ...._dispatch.namespace import offered as aten  # a batch of a subclass is of the subclass
from ...._dtype import float64
from ...._tensor import Tensor, strided

# "S", "U" and "O": arrays of text and of objects stay as they are.
NOT_NUMBERS = frozenset("SaUO")
np_str_obj_array_pattern = re.compile(f"[{''.join(sorted(NOT_NUMBERS))}]")  # libraries search dtype strings for it
Table = dict[Any, Callable[..., Any]]


def default_convert(data: Any) -> Any:
    """NumPy arrays inside nested containers as tensors, everything else as it is."""
    if isinstance(data, Tensor) or type(data).__module__ == "numpy":
        is_array = not isinstance(data, Tensor) and np.asarray(data).dtype.kind not in NOT_NUMBERS
        return as_tensor(np.asarray(data)) if is_array else data
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def _like_mapping(example: Any, items: dict[Any, Any]) -> Any:
    """The items in a mapping of the example's type, a plain dictionary if that type does not allow it."""
    try:
        if isinstance(example, MutableMapping):
            # A copy keeps what a subclass carries besides its items, such as a default factory.
            made = copy.copy(example)
            made.update(items)
            return made
        return type(example)(items)
    except TypeError:
        return items


def _like_sequence(example: Any, items: list[Any]) -> Any:
    """The items in a sequence of the example's type, a plain list if that type does not allow it."""
    try:
        if isinstance(example, MutableSequence):
            made = copy.copy(example)
            for position, item in enumerate(items):
                made[position] = item
            return made
        return type(example)(items)
    except TypeError:
        return items


def collate(batch: Any, *, collate_fn_map: Table | None = None) -> Any:
    """Combine samples by the table's function for their type, going into containers."""
    first = batch[0]
    kind = type(first)
    table = collate_fn_map or {}
    if kind in table:
        return table[kind](batch, collate_fn_map=table)
    for known, function in table.items():
        if isinstance(first, known):
            return function(batch, collate_fn_map=table)
    if isinstance(first, Mapping):
        return _like_mapping(first, {key: collate([sample[key] for sample in batch], collate_fn_map=table)
                                     for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=table) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=table) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(_refusal(kind))


def _refusal(kind: Any) -> str:
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"


def collate_tensor_fn(batch: Any, *, collate_fn_map: Table | None = None) -> Tensor:
    """Tensors, stacked."""
    if batch[0].layout is not strided:
        raise RuntimeError("Batches of sparse tensors are not currently supported by the default collate_fn; please "
                           "provide a custom collate_fn to handle them appropriately.")
    return aten.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Table | None = None) -> Any:
    """Arrays as tensors, stacked."""
    if batch[0].dtype.kind in NOT_NUMBERS:
        raise TypeError(_refusal(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Table | None = None) -> Tensor:
    """Numbers of NumPy in one tensor."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Table | None = None) -> Tensor:
    """Numbers in one tensor of float64."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Table | None = None) -> Tensor:
    """Integers in one tensor."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Table | None = None) -> Any:
    """Text stays a list."""
    return batch


default_collate_fn_map: Table = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Stack tensors, turn numbers into tensors, and do so inside dictionaries, tuples and lists.

    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
