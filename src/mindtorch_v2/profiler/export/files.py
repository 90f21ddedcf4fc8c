"""Files that are either written whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import re
import tempfile
from collections.abc import Iterable
from typing import Any, BinaryIO

# Level 9, gzip's default, takes several times as long as 3 and saves a few percent on traces.
_GZIP_LEVEL = 3
# Names of files that are open in this process: whoever writes to them would not see one that is put in their place.
OPEN_FILE = re.compile(r"/dev/(?:(stdout)|(stderr))|/(?:dev|proc/self)/fd/(\d+)")


def write_atomically(path: str | bytes | os.PathLike[Any], chunks: Iterable[bytes]) -> None:
    """Write `chunks` to `path`, compressed when its name ends in `.gz`.

    The bytes go to a temporary name beside `path`, which is renamed at the end: a reader sees the old file or the
    new one, and whatever goes wrong leaves the old one in place. The same chunks give the same bytes each time.
    A symbolic link goes on pointing where it pointed. What is no file, a pipe or a device, is written to as it is.
    """
    name = os.fsdecode(path)
    if not name:
        raise FileNotFoundError(errno.ENOENT, "cannot write a file without a name")
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, f"cannot write {name}: it is a directory")
    compress = name.endswith(".gz")
    is_no_file = OPEN_FILE.fullmatch(name) or (os.path.exists(name) and not os.path.isfile(name))
    target = name if is_no_file else os.path.realpath(name)
    directory = os.path.dirname(target)
    if not is_no_file and not os.path.isdir(directory):
        raise FileNotFoundError(errno.ENOENT, f"cannot write {name}: the directory {directory} does not exist")
    try:
        if is_no_file:
            with open(_descriptor(target) or target, "wb") as file:
                _write(file, chunks, compress)
        else:
            _replace(target, chunks, compress)
    except OSError as error:
        # OSError picks the subclass that belongs to the number.
        raise OSError(error.errno, f"cannot write {name}: {error.strerror or error}") from error


def _descriptor(name: str) -> int | None:
    """A descriptor of the open file that a name stands for, at the place where it is written to; None for others."""
    found = OPEN_FILE.fullmatch(name)
    if found is None:
        return None
    output, errors, number = found.groups()
    return os.dup(1 if output else 2 if errors else int(number))


def _replace(target: str, chunks: Iterable[bytes], compress: bool) -> None:
    temporary = None
    try:
        prefix = f".{os.path.basename(target)[:100]}."
        handle, temporary = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=os.path.dirname(target))
        with open(handle, "wb") as file:
            _write(file, chunks, compress)
        os.chmod(temporary, _mode_of_new_file(target))
        os.replace(temporary, target)
        temporary = None
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
