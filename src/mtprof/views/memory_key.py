"""`TensorKey`: the name of a block of memory in a memory profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .event_fields import AllocationFields, TensorMetadata


@dataclass(frozen=True)
class Storage:
    """Where memory is, and which use of that place it is: the number of its allocation in the recording."""

    ptr: int
    allocation_id: int

    def __repr__(self) -> str:
        return f"{hex(self.ptr):>18} ({self.allocation_id})"


@dataclass(frozen=True)
class Key:
    """Names something on a device."""

    device: Any


@dataclass(frozen=True)
class TensorKey(Key):
    """Names a block: its number in the recording, and where it is."""

    id: int
    storage: Storage

    def __repr__(self) -> str:
        return f"id={self.id}: {self.storage!r} ({self.device})"

    def __lt__(self, other: TensorKey) -> bool:
        return self._as_sortable < other._as_sortable

    @property
    def _as_sortable(self) -> tuple[int, int, str]:
        return self.id, self.storage.allocation_id, str(self.device)

    @staticmethod
    def from_allocation(alloc: AllocationFields) -> TensorKey | None:
        """The key of what an event of a tree allocated or released."""
        return _key(alloc.device, alloc.id, alloc.ptr, alloc.allocation_id)

    @staticmethod
    def from_tensor(t: TensorMetadata | None) -> TensorKey | None:
        """The key of an argument of an op; None if the recording does not know its memory."""
        return None if t is None else _key(t.device, t.id, t.storage_data_ptr, t.allocation_id)


def _key(device: Any, number: int | None, ptr: int | None, allocation_id: int | None) -> TensorKey | None:
    if number is None or not ptr or allocation_id is None:
        return None
    return TensorKey(device, number, Storage(ptr, allocation_id))

