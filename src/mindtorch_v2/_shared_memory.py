"""Memory that processes share: a file without a name, mapped by each of them."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np


class SharedMap(mmap.mmap):
    """A mapping that knows its file, so that it can be sent to running processes."""

    file: int

    @classmethod
    def new(cls, nbytes: int) -> SharedMap:
        """Fresh memory."""
        if hasattr(os, "memfd_create"):
            file = os.memfd_create("mindtorch")
        else:
            file, path = tempfile.mkstemp()
            os.unlink(path)
        os.ftruncate(file, nbytes)
        return cls.of(file, nbytes)

    @classmethod
    def of(cls, file: int, nbytes: int) -> SharedMap:
        """The memory of a file that another process made; the file is closed with the mapping."""
        made = cls(file, nbytes)
        made.file = file
        return made

    def __del__(self) -> None:
        if hasattr(self, "file"):
            os.close(self.file)
            del self.file


class NamedMap(mmap.mmap):
    """A mapping of a file; it knows the file's name if changes go there."""

    filename: str | None = None


def is_shared_memory(array: Any) -> bool:
    """Whether other processes see changes of an array."""
    owner = owner_of(array)
    return isinstance(owner, SharedMap) or (isinstance(owner, NamedMap) and owner.filename is not None)


def owner_of(array: Any) -> Any:
    """What an array's memory belongs to, if not to an array."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array
