"""Reads a Chrome trace of PyTorch (Kineto), torch_npu or this package into a `Trace`."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from ..builder import TraceBuilder
from ..errors import BadFile, CutShort
from ..own_metadata import check_metadata
from ..schema import TABLES
from ..tables import derived
from ..tables.told_modules import with_told_modules
from ..trace import Trace
from .kineto_columns import DEFAULTS, INTS, TEXTS, KinetoColumns
from .kineto_sides import TOP, read_top
from .kineto_stream import Stream

_STRUCTURE = frozenset({"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"})


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace in a `.json` or `.json.gz` file; warns if the file was cut short."""
    trace, cut_short = salvage(path)
    if cut_short:
        warnings.warn(CutShort(os.fspath(path)), stacklevel=2)
    return trace


def salvage(path: str | os.PathLike[str]) -> tuple[Trace, bool]:
    """The trace in a `.json` or `.json.gz` file, and whether the file was cut short.

    The file is read piece by piece. Arrows, counters and instants other than `[memory]` are skipped, because a `Trace`
    has no place for them; so are arguments that only some devices write (registers, occupancy). Times may be numbers or
    text. A negative or missing duration is read as 0. A file that is not such a trace raises a ValueError that names
    the file and what is wrong with it.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            return _read(file)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError, RecursionError) as error:
        detail = str(error) if isinstance(error, ValueError) else f"malformed content ({type(error).__name__}: {error})"
        raise BadFile(f"cannot read {name} as a Chrome trace: {detail}") from error


def _read(file: BinaryIO) -> tuple[Trace, bool]:
    stream = Stream(file, INTS, TEXTS, DEFAULTS)
    columns = KinetoColumns(TraceBuilder())
    for rows, others in stream.events():
        columns.add(rows, others)
    if stream.cut_short and not columns.count:
        raise ValueError("it is cut short before its first event")
    if not stream.document and not columns.count:
        raise ValueError("it is a list without events")
    return _finish(stream, columns), stream.cut_short


def _finish(stream: Stream, columns: KinetoColumns) -> Trace:
    document = stream.document
    base_ns = document.get("baseTimeNanoseconds", 0)
    if isinstance(base_ns, bool) or not isinstance(base_ns, int) or not -(2**63) <= base_ns < 2**63:
        raise ValueError("baseTimeNanoseconds should be an integer of 64 bits")
    columns.with_memory = bool(document.get("profile_memory"))
    columns.fill(stream.pairs, stream.lanes, stream.rests)
    read_top(columns.build, document.pop(TOP, {}), base_ns)
    metadata, dropped = _metadata(document, columns.other_categories)
    check_metadata(metadata)
    trace = columns.build.finish(metadata=metadata, dropped=dropped, epoch_ns=base_ns, start_ns=columns.start_ns,
                                 end_ns=columns.end_ns)
    for name, table in TABLES.items():
        for column in table:
            if column.codes is not None and trace.has(name) and (
                    wrong := column.unknown_code(trace.tables[name][column.name])):
                raise ValueError(f"{column.name} of {name} {wrong}")
    return columns.linked(with_told_modules(_with_stacks(trace)))


def _with_stacks(trace: Trace) -> Trace:
    """The trace with stacks from Python events, if the file states none."""
    stated = trace.events["stack"]
    known = derived.Stacks()
    numbers = known.take(trace)
    told = derived.stacks(trace.events, trace.names, known)
    if not len(numbers) - 1 and not (told >= 0).any() and not (stated == -2).any():
        return trace
    stack = np.where(stated == -1, told, numbers[np.maximum(stated, -1)])
    trace = replace(trace.with_columns("events", stack=stack), frames=known.frames)
    return trace.with_tables(stacks=known.table()) if known.frames else trace


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
