"""Events as one flat table, for spreadsheets and data frames: Parquet and CSV, in both directions.

A row is an event with its references written out. It leaves out facts of the recording, memory, calls of modules and
the other tables; a trace file (.mtp) keeps those.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, cast

import numpy as np
import orjson

from ..arguments import decode_arguments, encode_arguments
from ..builder import TraceBuilder
from ..errors import BadFile
from ..files import atomic_file, write_atomically
from ..names import frame_text, parse_frame
from ..schema import Kind
from ..tables.told_modules import with_told_modules
from ..trace import Frame, ThreadInfo, Trace

PARQUET_MAGIC, GZIP_MAGIC = b"PAR1", b"\x1f\x8b"
_NUMBERS = ("start_ns", "end_ns", "sequence", "line", "step", "device", "device_index", "flops", "correlation",
            "record_id")
COLUMNS = ("name", "overload", "kind", "pid", "tid", "thread", "process", *_NUMBERS, "module", "inputs", "stack")
_NEEDED = ("name", "kind", "start_ns", "end_ns")


def table(trace: Trace) -> dict[str, list[Any]]:
    """The columns, as lists of plain values; None if an event has no value."""
    events = trace.events
    threads = [trace.threads[number] for number in events["thread"].tolist()]
    inputs = [orjson.dumps(encode_arguments(given)).decode() for given in trace.inputs]
    stacks = [";".join(_folded(frame) for frame in trace.stack(number))
              for number in range(len(trace.optional("stacks")["frame"]))]
    kinds = [Kind(number).name.lower() for number in range(max(Kind) + 1)]
    return {
        "name": [trace.names[number] for number in events["name"].tolist()],
        "overload": [trace.names[number] or None for number in events["overload"].tolist()],
        "kind": [kinds[number] for number in events["kind"].tolist()],
        "pid": [info.pid for info in threads], "tid": [info.tid for info in threads],
        "thread": [info.name or None for info in threads], "process": [info.process_name for info in threads],
        **{name: events[name].tolist() for name in _NUMBERS},
        "module": _chosen(events["module"], trace.names), "inputs": _chosen(events["inputs"], inputs),
        "stack": _chosen(events["stack"], stacks),
    }


def _chosen(numbers: np.ndarray, texts: Sequence[str]) -> list[str | None]:
    return [texts[number] if number >= 0 else None for number in numbers.tolist()]


def _folded(frame: Frame) -> str:
    return frame_text(frame).replace(";", ":")


def write_parquet(trace: Trace, path: str) -> None:
    """Write the table as Parquet."""
    pa = _pyarrow()
    import pyarrow.parquet

    columns = table(trace)
    types = {name: pa.int64() if name in (*_NUMBERS, "pid", "tid") else pa.string() for name in COLUMNS}
    made = pa.table({name: pa.array(_clean(columns[name]), types[name]) for name in COLUMNS})
    with atomic_file(path) as file:
        pyarrow.parquet.write_table(made, file, compression="zstd")


def _clean(values: list[Any]) -> list[Any]:
    """Text that UTF-8 can hold."""
    return [value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value
            for value in values]


def write_csv(trace: Trace, path: str) -> None:
    """Write the table as CSV, compressed if the name ends in `.gz`."""
    columns = table(trace)

    def chunks() -> Iterator[bytes]:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(COLUMNS)
        for number, row in enumerate(zip(*(columns[name] for name in COLUMNS)), start=1):
            writer.writerow(row)
            if number % 10_000 == 0:
                yield buffer.getvalue().encode("utf-8", "replace")
                buffer.seek(0)
                buffer.truncate()
        yield buffer.getvalue().encode("utf-8", "replace")

    write_atomically(path, chunks())


def read_parquet(path: str) -> Trace:
    """Read the trace from a Parquet file of such a table."""
    pa = _pyarrow()
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadFile(f"cannot read {path} as Parquet: {error}") from error
    return _trace(path, {name: found.column(name).to_pylist() for name in found.column_names if name in COLUMNS})


def opened(path: str) -> IO[bytes]:
    """Open a file for reading, unpacked if it is compressed."""
    with open(path, "rb") as file:
        compressed = file.read(2) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path, "rb") if compressed else open(path, "rb"))


def read_csv(path: str) -> Trace:
    """Read the trace from a CSV file of such a table, compressed or not."""
    try:
        with opened(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            heads = next(rows, [])
            columns: dict[str, list[Any]] = {head: [] for head in heads}
            for row in rows:
                if len(row) != len(heads):
                    raise BadFile(f"cannot read {path} as CSV: line {rows.line_num} has {len(row)} cells, "
                                  f"not {len(heads)}")
                for head, cell in zip(heads, row):
                    columns[head].append(cell if cell else None)
    except (UnicodeDecodeError, csv.Error, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"cannot read {path} as CSV: {error}") from error
    return _trace(path, columns)


def is_csv(path: str, start: bytes) -> bool:
    """Whether a CSV file holds such a table, by its first line."""
    heads = start.split(b"\n", 1)[0].strip().split(b",")
    return os.fspath(path).endswith((".csv", ".csv.gz")) or all(name.encode() in heads for name in _NEEDED)


def _trace(path: str, columns: dict[str, list[Any]]) -> Trace:
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise BadFile(f"cannot read {path}: its table has no column {missing[0]}")
    count = len(columns["name"])
    build = TraceBuilder()

    def texts(name: str, read: Callable[[str], int], default: int) -> np.ndarray:
        known: dict[Any, int] = {None: default}
        result = []
        for value in columns.get(name, [None] * count):
            if value not in known:
                known[value] = read(value)
            result.append(known[value])
        return np.array(result, np.int64)

    try:
        events = {name: np.array([int(value) if value is not None else 0 for value in columns[name]], np.int64)
                  for name in _NUMBERS if name in columns}
        events["name"] = texts("name", build.name, 0)
        events["overload"] = texts("overload", build.name, 0)
        events["kind"] = texts("kind", lambda word: int(Kind[word.upper()]), int(Kind.OTHER))
        events["module"] = texts("module", build.name, -1)
        events["inputs"] = texts("inputs", lambda text: build.input(decode_arguments(orjson.loads(text))), -1)
        events["stack"] = texts("stack", lambda text: build.stack([parse_frame(part) for part in text.split(";")]), -1)
        places = zip(*(columns.get(name, [default] * count) for name, default in
                       (("pid", 0), ("tid", 0), ("thread", ""), ("process", "python"))))
        known: dict[Any, int] = {}
        thread = [known[place] if place in known else known.setdefault(place, build.thread(ThreadInfo(
            int(place[0] or 0), int(place[1] or 0), place[2] or "", place[3] or "python"))) for place in places]
        events["thread"] = np.array(thread, np.int64)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise BadFile(f"cannot read {path}: {type(error).__name__} in its table ({error})") from error
    late = events["end_ns"] < events["start_ns"]
    if late.any():
        raise BadFile(f"cannot read {path}: row {int(np.argmax(late))} ends before it starts")
    build.add_columns("events", events)
    return with_told_modules(build.finish(start_ns=int(events["start_ns"].min()) if count else 0,
                                          end_ns=int(events["end_ns"].max()) if count else 0))


def _pyarrow() -> Any:
    from .arrow import arrow

    return arrow()
