"""Events of a Chrome trace as columns of integers: repeated values are numbered, and no event leaves a Python object.

`scan(data, begin, first, ints, texts, defaults, pairs, lanes, rests, out)` reads the complete items of a JSON list from
a position in some bytes. For complete events and instants it fills a column of `out` (int64, a row per fact): the
phase, the number of category and name in `pairs`, of process and thread in `lanes`, start and duration in nanoseconds
(`ABSENT` if there is none), the number in `rests` of the arguments that `texts` names, and a row for each key of
`ints`, with its value in `defaults` if the event has none. The dictionaries map JSON text to numbers.

The result is: how many columns were filled, the position after the last complete event, whether the list was closed
there, whether no item has come yet, and the text of other events with content: names, and arrows to an NPU.
`_kineto_scan`, in C, does this 10 times as fast. This Python code runs if that was not built; the tests compare both.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson

ABSENT = -6148914691236517205  # no file has this number: it is refused
FIXED = 6  # rows of `out` before those of integers
_MOST_US = 2**62 // 1000  # sums of two such times do not overflow
# Between two events as most writers format them. A string in JSON has no line breaks, so this is never inside one.
_BETWEEN = re.compile(rb'\}(,[^\S\n]*\n\s*)\{\s*"ph"')
_BLANK = re.compile(rb"[ \t\r\n]*")
_END = object()
_PLAIN = (str, int)
_SMALLEST = 9  # bytes of an event and a comma
_TIME = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-?\.\d+", re.ASCII)

Result = tuple[int, int, bool, bool, list[bytes]]


class Fault(ValueError):
    """What is wrong, and at which byte."""


def scan(data: bytes, begin: int, first: bool, ints: tuple[bytes, ...], texts: tuple[bytes, ...], defaults: np.ndarray,
         pairs: dict[bytes, int], lanes: dict[bytes, int], rests: dict[bytes, int], out: np.ndarray) -> Result:
    """See the module's docstring."""
    was_enabled = gc.isenabled()
    gc.disable()  # millions of new lists would trigger it, and none of them is garbage
    try:
        return _scan(data, begin, first, ints, texts, defaults, pairs, lanes, rests, out)
    finally:
        if was_enabled:
            gc.enable()


def _scan(data: bytes, begin: int, first: bool, ints: tuple[bytes, ...], texts: tuple[bytes, ...], defaults: np.ndarray,
          pairs: dict[bytes, int], lanes: dict[bytes, int], rests: dict[bytes, int], out: np.ndarray) -> Result:
    room = out.shape[1]
    places = {key.decode(): place for place, key in enumerate(ints)}
    wanted = _Wanted([key.decode() for key in texts])
    pair_of, lane_of = _Numbers(pairs), _Numbers(lanes)
    rows: list[tuple[int, ...]] = []
    absent = defaults.tolist()
    place, others, closed = begin, [], False
    for event, end in _events(data, begin, first, room * _SMALLEST):
        if event is _END:
            closed, place = True, end
            break
        if len(rows) == room:
            break
        row = _row(event, places, wanted, absent, pair_of, lane_of, rests, end)
        if row is not None:
            rows.append(row)
        elif event.get("ph") not in ("s", "f", "t", "C") or (event["ph"] in "sf" and event.get("cat") == "async_npu"):
            others.append(orjson.dumps(event))
        place, first = end, False
    if rows:
        out[:, :len(rows)] = np.array(rows, np.int64).T
    return len(rows), place, closed, first, others


def _events(data: bytes, begin: int, first: bool, window: int) -> Iterator[tuple[Any, int]]:
    """Items and the end of each; `_END` for the end of the list. Stops early if the bytes end."""
    decoder = json.JSONDecoder()
    text = None
    place, at_start = begin, True
    while True:
        place = _BLANK.match(data, place).end()  # type: ignore[union-attr]
        mark = data[place:place + 1]
        if not mark:
            return
        if mark == b"]":
            yield _END, place + 1
            return
        if not first:
            if mark != b",":
                raise Fault("something other than a comma between two items", place)
            place = _BLANK.match(data, place + 1).end()  # type: ignore[union-attr]
            if not data[place:place + 1]:
                return
        first = False
        found, end = _block(data, place, window) if at_start else ([], 0)
        at_start = False
        if found:  # only the last end is given: there all are complete
            for event in found:
                yield event, end
            return
        if text is None:
            text = data.decode("latin-1")  # only positions matter, and here a character is a byte
        try:
            end = decoder.raw_decode(text, place)[1]
        except (ValueError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError) and (error.pos >= len(text) - 8 or "Unterminated" in error.msg):
                return  # it may continue in the next bytes
            raise Fault("a value that is none of JSON", place) from error
        yield _loads(data[place:end], place), end
        place = end


def _block(data: bytes, place: int, window: int) -> tuple[list[Any], int]:
    """Many items at once, if the file's format shows where to cut; and their ends."""
    cut = _BETWEEN.search(data, place + window // 2, place + window)
    if cut is not None:
        try:
            return orjson.loads(b"[" + data[place:cut.start() + 1] + b"]"), cut.start() + 1
        except orjson.JSONDecodeError:
            pass
    return [], place


def _loads(content: bytes, place: int) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            return orjson.loads(content.decode("utf-8", "replace"))
        except orjson.JSONDecodeError as error:
            raise Fault("a value that is none of JSON", place) from error


def _row(event: Any, places: dict[str, int], wanted: _Wanted, absent: list[int], pair_of: _Numbers,
         lane_of: _Numbers, rests: dict[bytes, int], place: int) -> tuple[int, ...] | None:
    """What goes into a column of `out`; None for other events."""
    if not isinstance(event, dict):
        raise Fault("an item of traceEvents should be an object", place)
    arguments = event.get("args")
    if arguments is None:
        arguments = {}
    elif not isinstance(arguments, dict):
        raise Fault("an event should have an object as args", place)
    start, duration = nanoseconds(event.get("ts"), place, "ts"), nanoseconds(event.get("dur"), place, "dur")
    numbers = absent.copy()
    for key in places.keys() & arguments.keys():
        at = places[key]
        numbers[at] = _integer(arguments[key], absent[at], place, key)
    phase = event.get("ph")
    if phase not in ("X", "i"):
        return None
    if start == ABSENT:
        raise Fault("an event without a time (ts)", place)
    if "name" not in event:
        raise Fault("an event without a name", place)
    rest = {key: arguments[key] for key in wanted.of(arguments)}
    text = orjson.dumps(rest)[1:-1] + b"," if rest else b""
    return (ord(phase), pair_of(event.get("cat"), event["name"]), lane_of(event.get("pid"), event.get("tid")),
            start, duration, rests.setdefault(text, len(rests)) if rest else -1, *numbers)


class _Wanted:
    """Which of some keys an object has, in the order of these keys; found once for most objects."""

    def __init__(self, keys: list[str]) -> None:
        self.keys, self.all = keys, frozenset(keys)
        self.seen: dict[frozenset[str], list[str]] = {}

    def of(self, values: dict[str, Any]) -> list[str]:
        there = self.all.intersection(values)
        found = self.seen.get(there)
        if found is None:
            found = self.seen[there] = [key for key in self.keys if key in there]
        return found


class _Numbers:
    """Numbers of pairs of values by their JSON text, which is made once for most pairs."""

    def __init__(self, known: dict[bytes, int]) -> None:
        self.known = known
        self.seen: dict[tuple[Any, Any], int] = {}

    def __call__(self, first: Any, second: Any) -> int:
        plain = type(first) in _PLAIN and type(second) in _PLAIN  # equal ones of these have equal texts
        found = self.seen.get((first, second)) if plain else None
        if found is None:
            found = self.known.setdefault(orjson.dumps([first, second])[1:-1], len(self.known))
            if plain:
                self.seen[first, second] = found
        return found


def nanoseconds(value: Any, place: int, what: str) -> int:
    """Microseconds, as a number or as text, converted to nanoseconds."""
    if value is None:
        return ABSENT
    if type(value) is float and -_MOST_US < value < _MOST_US:
        # Times since the file's base have up to 16 digits, all that a float holds. Multiplying them directly would
        # round once too often. The part before the point and the part after it are exact by themselves.
        before = value // 1
        return int(before) * 1000 + round((value - before) * 1000)
    if isinstance(value, str) and _TIME.fullmatch(value) and len(value) < 64:
        if "e" not in value.lower() and len(value) < 40:
            whole, _, part = value.partition(".")
            us = int(whole or "0")
            if abs(us) > _MOST_US:
                raise Fault(f"{what} is too large for a time in microseconds", place)
            ns = abs(us) * 1000 + int(part[:3].ljust(3, "0")) + (part[3:4] >= "5")
            return -ns if value.startswith("-") else ns
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Fault(f"{what} should be a number of microseconds", place)
    if not -_MOST_US < value < _MOST_US:
        raise Fault(f"{what} is too large for a time in microseconds", place)
    return value * 1000 if isinstance(value, int) else nanoseconds(float(value), place, what)


def _integer(value: Any, default: int, place: int, what: str) -> int:
    if value is None:
        return default
    if not isinstance(value, int):
        raise Fault(f"{what} should be an integer in every event", place)
    if not -(2**63) <= value < 2**63:
        raise Fault(f"{what} is too large for an integer of 64 bits", place)
    if value == ABSENT:
        raise Fault(f"{what} is a number that is not allowed", place)
    return int(value)


def scanner() -> Callable[..., Result]:
    """The C function, or its Python twin if that is missing."""
    try:
        from . import _kineto_scan  # type: ignore[attr-defined]
    except ImportError:
        return scan
    return _kineto_scan.scan
