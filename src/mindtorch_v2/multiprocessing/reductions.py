"""`torch.multiprocessing.reductions`: how tensors go to other processes; references that do not keep storages."""

from __future__ import annotations

import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._dtype import dtype
from .._shared_memory import SharedMap, owner_of
from .._tensor import Tensor, wrap_as
from .._typed_storage import TypedStorage
from ..nn.parameter import Parameter

__all__ = ["StorageWeakRef", "init_reductions", "rebuild_tensor", "reduce_tensor"]


def reduce_tensor(tensor: Tensor) -> Any:
    """What goes to another process: of shared memory where it is, else the elements."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not cross process "
            "boundaries. Call detach() on the tensor before serializing it, to transfer the elements alone."
        )
    memory = owner_of(tensor._a)
    if not isinstance(memory, SharedMap):
        return tensor.__reduce_ex__(2)
    return rebuild_tensor, (type(tensor), DupFd(memory.file), len(memory), tensor.dtype, tensor.storage_offset(),
                            tuple(tensor._a.shape), tensor.stride(), tensor._rg, tensor.__dict__)


def rebuild_tensor(cls: type, file: Any, nbytes: int, kind: dtype, offset: int, shape: tuple[int, ...],
                   stride: tuple[int, ...], requires_grad: bool, attributes: dict[str, Any]) -> Tensor:
    """The tensor in the other process, on the same memory."""
    whole = np.frombuffer(SharedMap.of(file.detach(), nbytes), kind.np)
    made = wrap_as(cls, aten.as_strided(wrap_as(Tensor, whole), shape, stride, offset)._a)
    made._rg = requires_grad
    made.__dict__.update(attributes)
    return made


def init_reductions() -> None:
    """Let Python's `multiprocessing` send tensors this way."""
    for kind in (Tensor, Parameter):
        ForkingPickler.register(kind, reduce_tensor)


class StorageWeakRef:
    """Which storage it was, and whether it is still there. Two are equal if they are of one storage."""

    __slots__ = ("__weakref__", "cdata", "reference")

    def __init__(self, storage: Any) -> None:
        plain = storage._untyped_storage if isinstance(storage, TypedStorage) else storage
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
