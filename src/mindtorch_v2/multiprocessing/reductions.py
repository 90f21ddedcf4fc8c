"""`torch.multiprocessing.reductions`: references to storages that do not keep them."""

from __future__ import annotations

import weakref
from typing import Any

from .._typed_storage import TypedStorage

__all__ = ["StorageWeakRef"]


class StorageWeakRef:
    """Which storage it was, and whether it is still there. Two are equal if they are of one storage."""

    __slots__ = ("__weakref__", "cdata", "reference")

    def __init__(self, storage: Any) -> None:
        plain = storage.untyped() if isinstance(storage, TypedStorage) else storage
        self.cdata = id(plain)
        self.reference = weakref.ref(plain)

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """Refused: a storage is not found by its address here."""
        raise NotImplementedError("StorageWeakRef.from_weakref: storages are not found by their address")

    def expired(self) -> bool:
        """Whether nobody holds the storage any more."""
        return self.reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)
