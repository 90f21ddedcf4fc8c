"""A Chrome trace piece by piece: the parts around the list of events, and the list as columns of integers."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import orjson

from .kineto_scan import FIXED, scanner
from .unpack import check_unpacked

_GZIP_MAGIC = b"\x1f\x8b"
_OPENING = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')
_PIECE = 1 << 22  # bytes that are read at a time
_ROOM = 1 << 14  # events in a batch: its columns stay in the cache
LARGEST_VALUE = 1 << 28  # bytes of one event, and of all that is not events


class Stream:
    """An open file. `events()` must be exhausted before `document` and `cut_short` are known."""

    def __init__(self, file: BinaryIO, ints: tuple[bytes, ...], texts: tuple[bytes, ...], defaults: np.ndarray) -> None:
        self._file = file
        self._data = b""
        self._done = 0  # bytes before `_data`
        self._size = os.fstat(file.fileno()).st_size
        self._keys = ints, texts, np.ascontiguousarray(defaults, np.int64)
        self._unzip: Any = None
        self._packed = b""
        self.cut_short = False
        self.document: dict[str, Any] = {}
        self.pairs: dict[bytes, int] = {}
        self.lanes: dict[bytes, int] = {}
        self.rests: dict[bytes, int] = {}
        start = file.read(len(_GZIP_MAGIC))
        file.seek(0)
        if start == _GZIP_MAGIC:
            self._unzip = zlib.decompressobj(wbits=31)

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _more(self, most: int = _PIECE) -> bytes:
        """Further bytes of the content; none at its end."""
        if self._unzip is None:
            return self._file.read(most)
        result = b""
        while not result:
            if self._unzip.eof:  # a gzip file may have several members
                left = self._unzip.unused_data or self._packed
                self._packed = b""
                left = left or self._next_packed()
                if not left.rstrip(b"\0"):
                    return b""
                self._unzip, self._packed = zlib.decompressobj(wbits=31), left
            piece = self._unzip.unconsumed_tail or self._packed
            self._packed = b""
            piece = piece or self._next_packed()
            try:
                result = self._unzip.decompress(piece, most) if piece else b""
            except zlib.error as error:
                raise ValueError(f"the gzip stream is damaged or cut off ({error})") from error
            if not piece:
                self.cut_short |= not self._unzip.eof
                return b""
        check_unpacked(self._size, self._done + len(self._data) + len(result))
        return result

    def _next_packed(self) -> bytes:
        return self._file.read(_PIECE // 16)

    def _grow(self, keep: int, what: str) -> bool:
        """Release what is before a position, and read on; False at the end of the file."""
        self._data, self._done = self._data[keep:], self._done + keep
        if len(self._data) > LARGEST_VALUE:
            raise ValueError(f"{what} has more than {LARGEST_VALUE >> 20} MB")
        piece = self._more(max(_PIECE, len(self._data)))  # in growing steps, so that long values take linear time
        self._data += piece
        return bool(piece)

    # -- structure -----------------------------------------------------------------------------------------------------

    def events(self) -> Iterator[tuple[np.ndarray, list[bytes]]]:
        """The events in batches: columns as `scan` fills them, valid until the next batch; and other events as text."""
        head = self._head()
        first, closed = True, False
        scan = scanner()
        ints, texts, defaults = self._keys
        out = np.empty((FIXED + len(ints), _ROOM), np.int64)
        place = 0
        while not closed:
            before = place
            try:
                count, place, closed, first, others = scan(self._data, place, first, ints, texts, defaults, self.pairs,
                                                           self.lanes, self.rests, out)
            except ValueError as error:
                fault, where = error.args if len(error.args) == 2 else (str(error), 0)
                raise ValueError(f"{fault}, at byte {self._done + where:,}") from error
            if count or others:
                yield out[:, :count], others
            elif not closed and place > before:
                continue  # only arrows, which give no rows
            elif not closed and not self._grow(place, "an event"):
                self.cut_short = True
                break
            else:
                place = 0 if not closed else place
        self._close(head, place, closed)

    def _head(self) -> bytes:
        """The part before the events; for a bare list of events, nothing."""
        searched = 0
        while self._grow(0, "what precedes the events") or not searched:
            start = self._data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
            if start == b"[":
                place = self._data.index(b"[") + 1
                self._data, self._done = self._data[place:], place
                return b""
            for found in _OPENING.finditer(self._data, searched):
                head = self._data[:found.start()]
                if _parsed(head + b'"traceEvents":[]}') is not None:  # else they are in a string or an object
                    self._data, self._done = self._data[found.end():], found.end()
                    return head
            searched = max(1, len(self._data) - 4096)
        document = _parsed(self._data)
        if isinstance(document, dict):
            raise ValueError("it has no list traceEvents")
        if document is not None:
            raise ValueError(f"the top level should be an object or a list, not a {type(document).__name__}")
        raise ValueError("it is not JSON, or ends before its first event")

    def _close(self, head: bytes, place: int, closed: bool) -> None:
        """Read the part after the events."""
        tail = b""
        if closed:
            self._data = self._data[place:]
            while self._grow(0, "what follows the events"):
                pass
            tail = self._data
        if not head:
            if closed and tail.strip():
                raise ValueError("something follows the list of events")
            return
        whole = _parsed(head + b'"traceEvents":[]' + tail) if closed else None
        if whole is None and closed and b"}" in tail and not self.cut_short:
            raise ValueError("what follows the list of events is not JSON")
        self.cut_short |= whole is None
        self.document = whole if whole is not None else _parsed(head + b'"traceEvents":[]}') or {}


def _parsed(content: bytes) -> Any:
    """JSON as values; None if it is not JSON. A name that is not UTF-8 should not cost the whole trace."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            return orjson.loads(content.decode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            return None
