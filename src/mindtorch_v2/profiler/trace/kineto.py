"""Reads a Chrome trace that PyTorch (Kineto) or this package wrote into a `Trace`."""

from __future__ import annotations

import gc
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from . import derived
from .kineto_columns import KinetoColumns
from .trace import Trace, TraceBuilder

_GZIP_MAGIC = b"\x1f\x8b"
_STRUCTURE = frozenset({"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"})
_OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')
_CLOSING = re.compile(rb'\]\s*,\s*"traceName"')
# Between two events of Kineto's files, and of ours. A string in JSON has no line breaks, so this is never inside one.
_BETWEEN = re.compile(rb'\}(,\s*\n\s*)\{\s*"ph"')
_BATCH_BYTES = 1 << 20
_TAIL_BYTES = 1 << 16  # where the end of the list is looked for


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace in a `.json` or `.json.gz` file.

    Arrows, counters and instants other than `[memory]` carry nothing that a `Trace` holds and are passed over, as are
    arguments that only some devices write (registers, occupancy). A negative duration is read as 0. A file that is
    no such trace raises a ValueError that names the file and what is wrong with it.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        content = file.read()
    try:
        with _collector_paused():
            return _read(content)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError) as error:
        detail = str(error) if isinstance(error, ValueError) else f"malformed content ({type(error).__name__}: {error})"
        raise ValueError(f"cannot read {name} as a Chrome trace: {detail}") from error


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without Python's garbage collector, which millions of new lists, none of them garbage, would keep busy."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(content: bytes) -> Trace:
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"the gzip stream is damaged or cut off ({error})") from error
    try:
        return _read_in_batches(content)
    except (orjson.JSONDecodeError, _NotSplit):
        document = _parse(content)
    if not isinstance(document, dict):
        raise ValueError(f"the top level should be an object, and is a {type(document).__name__}")
    if not isinstance(document.get("traceEvents"), list):
        raise ValueError("it has no list traceEvents")
    columns = KinetoColumns(TraceBuilder())
    columns.add(document["traceEvents"])
    return _finish(document, columns)


class _NotSplit(Exception):
    """The file is not laid out as Kineto's; it has to be parsed as a whole."""


def _read_in_batches(content: bytes) -> Trace:
    """Parse the list of events piece by piece.

    Cutting at the wrong place cannot go unnoticed: a piece would not be valid JSON, and then the file is parsed as a
    whole. If all pieces are valid lists and what is around them has an empty list in their place, they are the list.
    """
    opening = _OPENING.search(content)
    if not opening:
        raise _NotSplit
    closings = list(_CLOSING.finditer(content, max(opening.end(), len(content) - _TAIL_BYTES)))
    if not closings:
        raise _NotSplit
    closing = closings[-1]
    document = orjson.loads(content[:opening.end()] + content[closing.start():])
    if not isinstance(document, dict) or document.get("traceEvents") != []:
        raise _NotSplit
    columns = KinetoColumns(TraceBuilder())
    low, end = opening.end(), closing.start()
    while low < end:
        cut = _BETWEEN.search(content, low + _BATCH_BYTES, end)
        high = cut.start() + 1 if cut else end
        columns.add(orjson.loads(b"[" + content[low:high] + b"]"))
        low = cut.end(1) if cut else end
    return _finish(document, columns)


def _parse(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        try:
            content.decode()
        except UnicodeDecodeError:
            # PyTorch copies names into the file as they are; one that is not UTF-8 should not cost the whole trace.
            content = content.decode("utf-8", "replace").encode()
        else:
            raise ValueError(f"it is not JSON ({error})") from error
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from error


def _finish(document: dict[str, Any], columns: KinetoColumns) -> Trace:
    base_ns = document.get("baseTimeNanoseconds", 0)
    if isinstance(base_ns, bool) or not isinstance(base_ns, int):
        raise ValueError("baseTimeNanoseconds should be an integer")
    columns.fill()
    metadata, dropped = _metadata(document, columns.other_categories)
    return _with_stacks(columns.build.finish(
        metadata=metadata, dropped=dropped, epoch_ns=base_ns, start_ns=columns.start_ns, end_ns=columns.end_ns))


def _with_stacks(trace: Trace) -> Trace:
    """The trace with stacks from Python events where the file states none."""
    stated = trace.events["stack"]
    told, table = derived.stacks(trace.events, trace.names)
    if not table and not (stated == -2).any():
        return trace
    stacks = list(trace.stacks)
    numbers = {frames: number for number, frames in enumerate(stacks)}
    for frames in table:
        if numbers.setdefault(frames, len(stacks)) == len(stacks):
            stacks.append(frames)
    told = np.array([*(numbers[frames] for frames in table), -1], np.int32)[told]
    stack = np.where(stated == -1, told, np.maximum(stated, -1)).astype(np.int32)
    stack.flags.writeable = False
    return replace(trace, events={**trace.events, "stack": stack}, stacks=stacks)


def _metadata(document: dict[str, Any], others: dict[str, str]) -> tuple[dict[str, Any], int]:
    metadata = {key: value for key, value in document.items() if key not in _STRUCTURE}
    if metadata.get("deviceProperties") == []:
        del metadata["deviceProperties"]
    dropped = 0
    own = metadata.get("mindtorch_v2")
    if isinstance(own, dict) and "dropped_events" in own:
        dropped = int(own["dropped_events"])
        own = {key: value for key, value in own.items() if key != "dropped_events"}
        metadata["mindtorch_v2"] = own
        if not own:
            del metadata["mindtorch_v2"]
    if others:
        metadata["other_categories"] = others
    return metadata, dropped
