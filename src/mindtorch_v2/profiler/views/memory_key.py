"""`TensorKey`: how a block of memory is called in a memory profile."""

from __future__ import annotations

from dataclasses import dataclass

DEVICE_NAMES = {0: "cpu", 1: "cuda", 14: "meta", 20: "npu"}


@dataclass(frozen=True)
class TensorKey:
    """Names a block: its number in the recording, where it is, and the identity it has there."""

    device: str
    id: int
    storage: int

    def __repr__(self) -> str:
        return f"id={self.id}: {self.storage:#x} ({self.device})"

    def __lt__(self, other: TensorKey) -> bool:
        return (self.id, self.device, self.storage) < (other.id, other.device, other.storage)


def device_name(kind: int, index: int) -> str:
    """`cpu`, `npu:0`."""
    name = DEVICE_NAMES.get(kind, f"device{kind}")
    return name if index < 0 or kind == 0 else f"{name}:{index}"
