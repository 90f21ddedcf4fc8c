"""`torch._C.PyTorchFileReader` and `PyTorchFileWriter`: the records of an archive one by one."""

from __future__ import annotations

import contextlib
import importlib
import os
import zipfile
from typing import Any

import numpy as np

from mindtorch_v2._serialization._zip_reader import RecordReader
from mindtorch_v2._serialization._zip_writer import ALIGNMENT_BYTES, RecordWriter, archive_name, atomic_output

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


class PyTorchFileWriter:
    """Writes records. A file that is given by its path appears after `write_end_of_file`."""

    def __init__(self, name_or_buffer: Any, compute_crc32: bool = True,
                 storage_alignment: int = ALIGNMENT_BYTES) -> None:
        self._ended = True  # until the file is open
        is_path = isinstance(name_or_buffer, (str, os.PathLike))
        self._open = contextlib.ExitStack()
        target = self._open.enter_context(atomic_output(name_or_buffer)) if is_path else name_or_buffer
        self._root = archive_name(name_or_buffer if is_path else None)
        self._records = RecordWriter(target, self._root, storage_alignment, compute_crc32)
        self._names: set[str] = set()
        self._ended = False

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Add a record: the given number of bytes of a string, a buffer or a storage."""
        if isinstance(data, str):
            data = data.encode()
        payload = memoryview(data.bytes() if hasattr(data, "bytes") and callable(data.bytes) else data).cast("B")
        self._records.write(name, payload[:size])
        self._names.add(name)

    def write_end_of_file(self) -> None:
        """Write the directory; nothing can be added after it."""
        self._ended = True
        if "byteorder" not in self._names:
            self.write_record("byteorder", importlib.import_module("sys").byteorder, 6)
        self._names |= {"version", ".data/serialization_id"}
        self._records.__exit__(None)
        self._open.close()

    def __del__(self) -> None:
        """A writer that is dropped ends its file, as PyTorch's does."""
        if not self._ended:
            self.write_end_of_file()

    def archive_name(self) -> str:
        """The folder in the archive."""
        return self._root

    def get_all_written_records(self) -> set[str]:
        """The names of the records."""
        return set(self._names)


class PyTorchFileReader:
    """Reads records of a file, given by its path or open."""

    def __init__(self, name_or_buffer: Any) -> None:
        self._records = RecordReader(name_or_buffer)

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._records.read(name)

    def has_record(self, name: str) -> bool:
        """Whether there is such a record."""
        return name in self.get_all_records()

    def get_all_records(self) -> list[str]:
        """The names of the records."""
        return self._records.names()

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A tensor with the bytes of a record."""
        package = importlib.import_module(__name__.partition(".")[0])
        raw = np.frombuffer(bytearray(self.get_record(name)), np.uint8)
        return package.from_numpy(raw).view(dtype)[:numel]

    def serialization_id(self) -> str:
        """Forty digits that stand for names and contents; empty in old files."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""

    def get_record_header_offset(self, name: str) -> int:
        """Where a record begins in the file."""
        return self._info(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        return self._records.payload_offset(name)

    def _info(self, name: str) -> zipfile.ZipInfo:
        return self._records.info(name)
