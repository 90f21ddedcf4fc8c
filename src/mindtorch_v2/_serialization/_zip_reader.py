"""The records of a checkpoint file: found, checked and read, or mapped into memory.

Errors name the file and keep the words by which PyTorch's own are known.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import zipfile
import zlib
from typing import IO, Any, cast

import numpy as np

__all__ = ["RecordReader", "UnknownByteOrder", "position_of"]

_ZIP_MAGIC = b"PK\x03\x04"
_TAR_MAGIC, _TAR_MAGIC_OFFSET = b"ustar", 257
_MAX_VERSION = 10
_MAX_ITEM_BYTES = 16
_CHUNK_BYTES = 1 << 24
_LIMIT_SETTING = "MINDTORCH_LOAD_LIMIT_BYTES"
# PyTorch does not compress. Compressing afterwards saves a few percent, or much if there are many zeros.
_MOST_TIMES_FILE, _LEAST_LIMIT_BYTES = 100, 1 << 28
# What zipfile raises on damaged archives, beside its own error.
_READ_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, OverflowError)
_LOCAL_HEADER = struct.Struct("<26xHH")  # of which only the lengths of the name and of the extra field matter here


_NOT_SEEKABLE = ("You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
                 "io.BytesIO and try to load from it instead.")


def position_of(file: Any) -> int:
    """The position in a file; a file that cannot seek is refused."""
    for name in ("seek", "tell", "read"):
        if not hasattr(file, name):
            raise AttributeError(f"'{type(file).__name__}' object has no attribute '{name}'. {_NOT_SEEKABLE}")
    try:
        return int(file.tell())
    except io.UnsupportedOperation as error:
        raise type(error)(f"{error}. {_NOT_SEEKABLE}") from error


def fill(file: Any, view: memoryview) -> int:
    """Read from a file into memory, until it is full or the file ends; how many bytes came.

    In pieces, because a file that only has `read` takes as much memory again.
    """
    read_into, filled = getattr(file, "readinto", None), 0
    while filled < len(view):
        piece = view[filled:filled + _CHUNK_BYTES]
        if read_into is None:
            found = file.read(len(piece))
            got = len(found)
            piece[:got] = found
        else:
            got = read_into(piece)
        if not got:
            break
        filled += got
    return filled


def _limit_bytes(file_bytes: int) -> int:
    """How much a file of this size may unpack to."""
    chosen = os.environ.get(_LIMIT_SETTING)
    if chosen is None:
        return max(_LEAST_LIMIT_BYTES, _MOST_TIMES_FILE * file_bytes)
    if not chosen.isdecimal():
        raise ValueError(f"the environment variable {_LIMIT_SETTING} should be a number of bytes, and is {chosen!r}")
    return int(chosen)


class UnknownByteOrder(RuntimeError, ValueError):
    """The file does not say "little" or "big". PyTorch raises ValueError; other damage is a RuntimeError."""


class NotACheckpoint(pickle.UnpicklingError, RuntimeError):
    """The file does not begin like a checkpoint. It is both errors: PyTorch's depends on whether it trusts the file."""


class _Seekable:
    """A file object that can seek but does not say so; zipfile asks."""

    def __init__(self, file: Any) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def seekable(self) -> bool:
        return True


def _forget_missing_sums(archive: zipfile.ZipFile) -> None:
    """Do not check sums in an archive that was saved without them: it has zeros instead."""
    if all(info.CRC == 0 for info in archive.infolist()):
        for info in archive.infolist():
            del info.CRC


class RecordReader:
    """A checkpoint file opened for reading; use as a context manager.

    A file given by path is closed again, whatever happens; a file object is left open, as it came.
    """

    def __init__(self, path_or_file: str | os.PathLike[str] | IO[bytes], *, mmap: bool = False,
                 byteorder: str = "little", mmap_shared: bool = False) -> None:
        is_path = isinstance(path_or_file, (str, os.PathLike))
        if mmap and not is_path:
            raise ValueError("f must be a file path in order to use the mmap argument")
        self._owns_file = is_path
        self.byteorder = byteorder
        if isinstance(path_or_file, (str, os.PathLike)):
            self.label = os.fspath(path_or_file)
            self._file: IO[bytes] = open(self.label, "rb")  # noqa: SIM115 (closed in __exit__ and below)
        else:
            self.label = str(getattr(path_or_file, "name", None) or f"<{type(path_or_file).__name__}>")
            self._file = path_or_file
        self._zip: zipfile.ZipFile | None = None
        self._mapping: np.ndarray | None = None
        self._unpacked_bytes = 0
        try:
            self._open_archive()
            if mmap:
                # Private pages, unless they are asked for: changing a loaded tensor must not change the checkpoint.
                self._mapping = np.memmap(self.label, dtype=np.uint8, mode="r+" if mmap_shared else "c")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the archive, and the file if it was opened here."""
        if self._zip is not None:
            self._zip.close()
        if self._owns_file:
            self._file.close()

    def read(self, name: str) -> bytes:
        """The contents of a record."""
        info = self.info(name)
        self._count(name, info)
        try:
            return self._archive.read(info)
        except _READ_ERRORS as error:
            raise self._corrupt(f"failed reading file {name}: {error}") from error

    def read_elements(self, key: str, count: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The elements of storage ``key`` in the byte order of this machine; they are the caller's to change."""
        name = f"data/{key}"
        info = self.info(name)
        expected_bytes = count * dtype.itemsize
        if info.file_size != expected_bytes:
            raise RuntimeError(
                f"{self.label}: record size ({info.file_size} bytes) does not match expected size ({expected_bytes} "
                f"bytes = {count} elements * {dtype.itemsize} bytes/element) for storage {key}"
            )
        if info.compress_type == zipfile.ZIP_STORED and info.header_offset + info.file_size > self._file_bytes:
            raise self._corrupt(f"failed reading file {name}: it ends beyond the end of the archive")
        if self._mapping is None:
            self._count(name, info)
        raw = self._read_bytes(name, info) if self._mapping is None else self._map_bytes(name, info)
        if raw.ctypes.data % _MAX_ITEM_BYTES:
            raw = raw.copy()  # mapped from an archive that was not aligned when it was written
        return raw.view(dtype)

    def _open_archive(self) -> None:
        start = position_of(self._file)
        head = self._file.read(_TAR_MAGIC_OFFSET + len(_TAR_MAGIC))
        self._file.seek(0, io.SEEK_END)
        self._file_bytes = self._file.tell()
        self._file.seek(start)
        if not head.startswith(_ZIP_MAGIC):
            raise self._not_a_zip(head)
        try:
            file = self._file if hasattr(self._file, "seekable") else cast(IO[bytes], _Seekable(self._file))
            self._archive = self._zip = zipfile.ZipFile(file)
        except (*_READ_ERRORS, struct.error) as error:
            raise self._corrupt(f"failed reading zip archive: failed finding central directory ({error})") from error
        _forget_missing_sums(self._archive)
        names = self._archive.namelist()
        self._root = names[0].partition("/")[0] if names else ""
        if f"{self._root}/constants.pkl" in names:
            raise NotImplementedError(f"{self.label} is a TorchScript archive, which holds a program: not supported")
        self._check_version()
        if self._has("byteorder"):
            self.byteorder = self.read("byteorder").decode("ascii", "replace")
        if self.byteorder not in ("little", "big"):
            raise UnknownByteOrder(f"{self.label}: Unknown endianness type: {self.byteorder[:20]}, which should be "
                                   "little or big. The checkpoint is probably corrupted.")

    @property
    def needs_byteswap(self) -> bool:
        """Whether the file was written by a machine of the other byte order."""
        return self.byteorder != sys.byteorder

    def _check_version(self) -> None:
        name = next((name for name in ("version", ".data/version") if self._has(name)), None)
        if name is None:
            raise self._corrupt("failed locating file version: file not found")
        text = self.read(name)
        try:
            version = int(text)
        except ValueError as error:
            raise self._corrupt(f"the version is no number: {text[:20]!r}") from error
        if version > _MAX_VERSION:
            raise RuntimeError(
                f"{self.label}: Attempted to read a PyTorch file with version {version}, but the maximum supported "
                f"version for reading is {_MAX_VERSION}"
            )

    def _not_a_zip(self, head: bytes) -> Exception:
        if head[_TAR_MAGIC_OFFSET:] == _TAR_MAGIC:
            return NotImplementedError(
                f"{self.label} is a tar archive as PyTorch wrote before version 0.2, which is not supported: load it "
                "with PyTorch and save it again"
            )
        if not head:
            return EOFError(f"{self.label} is empty: Ran out of input")
        return NotACheckpoint(
            f"Weights only load failed. {self.label} is not a checkpoint: Invalid magic number; corrupt file? It "
            f"begins with {head[:8]!r}"
        )

    def _corrupt(self, what: str) -> RuntimeError:
        return RuntimeError(
            f"PytorchStreamReader {what}. File: {self.label}. The checkpoint is probably corrupted: it was not saved "
            "completely, damaged on the way, or changed after saving."
        )

    def _count(self, name: str, info: zipfile.ZipInfo) -> None:
        """Refuse a file that would unpack to much more than it is, before memory is taken for it."""
        self._unpacked_bytes += info.file_size
        limit = _limit_bytes(self._file_bytes)
        if self._unpacked_bytes > limit:
            raise RuntimeError(
                f"{self.label}: record {name} would unpack to {info.file_size} bytes, {self._unpacked_bytes} with "
                f"those before it, from a file of {self._file_bytes}. The limit is {limit}; if you trust the file, set "
                f"{_LIMIT_SETTING} to more."
            )

    def _has(self, name: str) -> bool:
        return f"{self._root}/{name}" in self._archive.NameToInfo

    def info(self, name: str) -> zipfile.ZipInfo:
        """What the archive says about a record."""
        try:
            return self._archive.getinfo(f"{self._root}/{name}")
        except KeyError:
            raise self._corrupt(f"failed locating file {name}: file not found") from None

    def names(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(f"{self._root}/") for name in self._archive.namelist()]

    def payload_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        info = self.info(name)
        before = self._file.tell()
        self._file.seek(info.header_offset)
        name_bytes, extra_bytes = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        self._file.seek(before)
        return info.header_offset + _LOCAL_HEADER.size + int(name_bytes) + int(extra_bytes)

    def _read_bytes(self, name: str, info: zipfile.ZipInfo) -> np.ndarray:
        raw = np.empty(info.file_size, dtype=np.uint8)
        try:
            if info.compress_type == zipfile.ZIP_STORED and hasattr(self._file, "readinto"):
                filled = self._read_stored(info, raw.data)
            else:
                with cast(zipfile.ZipExtFile, self._archive.open(info)) as record:
                    filled = fill(record, raw.data)
        except _READ_ERRORS as error:
            raise self._corrupt(f"failed reading file {name}: {error}") from error
        if filled != info.file_size:
            raise self._corrupt(f"failed reading file {name}: {filled} bytes instead of {info.file_size}")
        return raw

    def _read_stored(self, info: zipfile.ZipInfo, view: memoryview) -> int:
        """Read a record as it is in the file, straight into its memory."""
        with cast(zipfile.ZipExtFile, self._archive.open(info)):
            pass  # it checks the header
        self._file.seek(self.payload_offset(info.filename.partition("/")[2]))
        filled = fill(self._file, view)
        if getattr(info, "CRC", None) not in (None, zlib.crc32(view[:filled])):
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {info.filename!r}")
        return filled

    def _map_bytes(self, name: str, info: zipfile.ZipInfo) -> np.ndarray:
        mapping = self._mapping
        if mapping is None or info.compress_type != zipfile.ZIP_STORED:
            raise RuntimeError(f"{self.label}: record {name} is compressed, which rules out mmap=True")
        if info.header_offset + _LOCAL_HEADER.size > len(mapping):
            raise self._corrupt(f"failed reading file {name}: its header is beyond the end of the file")
        name_bytes, extra_bytes = _LOCAL_HEADER.unpack_from(mapping.data, info.header_offset)
        start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
        if start + info.file_size > len(mapping):
            raise self._corrupt(f"failed reading file {name}: it ends beyond the end of the file")
        if info.file_size == 0:
            return np.empty(0, dtype=np.uint8)
        # By way of the buffer, so that each storage is an array of its own, not a view of one as large as the file.
        return np.frombuffer(mapping.data[start : start + info.file_size], dtype=np.uint8)
