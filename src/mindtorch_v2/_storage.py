"""Memory shared by the tensors that view it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ._backends.array import flat_bytes, part
from ._backends.base import copy_array, device_named, device_of, to_host, transfer
from ._device import CPU, as_device, device
from ._shared_memory import SharedMap, is_shared_memory, owner_of


class Storage:
    """The bytes behind one or more tensors; made on demand, since most tensors are never viewed."""

    __slots__ = ("__dict__", "__weakref__", "array", "device")
    borrowed = False  # whether the memory is another library's

    def __init__(self, array: Any, where: device) -> None:
        # The array that owns the memory (or wraps a buffer of somebody else's), not a view of it.
        base = array
        while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
            base = base.base
        self.array = base if isinstance(base, np.ndarray) else device_of(base).whole(base)
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
        """The memory as a flat array of bytes that shares it; of another device, a copy that cannot be written to."""
        array = self.array
        if type(array) is not np.ndarray:
            copy = to_host(array)
            copy.flags.writeable = False
            return copy
        return flat_bytes(array)

    def untyped(self) -> Storage:
        """This storage: it has no element type."""
        return self

    def element_size(self) -> int:
        """1: elements are bytes."""
        return 1

    def fill_(self, value: int) -> Storage:
        """Set every byte."""
        if not isinstance(value, (int, np.integer)):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        value = int(value) & 0xFF
        device_of(self.array).fill(self._flat(), value)
        return self

    def copy_(self, source: Storage, non_blocking: bool = False) -> Storage:
        """Copy another storage's bytes."""
        source = source.untyped()
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} "
                               "bytes")
        copy_array(self._flat(), source._flat(), non_blocking)
        return self

    def clone(self) -> Storage:
        """The same bytes in new memory."""
        return Storage(device_of(self.array).clone(self._flat()), self.device)

    def _flat(self) -> Any:
        return self.bytes() if type(self.array) is np.ndarray else self.array

    @property
    def owner(self) -> Any:
        """What storages of the same memory have in common."""
        return self.array if isinstance(self.array, np.ndarray) else self.array.memory

    def cpu(self) -> Storage:
        """This storage if its memory is the host's, else a copy there."""
        return self if isinstance(self.array, np.ndarray) else Storage(to_host(self.array), CPU)

    def to(self, *, device: Any, non_blocking: bool = False) -> Storage:
        """This storage on a device."""
        place = as_device(device)
        return self if place == self.device else Storage(transfer(self._flat(), place, non_blocking), place)

    def resize_(self, size: int) -> Storage:
        """Change the size; the tensors on it move to the new memory, and must fit there."""
        from ._moving import resize

        if size != self.nbytes():
            if self.device.type == "meta":
                self.array = device_of(self.array).empty((size,), np.dtype(np.uint8), self.device)
                return self
            self._of_host("resize_")
            resize(self, size)
        return self

    def resizable(self) -> bool:
        """Whether the memory is this storage's own, so that its size can change."""
        return not isinstance(self.array, np.ndarray) or (self.array.base is None and not self.borrowed)

    def share_memory_(self) -> Storage:
        """Move to memory that processes share, with the tensors on it."""
        from ._moving import to_shared_memory

        self._of_host("share_memory_")
        to_shared_memory(self)
        return self

    def _of_host(self, name: str) -> None:
        if not isinstance(self.array, np.ndarray):
            raise NotImplementedError(f"UntypedStorage.{name}: memory of {self.device.type} stays where it is")

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> Storage:
        """New memory that processes share."""
        if str(device) != "cpu":
            raise NotImplementedError(f"memory that processes share is the host's, not that of {device}")
        return Storage(np.frombuffer(SharedMap.new(size), np.uint8) if size else np.empty(0, np.uint8), CPU)

    @property
    def filename(self) -> str | None:
        """The file of this memory, if it was mapped to be shared."""
        return getattr(owner_of(self.array), "filename", None)

    def get_device(self) -> int | None:
        """The number of the device, None for the host."""
        return self.device.index

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        if dtype in ("torch.storage.UntypedStorage", "torch.UntypedStorage") or dtype is Storage:
            return self
        raise NotImplementedError("UntypedStorage.type: bytes become elements by float(), int() and their kin")

    def new(self) -> Storage:
        """Storage without any memory."""
        return Storage(np.empty(0, np.uint8), CPU)

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of each element of a type, in place; of complex numbers, those of each part."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.nbytes() % size:
            raise RuntimeError(f"the length of data is not a multiple of {size}")
        elements = self.bytes().reshape(-1, size)
        elements[...] = elements[:, ::-1].copy()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Move to memory that processes share; a descriptor of its file, and its size."""
        if self.device.type != "cpu":
            raise RuntimeError("_share_fd_: only available on CPU")
        if not self.nbytes():
            raise RuntimeError("_share_fd_: a storage without memory has no file")
        self.share_memory_()
        memory = owner_of(self.array)
        if not isinstance(memory, SharedMap):
            raise RuntimeError("_share_fd_: this memory is of a file that has another owner")
        return os.dup(memory.file), self.nbytes()

    @classmethod
    def _new_shared_fd_cpu(cls, file: int, size: int) -> Storage:
        """The memory of a file that `_share_fd_cpu_` gave; the file belongs to the storage from now on."""
        return Storage(np.frombuffer(SharedMap.of(file, size), np.uint8), CPU)

    @classmethod
    def _new_using_fd_cpu(cls, size: int) -> Storage:
        """New memory that processes share."""
        return cls._new_shared(size)

    def _share_filename_cpu_(self) -> NoReturn:
        if self.device.type != "cpu":
            raise RuntimeError("_share_filename_: only available on CPU")
        raise NotImplementedError("memory is shared by descriptors of files without names here: _share_fd_cpu_")

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to a file, after the number of elements if that is wanted."""
        content = to_host(self._flat())
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, "little"))
        file.write(content.tobytes())

    @classmethod
    def _new_with_file(cls, file: Any, element_size: int) -> Storage:
        """The storage that `_write_file` wrote, with its size, at this place in a file."""
        count = int.from_bytes(file.read(8), "little")
        data = file.read(count * element_size)
        if len(data) != count * element_size:
            raise RuntimeError(f"unexpected EOF, expected {count * element_size - len(data)} more bytes. The file "
                               "might be corrupted.")
        return Storage(np.frombuffer(bytearray(data), np.uint8), CPU)

    def tolist(self) -> list[int]:
        """The bytes as Python integers."""
        return self.bytes().tolist()

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, (int, np.integer, slice)):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if isinstance(index, slice) and index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if not isinstance(index, slice) and not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        found = self.bytes()[index]
        if np.ndim(found) == 0:
            return int(found)
        # Through a memory view, so that the part counts as memory of its own rather than as a view of the whole.
        return Storage(np.frombuffer(memoryview(found), np.uint8), self.device)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice) and index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        if not isinstance(value, (int, np.integer)):
            raise RuntimeError("can only set storage content with a int types, but got "
                               f"{type(value).__name__} instead")
        if not isinstance(index, slice) and not -self.nbytes() <= index < self.nbytes():
            raise RuntimeError("out of bounds")
        value = int(value) & 0xFF
        if type(self.array) is np.ndarray:
            self.bytes()[index] = value
            return
        device_of(self.array).fill(part(self.array, index), value)

    @property
    def _cdata(self) -> int:
        """A number that storages of the same memory have in common."""
        return id(self.owner)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is CUDA's."""
        return self.device.type == "cuda"

    @property
    def is_hpu(self) -> bool:
        """Whether the memory is Habana's."""
        return self.device.type == "hpu"

    is_sparse = is_sparse_csr = False

    def is_shared(self) -> bool:
        """Whether other processes see changes."""
        return is_shared_memory(self.array)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether a device can copy from this memory while the program goes on."""
        return False

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __reduce__(self) -> Any:
        return (_of_bytes, (self.bytes(), *([] if self.device.type == "cpu" else [self.device])))

    def __copy__(self) -> Storage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Storage:
        copies = memo.setdefault("torch", {})
        if self not in copies:
            copies[self] = self.clone()
        return copies[self]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.owner is other.owner

    def __hash__(self) -> int:
        return id(self.owner)

    def __repr__(self) -> str:
        contents = "..." if self.device.type == "meta" else " " + "\n ".join(map(str, self.tolist()))
        return f"{contents}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


# Programs see it as this.
Storage.__name__ = Storage.__qualname__ = "UntypedStorage"
Storage.__module__ = f"{__package__}.storage"


def _of_bytes(data: np.ndarray, where: device = CPU) -> Storage:
    """Rebuild a pickled storage."""
    if where == CPU:
        return Storage(data if data.flags.writeable else data.copy(), CPU)
    moved = device_named(where).from_host(data, where)
    return Storage(moved, moved.device)


class Shared:
    """What a family of views has in common: its storage and its version counter.

    `x.data` shares the storage but gets a `Shared`, and so a counter, of its own.
    """

    __slots__ = ("storage", "version")

    def __init__(self, storage: Storage | None = None, version: int = 0) -> None:
        self.storage = storage
        self.version = version


UNTRACKED = -2  # the version of memory that keeps none


class InferenceShared(Shared):
    """What views of memory that was made in inference mode have in common: no versions are counted."""

    __slots__ = ()

    @property
    def version(self) -> int:
        """Always the same: nothing is counted."""
        return UNTRACKED

    @version.setter
    def version(self, value: int) -> None:
        pass


class BorrowedShared(Shared):
    """What views of memory that another library owns have in common: it cannot grow."""

    __slots__ = ()
