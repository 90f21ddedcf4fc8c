"""Compiled code of generated functions, kept on disk: compiling is most of what the first use of an op takes.

An entry is found by a digest of the source and of all that the result depends on besides, so that it cannot be out of
date, and its content is checked, so that a damaged file is as good as none. The file is read at the first question and
written when the process ends, whole, under another name and then renamed: several processes never see half a file, and
the entries of one that writes at the same time are made again another day. Where nothing can be written, nothing is
kept.

`MINDTORCH_CACHE` names another directory than the user's directory for caches; `0` keeps nothing.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
import tempfile
import threading
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

DIGEST_BYTES = 16
MOST_BYTES = 32 << 20  # a file beyond this is begun anew: it has what older versions left


def _directory() -> Path | None:
    """Where the file is; None if none is wanted, or nobody knows a place."""
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
    """Entries by digest: a checksum and the marshalled code."""

    def __init__(self, directory: Path | None) -> None:
        self.path = None if directory is None else directory / f"ops-{sys.implementation.cache_tag}.bin"
        self._known: dict[bytes, bytes] | None = None
        self._new: dict[bytes, bytes] = {}
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def compiled(self, text: str, filename: str) -> CodeType:
        """`compile(text, filename, "exec")`, from the file if it has it."""
        if self.path is None:
            return compile(text, filename, "exec")
        key = blake2b(b"\0".join((MAGIC_NUMBER, bytes([sys.flags.optimize]), filename.encode(), text.encode())),
                      digest_size=DIGEST_BYTES).digest()
        with self._lock:
            if self._known is None:
                self._known = self._read()
            found = self._new.get(key) or self._known.get(key)
        if found is not None and _checksum(found[DIGEST_BYTES:]) == found[:DIGEST_BYTES]:
            code = marshal.loads(found[DIGEST_BYTES:])
            if isinstance(code, CodeType):
                return code
        code = compile(text, filename, "exec")
        content = marshal.dumps(code)
        with self._lock:
            if not self._new:
                atexit.register(self.write)
            self._new[key] = _checksum(content) + content
        return code

    def _read(self) -> dict[bytes, bytes]:
        """What is in the file; nothing if it is not there, not ours, or damaged."""
        try:
            assert self.path is not None
            with open(self.path, "rb") as file:
                facts = os.fstat(file.fileno())
                # What others can write may hold anything, and is run as it is.
                if facts.st_size > MOST_BYTES or (hasattr(os, "getuid") and (
                        facts.st_uid != os.getuid() or facts.st_mode & 0o022)):
                    return {}
                checksum, content = file.read(DIGEST_BYTES), file.read()
        except OSError:
            return {}
        if _checksum(content) != checksum:
            return {}
        found = marshal.loads(content)
        return found if isinstance(found, dict) else {}

    def write(self) -> None:
        """Add what is new to the file. An error is no reason to trouble a program that is about to end."""
        with self._lock:
            new, self._new = self._new, {}
        if self.path is None or not new or os.getpid() != self._owner:
            return
        content = marshal.dumps({**self._read(), **new})
        temporary = None
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            with open(number, "wb") as file:
                file.write(_checksum(content) + content)
            os.replace(temporary, self.path)
        except OSError:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)


def _checksum(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


CACHE = CodeCache(_directory())
