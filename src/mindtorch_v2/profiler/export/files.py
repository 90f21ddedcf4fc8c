"""Files that are either written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import tempfile
from collections.abc import Iterable
from typing import BinaryIO

# Level 9, gzip's default, takes several times as long as 3 and saves a few percent on traces.
_GZIP_LEVEL = 3


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Write `chunks` to `path`, compressed when its name ends in `.gz`.

    The bytes go to a temporary name beside `path`, which is renamed at the end: a reader sees the old file or the
    new one, and whatever goes wrong leaves the old one in place. The same chunks give the same bytes each time.
    """
    target = os.fspath(path)
    directory = os.path.dirname(target) or "."
    if not os.path.isdir(directory):
        raise FileNotFoundError(errno.ENOENT, f"cannot write {target}: the directory {directory} does not exist")
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, f"cannot write {target}: it is a directory")
    temporary = None
    try:
        prefix = f".{os.path.basename(target)[:100]}."
        handle, temporary = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=directory)
        with open(handle, "wb") as file:
            _write(file, chunks, compress=target.endswith(".gz"))
        os.chmod(temporary, _mode_of_new_file(target))
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        # OSError picks the subclass that belongs to the number.
        raise OSError(error.errno, f"cannot write {target}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _write(file: BinaryIO, chunks: Iterable[bytes], compress: bool) -> None:
    if not compress:
        for chunk in chunks:
            file.write(chunk)
        return
    # No name and no time in the header, so that equal content gives equal files.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0) as packed:
        for chunk in chunks:
            packed.write(chunk)


def _mode_of_new_file(target: str) -> int:
    """The permissions of the file that is replaced, or those that `open` would give a new one."""
    try:
        return os.stat(target).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
