"""Ways to change an input. Each takes a source of chance and bytes, and returns bytes."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

Mutator = Callable[[random.Random, bytes], bytes]

_NUMBERS = [0, 1, 2, 3, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**70,
            -1,
            -2, -(2**31), -(2**63), -(2**70)]
_VALUES: list[Any] = [*_NUMBERS, 0.5, -0.0, 1e18, 1e300, -1e300, None, True, False, "", "x", "\0", "\ud800", "9" * 400,
                      "ProfilerStep#7", "[memory]", "X", "i", [], [[]], {}, {"a": 1}, [1, 2], ["float"], [[1, 2], []]]


def some_bytes(chance: random.Random, data: bytes) -> bytes:
    """Bytes changed, put in, taken out, repeated or moved."""
    changed = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        place = chance.randrange(len(changed) + 1)
        what = chance.randrange(6)
        if what == 0 and place < len(changed):
            changed[place] = chance.randrange(256)
        elif what == 1 and place < len(changed):
            changed[place] ^= 1 << chance.randrange(8)
        elif what == 2:
            changed[place:place] = chance.randbytes(chance.choice((1, 2, 4, 8)))
        elif what == 3:
            del changed[place:place + chance.choice((1, 2, 4, 8, 64))]
        elif what == 4:
            end = place + chance.choice((1, 4, 16, 64))
            changed[place:place] = changed[place:end] * chance.choice((1, 2, 10))
        else:
            number = chance.choice(_NUMBERS) & (2**64 - 1)
            changed[place:place + 8] = struct.pack(chance.choice("<>") + "Q", number)
        if not changed:
            changed = bytearray(b"\0")
    return bytes(changed)


def cuts(chance: random.Random, data: bytes) -> bytes:
    """The beginning, the end, or both with a gap."""
    first, second = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    return chance.choice((data[:first], data[second:], data[:first] + data[second:],
                          data[:first] + bytes(second - first) + data[second:]))


def archive(chance: random.Random, data: bytes) -> bytes:
    """A record of a zip archive changed, renamed, left out, repeated or packed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            records = [(info.filename, old.read(info)) for info in old.infolist()]
    except Exception:  # it is damaged already
        return some_bytes(chance, data)
    if not records:
        return some_bytes(chance, data)
    place = chance.randrange(len(records))
    name, content = records[place]
    what = chance.randrange(6)
    if what <= 2:
        change = pickles if name.endswith(".pkl") else chance.choice((some_bytes, cuts))
        records[place] = name, change(chance, content)
    elif what == 3:
        records[place] = chance.choice(records)[0] + chance.choice(("", "x", "/data.pkl", "/version")), content
    elif what == 4:
        del records[place]
    else:
        records.insert(place, chance.choice(records))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as new, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a name is there twice
        for name, content in records:
            new.writestr(name, content, chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return target.getvalue()


def pickles(chance: random.Random, data: bytes) -> bytes:
    """Operations of a pickle changed, left out, repeated, moved or put in."""
    if data.startswith(b"PK"):
        return archive(chance, data)
    start = data.find(b"\x80\x02", 60) if len(data) > 60 and not data.startswith(b"\x80\x02}") else 0
    start = max(start, 0)
    try:
        marks = [place for _, _, place in pickletools.genops(data[start:])]
    except Exception:  # it is damaged already
        return some_bytes(chance, data)
    ends = [*marks[1:], marks[-1] + 1]
    parts = [data[start + begin:start + end] for begin, end in zip(marks, ends, strict=True)]
    for _ in range(chance.choice((1, 1, 2, 3))):
        place = chance.randrange(len(parts))
        what = chance.randrange(6)
        if what == 0:
            parts[place] = pickle.dumps(chance.choice([*_NUMBERS, None, True, "x", (), [], {}, 1.5]), 2)[2:-1]
        elif what == 1 and len(parts) > 1:
            del parts[place]
        elif what == 2:
            parts.insert(place, chance.choice(parts))
        elif what == 3:
            other = chance.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
        elif what == 4:
            parts[place] = some_bytes(chance, parts[place])
        else:
            parts.insert(place, chance.choice((b"(", b"t", b"u", b"s", b"e", b"a", b"R", b"b", b"Q", b"0", b")", b"}",
                                               b"]", b"\x85", b"\x86", b"\x87", b"\x81", b".", b"h\x00", b"q\x00")))
    return data[:start] + b"".join(parts) + data[start + marks[-1] + 1:]


MOST_COPIED = 1 << 16  # characters: a document that is put into itself a few times takes all memory


def _copy(value: Any) -> Any:
    """A value that stands in one place only: one in two places could be put into itself."""
    text = json.dumps(value)
    return json.loads(text) if len(text) <= MOST_COPIED else None


def json_values(chance: random.Random, data: bytes) -> bytes:
    """Values of a JSON document replaced, left out, repeated or swapped."""
    try:
        document = json.loads(data)
    except ValueError:
        return some_bytes(chance, data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        places = list(_places(document))
        if not places:
            return json.dumps(chance.choice(_VALUES)).encode()
        holder, key = chance.choice(places)
        what = chance.randrange(5)
        if what <= 1:
            holder[key] = _copy(chance.choice(_VALUES))
        elif what == 2:
            del holder[key]
        elif what == 3 and isinstance(holder, list):
            holder.insert(key, _copy(chance.choice(holder)))
        else:
            other, other_key = chance.choice(places)
            holder[key] = _copy(other[other_key])
    return json.dumps(document, indent=chance.choice((None, 1))).encode()


def _places(value: Any) -> Any:
    stack = [value]
    while stack:
        one = stack.pop()
        keys = list(one) if isinstance(one, dict) else list(range(len(one))) if isinstance(one, list) else []
        for key in keys:
            yield one, key
            stack.append(one[key])
