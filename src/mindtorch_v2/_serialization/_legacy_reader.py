"""Files in the format that PyTorch wrote before version 1.6: pickles one after the other, then the storages' bytes.

    a magic number, a version, facts about the machine      three pickles
    the object, which names storages by key                 a pickle
    the keys in the order of what follows                   a pickle
    for each key the number of elements (8 bytes) and the elements, little-endian

How many bytes an element has is only known from the object's pickle, and that is not to be run before the storages can
be given to it. So the pickle is first looked through with classes that do nothing.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import IO, Any

import numpy as np

from mindtorch_v2._serialization._records import STORAGE_CLASS_BY_DTYPE, numpy_dtype
from mindtorch_v2._serialization._zip_reader import fill

__all__ = ["LONGEST_HEAD", "MAGIC_NUMBER", "LegacyReader", "legacy_head"]

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_HEADS = [pickle.dumps(MAGIC_NUMBER, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
LONGEST_HEAD = max(map(len, _HEADS))
_VERSION = 1001
_COUNT = struct.Struct("<q")
_ITEM_BYTES = {name: numpy_dtype(dtype).itemsize for dtype, name in STORAGE_CLASS_BY_DTYPE.items()}


def legacy_head(begin: bytes) -> int:
    """The length of the magic number with which a file of this format begins; 0 if it does not."""
    return next((len(head) for head in _HEADS if begin.startswith(head)), 0)


class LegacyReader:
    """Gives the same answers about an old file as a RecordReader about a new one."""

    needs_byteswap = sys.byteorder != "little"

    def __init__(self, file: IO[bytes], label: str) -> None:
        self.label = label
        self._file = file
        start = file.tell()
        begin = start + legacy_head(file.read(LONGEST_HEAD))
        file.seek(0, os.SEEK_END)
        self._file_bytes = file.tell()
        file.seek(begin)
        version = self._look().result
        if version != _VERSION:
            raise self._damage(f"Invalid protocol version: {str(version)[:20]}")
        self._look()  # the machine it was written on; the bytes that follow are little-endian on all
        begin = file.tell()
        storages = self._look().storages
        end = file.tell()
        file.seek(begin)
        self._pickled = file.read(end - begin)
        keys = self._look().result
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise self._damage("the list of its storages is missing")
        self._bytes = {key: self._read_storage(key, storages.get(key)) for key in keys}

    def __enter__(self) -> LegacyReader:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing: who opened the file closes it, and everything has been read."""

    def read(self, name: str) -> bytes:
        """The pickle of the object, which is all there is beside the storages."""
        if name != "data.pkl":
            raise self._damage(f"there is no {name} in this format")
        return self._pickled

    def read_elements(self, key: str, count: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The elements of storage ``key`` in the byte order of the file; they are the caller's to change."""
        found = self._bytes.get(key)
        if found is None:
            raise self._damage(f"storage {key} is missing")
        if found.nbytes != count * dtype.itemsize:
            raise self._damage(f"storage {key} has {found.nbytes} bytes, and {count} elements of {dtype} were expected")
        return found.view(dtype)

    def _read_storage(self, key: str, item_bytes: int | None) -> np.ndarray:
        if item_bytes is None:
            raise self._damage(f"storage {key} belongs to nothing")
        head = self._file.read(_COUNT.size)
        count = _COUNT.unpack(head)[0] if len(head) == _COUNT.size else -1
        size_bytes = count * item_bytes
        if count < 0 or size_bytes > self._file_bytes - self._file.tell():
            raise self._damage(f"it ends before storage {key} does")
        found = np.empty(size_bytes, np.uint8)
        if fill(self._file, found.data) < size_bytes:
            raise self._damage(f"it ends before storage {key} does")
        return found

    def _look(self) -> _Looker:
        """Look through the pickle that begins here; the file is then at the end of it."""
        looker = _Looker(_Plain(self._file, self._file_bytes))
        try:
            looker.result = looker.load()
        except Exception as error:  # a damaged pickle raises anything
            raise pickle.UnpicklingError(f"{self.label}: the pickle is damaged: {type(error).__name__}: {error}"
                                         ) from error
        return looker

    def _damage(self, what: str) -> RuntimeError:
        return RuntimeError(f"{self.label}: {what}. The checkpoint, of the format before PyTorch 1.6, is probably "
                            "corrupted: it was not saved completely, damaged on the way, or changed after saving.")


class _Plain:
    """A file that can only be read forwards, so that the unpickler takes no more of it than the pickle.

    A length that is larger than the file takes no memory.
    """

    def __init__(self, file: IO[bytes], file_bytes: int) -> None:
        self._file = file
        self._file_bytes = file_bytes
        self.readline = file.readline

    def read(self, count: int) -> bytes:
        """The next bytes, as far as there are any."""
        return self._file.read(min(count, self._file_bytes))


class _Anything:
    """Stands for every object of the pickle: takes whatever the pickle does to it, and does nothing."""

    def __new__(cls, *_: Any, **__: Any) -> _Anything:
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        """Arguments are ignored."""

    def __call__(self, *_: Any, **__: Any) -> _Anything:
        return self

    def __setstate__(self, state: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def append(self, item: Any) -> None: ...

    def extend(self, items: Any) -> None: ...

    def add(self, item: Any) -> None: ...


# Any, because its methods are missing from the type stubs. The one in C takes memory for the numbers of its memo.
_PythonUnpickler: Any = pickle._Unpickler


class _Looker(_PythonUnpickler):
    """Collects the storages that a pickle names; imports and calls nothing that the pickle asks for."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, encoding="latin1")
        self.storages: dict[str, int] = {}
        self.result: Any = None

    def find_class(self, module: str, name: str) -> Any:
        """A class of that name which does nothing."""
        return type(name, (_Anything,), {})

    def persistent_load(self, pid: Any) -> Any:
        """Note how many bytes an element of this storage has."""
        if isinstance(pid, tuple) and len(pid) > 2 and pid[0] == "storage" and isinstance(pid[2], str):
            self.storages[pid[2]] = _ITEM_BYTES.get(getattr(pid[1], "__name__", ""), 1)
        elif isinstance(pid, tuple) and len(pid) > 1 and pid[0] == "module":
            return pid[1]
        return _Anything()
