"""Collectives on objects: pickled, and sent as tensors of bytes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .._tensor import Tensor, wrap
from ._collectives import _root, all_gather, broadcast, gather, scatter
from ._groups import ProcessGroup, resolve
from ._messages import recv, send

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
           "send_object_list"]


def _pickled(value: Any) -> np.ndarray:
    return np.frombuffer(bytearray(pickle.dumps(value)), np.uint8)


def _unpickled(row: np.ndarray, size: int) -> Any:
    return pickle.loads(row[:size].tobytes())


def _numbers(*values: int) -> Tensor:
    return wrap(np.array(values, np.int64))


def _room(size: int) -> Tensor:
    return wrap(np.zeros(size, np.uint8))


def _sizes_of_all(data: np.ndarray, members: ProcessGroup) -> list[int]:
    sizes = [_numbers(0) for _ in range(members.size())]
    all_gather(sizes, _numbers(data.size), members)
    return [int(size) for size in sizes]


def _padded(data: np.ndarray, size: int) -> Tensor:
    room = _room(size)
    room._a[:data.size] = data
    return room


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fill a list with the objects of all ranks."""
    members = resolve(group)
    if members is None:
        return
    if len(object_list) < members.size():
        raise ValueError(f"all_gather_object: object_list should have a place for each of the {members.size()} ranks, "
                         f"but has {len(object_list)}")
    data = _pickled(obj)
    sizes = _sizes_of_all(data, members)
    rows = [_room(max(sizes)) for _ in sizes]
    all_gather(rows, _padded(data, max(sizes)), members)
    for place, (row, size) in enumerate(zip(rows, sizes)):
        object_list[place] = _unpickled(row._a, size)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
                  group_dst: int | None = None) -> None:
    """Fill one rank's list with the objects of all ranks."""
    members = resolve(group)
    if members is None:
        return
    root = _root(members, 0 if dst is None and group_dst is None else dst, group_dst, "dst", "gather_object")
    is_root = members.rank() == root
    if is_root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not is_root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data = _pickled(obj)
    sizes = _sizes_of_all(data, members)
    rows = [_room(max(sizes)) for _ in sizes] if is_root else None
    gather(_padded(data, max(sizes)), rows, group=members, group_dst=root)
    if rows is not None and object_gather_list is not None:
        object_gather_list[:] = [_unpickled(row._a, size) for row, size in zip(rows, sizes)]


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                          group_src: int | None = None) -> None:
    """Replace the objects of a list by those of one rank."""
    members = resolve(group)
    if members is None:
        return
    root = _root(members, 0 if src is None and group_src is None else src, group_src, "src", "broadcast_object_list")
    data = [_pickled(one) for one in object_list] if members.rank() == root else []
    sizes = _numbers(*(one.size for one in data)) if data else _numbers(*([0] * len(object_list)))
    broadcast(sizes, group=members, group_src=root)
    joined = wrap(np.concatenate(data)) if data else _room(int(sizes._a.sum()))
    broadcast(joined, group=members, group_src=root)
    if members.rank() != root:
        object_list[:] = _taken_apart(joined, sizes)


def _taken_apart(joined: Tensor, sizes: Tensor) -> list[Any]:
    ends = np.cumsum(sizes._a)
    return [_unpickled(joined._a[end - size:end], size) for end, size in zip(ends, sizes._a)]


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None) -> None:
    """Put one of a rank's objects into the first place of each rank's list."""
    members = resolve(group)
    if members is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _root(members, 0 if src is None and group_src is None else src, group_src, "src", "scatter_object_list")
    rows = None
    facts = _numbers(0, 0)
    sizes = None
    if members.rank() == root:
        if not scatter_object_input_list or len(scatter_object_input_list) != members.size():
            raise ValueError(f"scatter_object_list: scatter_object_input_list should have an object for each of the "
                             f"{members.size()} ranks")
        data = [_pickled(one) for one in scatter_object_input_list]
        longest = max(one.size for one in data)
        rows = [_padded(one, longest) for one in data]
        sizes = [_numbers(one.size, longest) for one in data]
    scatter(facts, sizes, group=members, group_src=root)
    row = _room(int(facts._a[1]))
    scatter(row, rows, group=members, group_src=root)
    scatter_object_output_list[0] = _unpickled(row._a, int(facts._a[0]))


def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
                     group_dst: int | None = None, use_batch: bool = False) -> None:
    """Send the objects of a list to a rank."""
    if resolve(group) is None:
        return
    data = [_pickled(one) for one in object_list]
    send(_numbers(*(one.size for one in data)), dst, group, group_dst=group_dst)
    send(wrap(np.concatenate(data)), dst, group, group_dst=group_dst)


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                     group_src: int | None = None, use_batch: bool = False) -> int:
    """Replace the objects of a list by those that a rank sends; returns the sender's rank."""
    if resolve(group) is None:
        return -1
    sizes = _numbers(*([0] * len(object_list)))
    sender = recv(sizes, src, group, group_src=group_src)
    joined = _room(int(sizes._a.sum()))
    recv(joined, sender, group)
    object_list[:] = _taken_apart(joined, sizes)
    return sender
