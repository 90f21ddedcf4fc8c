"""Memory shared by the tensors that view it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._device import device


class Storage:
    """The bytes behind one or more tensors; made on demand, since most tensors are never viewed."""

    __slots__ = ("__weakref__", "array", "device")

    def __init__(self, array: Any, where: device) -> None:
        # The array that owns the memory (or wraps a buffer of somebody else's), not a view of it.
        base = array
        while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
            base = base.base
        self.array = base
        self.device = where

    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.array.nbytes)

    size = nbytes
    __len__ = nbytes

    def data_ptr(self) -> int:
        """Address of the first byte."""
        array = self.array
        return int(array.ctypes.data) if isinstance(array, np.ndarray) else int(array.data_ptr)

    def bytes(self) -> np.ndarray:
        """The memory as a flat array of bytes that shares it."""
        array = self.array
        if not array.flags.c_contiguous:
            # An owner is dense: some permutation of its dimensions is row-major.
            array = array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
        return array.reshape(-1).view(np.uint8)

    def tolist(self) -> list[int]:
        """The bytes as Python integers."""
        return self.bytes().tolist()

    def __getitem__(self, index: Any) -> Any:
        found = self.bytes()[index]
        return int(found) if np.ndim(found) == 0 else found.tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.array is other.array

    def __hash__(self) -> int:
        return id(self.array)

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


class Shared:
    """What a family of views has in common: its storage and its version counter.

    `x.data` shares the storage but gets a `Shared`, and so a counter, of its own.
    """

    __slots__ = ("storage", "version")

    def __init__(self, storage: Storage | None = None, version: int = 0) -> None:
        self.storage = storage
        self.version = version
