"""Keeps generated code on disk: writing and compiling it is most of the time of an op's first use.

The key of an entry is a digest of everything that it depends on, so it cannot be out of date. Its content is checked,
so a damaged file is ignored. Each version of the code generators has its own file, so that reading takes no longer
because of other versions; of many files the oldest are removed. A file begins with a table of the positions of entries;
an entry is read on demand. A file is written when the process ends, completely, under another name, and then renamed:
several processes never see half a file, and if two write at the same time, the lost entries are made again another day.
If nothing can be written, nothing is kept.

`MINDTORCH_CACHE` sets another directory than the user's directory for caches; `0` keeps nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType
from typing import Any
from zlib import crc32

KEY_BYTES = 16
CHECK_BYTES = 4
SIZE_BYTES = 8
PREFIX = f"ops-{sys.implementation.cache_tag}"
MOST_BYTES = 32 << 20  # a larger file is started again: a program can make any number of ops
MOST_FILES = 8  # per version of Python


def _directory() -> Path | None:
    """The directory of the files; None if the cache is off, or there is no place for it."""
    wish = os.environ.get("MINDTORCH_CACHE", "")
    if wish == "0":
        return None
    if wish:
        return Path(wish)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    return Path(base, "mindtorch_v2")


class CodeCache:
    """Marshalled values by digest, in a file for each stamp."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._kept: dict[str, _Content] = {}
        self._new: dict[str, dict[bytes, bytes]] = {}
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def compiled(self, text: str, filename: str) -> CodeType:
        """`compile(text, filename, "exec")`, from the file if it has it."""
        return self.kept(f"{MAGIC_NUMBER!r} {sys.flags.optimize}", f"{filename}\0{text}",
                         lambda: (compile(text, filename, "exec"),))[0]

    def kept(self, stamp: str | None, text: str, make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The result of `make`, from the file if that has it. Stamp and text contain everything that it depends on.

        Without a stamp nothing is kept.
        """
        if stamp is None or self.directory is None:
            return make()
        key = _key(stamp, text)
        with self._lock:
            found = self._new.get(stamp, {}).get(key) or self._content(stamp).find(key)
        if found is not None:
            value = marshal.loads(found)
            if isinstance(value, tuple):
                return value
        made = tuple(make())
        with self._lock:
            if not self._new:
                atexit.register(self.write)
            self._new.setdefault(stamp, {})[key] = marshal.dumps(made)
        return made

    def has(self, stamp: str | None, text: str) -> bool:
        """Whether the file has what `kept` would look for there."""
        if stamp is None or self.directory is None:
            return False
        with self._lock:
            return _key(stamp, text) in self._content(stamp)

    def _content(self, stamp: str) -> _Content:
        if stamp not in self._kept:
            self._kept[stamp] = _Content(_file(self.directory, stamp))  # type: ignore[arg-type]
        return self._kept[stamp]

    def write(self) -> None:
        """Add new entries to the files. An error must not disturb a program that is about to end."""
        with self._lock:
            added, self._new = self._new, {}
        if not added or self.directory is None or os.getpid() != self._owner:
            return
        for stamp, new in added.items():
            _write(_file(self.directory, stamp), new)
        _clear(self.directory)


def _key(stamp: str, text: str) -> bytes:
    return blake2b(f"{stamp}\0{text}".encode(), digest_size=KEY_BYTES).digest()


def _file(directory: Path, stamp: str) -> Path:
    return directory / f"{PREFIX}-{blake2b(stamp.encode(), digest_size=KEY_BYTES).hexdigest()}.bin"


def _write(path: Path, new: dict[bytes, bytes]) -> None:
    """Write a file with its old entries and the new ones."""
    places: dict[bytes, tuple[int, int]] = {}
    entries: list[bytes] = []
    size = 0
    with contextlib.closing(_Content(path)) as content_now:
        kept = {**content_now.entries(), **new}
    for key, content in kept.items():
        entry = b"".join((_checksum(content), content))
        places[key] = size, len(entry)
        entries.append(entry)
        size += len(entry)
    table = marshal.dumps(places)
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with open(number, "wb") as file:
            file.write(_checksum(table) + len(table).to_bytes(SIZE_BYTES, "little") + table + b"".join(entries))
        os.replace(temporary, path)
    except OSError:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _clear(directory: Path) -> None:
    """Remove the oldest files, from versions that are no longer used; missing entries are made again."""
    with contextlib.suppress(OSError):
        files = sorted(directory.glob(f"{PREFIX}*.bin"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-MOST_FILES]:
            path.unlink()


class _Content:
    """The content of a file: a checksum of the table, its size, the table, the entries, each with its own checksum.

    It is empty if the file does not exist, is not ours, or is damaged. The file stays open, and an entry is read on
    demand: a file that was replaced meanwhile still exists for a process that has it open.
    """

    def __init__(self, path: Path) -> None:
        self._places: dict[bytes, tuple[int, int]] = {}
        self._begin = 0
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
            self._open()
        except OSError:
            self._places = {}
        if not self._places:
            self.close()

    def _open(self) -> None:
        facts = os.fstat(self._file)
        # A file that others can write may contain anything, and its content is executed.
        if facts.st_size > MOST_BYTES or (hasattr(os, "getuid") and (
                facts.st_uid != os.getuid() or facts.st_mode & 0o022)):
            return
        head = os.read(self._file, CHECK_BYTES + SIZE_BYTES)
        size = int.from_bytes(head[CHECK_BYTES:], "little")
        table = os.read(self._file, min(size, facts.st_size))
        if table and _checksum(table) == head[:CHECK_BYTES]:
            self._places, self._begin = marshal.loads(table), len(head) + size

    def close(self) -> None:
        """Drop the content: nothing is found any more."""
        file, self._file, self._places = self._file, -1, {}
        if file >= 0:
            os.close(file)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def find(self, key: bytes) -> bytes | None:
        """A marshalled value, if it exists and is complete."""
        if key not in self._places:
            return None
        start, size = self._places[key]
        try:
            entry = _read_at(self._file, self._begin + start, size)
        except OSError:  # a program may close all files that it did not open
            return None
        return entry[CHECK_BYTES:] if _checksum(entry[CHECK_BYTES:]) == entry[:CHECK_BYTES] else None

    def entries(self) -> dict[bytes, bytes]:
        """All complete marshalled values."""
        found = ((key, self.find(key)) for key in self._places)
        return {key: content for key, content in found if content is not None}


def _read_at(file: int, start: int, size: int) -> bytes:
    if hasattr(os, "pread"):  # forked processes share the position in the file
        return os.pread(file, size, start)
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, size)


def _checksum(content: bytes) -> bytes:
    return crc32(content).to_bytes(CHECK_BYTES, "little")


CACHE = CodeCache(_directory())
