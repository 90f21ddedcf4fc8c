"""Records into a zip file laid out as PyTorch lays it out: nothing compressed, every payload on an aligned address.

A record is followed by a data descriptor, as in PyTorch's files, so that readers which compute where a storage begins
(rather than look it up) find it there.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import struct
import uuid
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

__all__ = ["ALIGNMENT_BYTES", "MAX_COMPUTABLE_BYTES", "RecordWriter", "archive_name", "atomic_output"]

ALIGNMENT_BYTES = 64

MAX_COMPUTABLE_BYTES = 2_000_000_000
"""Above about this size zipfile writes its 64-bit fields, sooner than PyTorch does: payloads then start elsewhere."""

_LOCAL_HEADER_BYTES = 30
_EXTRA_HEADER_BYTES = 4
_ZIP64_EXTRA_BYTES = 20
_PADDING_ID = b"FB"
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the earliest a zip file can tell, so that equal objects give equal files


class Writable(Protocol):
    """All that is asked of a file object."""

    def write(self, data: Any, /) -> Any: ...


def archive_name(path: str | os.PathLike[str] | None) -> str:
    """The folder in the archive: the file name without its extension, or ``archive`` when it has no plain name."""
    base = "" if path is None else os.path.basename(os.fspath(path))
    stem, dot, extension = base.rpartition(".")
    name = stem if dot else extension
    return name if name and name.isascii() else "archive"


class _CountingStream(io.RawIOBase):
    """A write-only stream that knows its position and cannot go back, which makes zipfile write data descriptors."""

    def __init__(self, target: Writable) -> None:
        self._target = target
        self._position = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        written = 0
        while written < view.nbytes:
            # An unbuffered file may take a part only, and says so; other objects may say nothing.
            count = self._target.write(view[written:])
            written += count if isinstance(count, int) else view.nbytes - written
        self._position += written
        return written

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return False


class _Zip(zipfile.ZipFile):
    """A zip file whose directory is written by `close` only, never because it is forgotten after a failure."""

    def __del__(self) -> None:
        """Nothing: half an archive must not look like a whole one, and its file may be closed by now."""


class RecordWriter:
    """Writes named records below one folder of a new zip file; use as a context manager.

    Leaving the block writes the version, the serialization id and the directory of the archive; leaving it with an
    exception writes nothing more, so that half an archive never looks like a whole one.
    """

    def __init__(self, target: Writable, root: str, alignment: int = ALIGNMENT_BYTES, crc32: bool = True) -> None:
        self._root, self._alignment, self._crc32 = root, alignment, crc32
        self._stream = _CountingStream(target)
        self._zip = _Zip(self._stream, "w", zipfile.ZIP_STORED)

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        if exception_type is not None:
            return
        self.write("version", b"3\n")
        self.write(".data/serialization_id", self._serialization_id())
        self._zip.close()

    def write(self, name: str, payload: bytes | memoryview) -> None:
        """Add a record; its payload begins on a multiple of the alignment."""
        size_bytes = memoryview(payload).nbytes
        info = zipfile.ZipInfo(f"{self._root}/{name}", _TIMESTAMP)
        info.file_size = size_bytes
        is_zip64 = size_bytes * 1.05 > zipfile.ZIP64_LIMIT
        start = self._stream.tell() + _LOCAL_HEADER_BYTES + len(info.filename.encode()) + _EXTRA_HEADER_BYTES
        padding = -(start + (_ZIP64_EXTRA_BYTES if is_zip64 else 0)) % self._alignment
        info.extra = _PADDING_ID + struct.pack("<H", padding) + b"Z" * padding
        with self._zip.open(info, "w", force_zip64=is_zip64) as record:
            record.write(payload)
            if not self._crc32:
                # What PyTorch writes in place of a sum.
                record._crc = 0  # type: ignore[attr-defined]

    def _serialization_id(self) -> bytes:
        """Forty digits that depend on the names (first half) and on the contents (second half) of the records."""
        names, contents = hashlib.sha256(), hashlib.sha256()
        for info in self._zip.infolist():
            names.update(info.filename.removeprefix(self._root).encode() + b"\0")
            contents.update(struct.pack("<L", info.CRC))
        halves = (int.from_bytes(digest.digest()[:8], "little") for digest in (names, contents))
        return "".join(f"{half:020d}" for half in halves).encode()


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that appears under ``path`` only when the block ends well; otherwise nothing has changed.

    The permissions of a file that is replaced are kept, and a symbolic link goes on pointing where it pointed.
    """
    final = os.path.realpath(os.fspath(path))
    folder, base = os.path.split(final)
    if not base or os.fspath(path).endswith((os.sep, "/")):
        raise RuntimeError(f"invalid file name: {os.fspath(path)}")
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(path))} does not exist.")
    if os.path.isdir(final):
        raise RuntimeError(f"cannot write a checkpoint to {os.fspath(path)}: it is a directory")
    if os.path.exists(final) and not os.path.isfile(final):
        with open(final, "wb") as device:  # a pipe or a device: there is nothing to replace
            yield device
        return
    # A name of our own rather than tempfile's, whose files only their owner may read.
    # Names are limited in bytes, so it has not all of a long one.
    start = os.fsencode(base)[:100].decode("utf-8", "ignore")
    temporary = os.path.join(folder, f".{start}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as output:
            yield output
            output.flush()
            os.fsync(output.fileno())
        if os.path.exists(final):
            shutil.copymode(final, temporary)
        os.replace(temporary, final)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
