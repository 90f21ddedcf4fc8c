"""Moves storages to other memory, with the tensors on them.

A storage does not know its tensors, since nearly no program needs that and every view would pay for it. Who moves one
(`share_memory_`, sending to a process, `resize_`) finds them among the referrers that the garbage collector knows.
"""

from __future__ import annotations

import gc
import sys

import numpy as np

from ._backends.flipped import flipped, is_conj, is_neg, plain
from ._shared_memory import SharedMap, is_shared_memory
from ._storage import Shared, Storage
from ._tensor import Tensor, move


def tensors_on(storage: Storage) -> list[Tensor]:
    """The tensors that are on a storage."""
    shares = [one for one in gc.get_referrers(storage) if isinstance(one, Shared) and one.storage is storage]
    found = gc.get_referrers(*shares) if shares else []
    return [one for one in found if isinstance(one, Tensor) and any(one._st is share for share in shares)]


def relocate(storage: Storage, memory: np.ndarray, tensors: list[Tensor]) -> None:
    """Put a storage of the host and the tensors on it onto other memory, which has the contents already."""
    start = storage.data_ptr()
    moved = []
    for tensor in tensors:
        array = plain(tensor._a)
        if array.size:
            offset = array.__array_interface__["data"][0] - start
            there = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
            moved.append((tensor, flipped(there, is_conj(tensor._a), is_neg(tensor._a))))
    for tensor, there in moved:
        move(tensor, there)
    storage.array = memory


def to_shared_memory(storage: Storage, tensors: list[Tensor] | None = None) -> None:
    """Move a storage of the host to memory that processes share, unless it is there."""
    if storage.is_shared() or not storage.nbytes():
        return
    memory = np.frombuffer(SharedMap.new(storage.nbytes()), np.uint8)
    memory[...] = storage.bytes()
    relocate(storage, memory, tensors_on(storage) if tensors is None else tensors)


def share(tensor: Tensor) -> None:
    """Move a tensor's storage to memory that processes share, with all tensors on it."""
    if is_shared_memory(plain(tensor._a)):
        return
    only = [tensor] if is_alone(tensor) else None  # no search is needed then
    to_shared_memory(tensor.untyped_storage(), only)


def is_alone(tensor: Tensor) -> bool:
    """Whether nothing else uses a tensor's storage."""
    if tensor._st is None:
        return True
    # One reference is the tensor's, or what the tensor shares with its views, one the call's, and one this function's.
    storage = tensor._st.storage
    return sys.getrefcount(tensor._st) == 2 and (storage is None or sys.getrefcount(storage) == 3)


def resize(storage: Storage, size: int) -> None:
    """Give a storage of the host another size; what is on it must fit."""
    if size < 0:
        raise RuntimeError(f"a storage has no negative size, and {size} bytes were asked for")
    if not storage.resizable():
        raise RuntimeError("Trying to resize storage that is not resizable")
    tensors, start = tensors_on(storage), storage.data_ptr()
    if any(_end(plain(one._a)) > start + size for one in tensors):
        raise NotImplementedError(f"UntypedStorage.resize_({size}): tensors on this storage reach further, and a "
                                  "tensor without memory does not exist here")
    memory, kept = np.empty(size, np.uint8), min(size, storage.nbytes())
    memory[:kept] = storage.bytes()[:kept]
    relocate(storage, memory, tensors)


def _end(array: np.ndarray) -> int:
    """The address behind the last element; 0 without elements."""
    reach = sum((count - 1) * step for count, step in zip(array.shape, array.strides))
    return array.__array_interface__["data"][0] + reach + array.itemsize if array.size else 0
