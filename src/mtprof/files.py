"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

# Level 9, gzip's default, takes several times as long as level 3 and saves a few percent on traces.
_GZIP_LEVEL = 3
# Names of files that are open in this process: a process that writes to them would not see a file put in their place.
OPEN_FILE = re.compile(r"/dev/(?:(stdout)|(stderr))|/(?:dev|proc/self)/fd/(\d+)")


def write_atomically(path: str | bytes | os.PathLike[Any], chunks: Iterable[bytes]) -> None:
    """Write `chunks` to `path`, compressed if its name ends in `.gz`; the same chunks give the same bytes each time."""
    with atomic_file(path) as file:
        _write(file, chunks, os.fsdecode(path).endswith(".gz"))


@contextlib.contextmanager
def atomic_file(path: str | bytes | os.PathLike[Any]) -> Iterator[BinaryIO]:
    """A file to write to. It becomes `path` when the block ends without an error.

    The bytes go to a temporary name beside `path`, which is renamed at the end. So a reader sees the old file or the
    new one, and after any failure the old file is still there. A symbolic link keeps its target. A pipe or a device is
    written to directly.
    """
    name = os.fsdecode(path)
    if not name:
        raise FileNotFoundError(errno.ENOENT, "cannot write a file without a name")
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, f"cannot write {name}: it is a directory")
    is_no_file = OPEN_FILE.fullmatch(name) or (os.path.exists(name) and not os.path.isfile(name))
    try:
        target = name if is_no_file else os.path.realpath(name)
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, f"cannot write {name}: the current directory is gone") from error
    directory = os.path.dirname(target)
    if not is_no_file and not os.path.isdir(directory):
        raise FileNotFoundError(errno.ENOENT, f"cannot write {name}: the directory {directory} does not exist")
    try:
        if is_no_file:
            with open(_descriptor(target) or target, "wb") as file:
                yield file
        else:
            with _replacing(target) as file:
                yield file
    except OSError as error:
        # OSError picks the subclass for the number.
        raise OSError(error.errno, f"cannot write {name}: {error.strerror or error}") from error


def _descriptor(name: str) -> int | None:
    """A descriptor of the open file that a name stands for, at its write position; None for other names."""
    found = OPEN_FILE.fullmatch(name)
    if found is None:
        return None
    output, errors, number = found.groups()
    return os.dup(1 if output else 2 if errors else int(number))


@contextlib.contextmanager
def _replacing(target: str) -> Iterator[BinaryIO]:
    # A name of our own, known before the file exists, so that cleaning up finds it whenever an error is raised.
    temporary = beside(target)
    try:
        with open(temporary, "xb") as file:
            yield file
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        # It is already gone if the interrupt came just after the rename.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def beside(target: str) -> str:
    """A new hidden name in the directory of `target`. Names are limited in bytes, so a long name is cut."""
    folder, base = os.path.split(target)
    start = os.fsencode(base)[:100].decode("utf-8", "ignore")
    return os.path.join(folder, f".{start}.{uuid.uuid4().hex}.part")


def _write(file: BinaryIO, chunks: Iterable[bytes], compress: bool) -> None:
    if not compress:
        for chunk in chunks:
            file.write(chunk)
        return
    # No name and no time in the header, so that equal content gives equal files.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0) as packed:
        for chunk in chunks:
            packed.write(chunk)
