"""Events and averages as rows and columns: CSV, JSON, pandas, Arrow.

Columns have PyTorch's attribute names; times are in microseconds and memory in bytes, as in those attributes. Unknown
FLOPs are missing, not 0.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import orjson

from ..files import write_atomically
from ..json_text import text

Getter = Callable[[Any], Any]


def _device_type(row: Any) -> str:
    return getattr(row.device_type, "name", None) or str(row.device_type)


def _flops(row: Any) -> int | None:
    return row.flops if row.flops is not None and row.flops > 0 else None


def _own(event: Any, key: str) -> Any:
    """A fact that PyTorch's events do not have."""
    return event[key] if hasattr(event, "__getitem__") else None


def _plain(*names: str) -> dict[str, Getter]:
    return {name: attrgetter(name) for name in names}


_TIMES_AND_MEMORY = _plain(
    "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage",
    "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage")

EVENT_COLUMNS: dict[str, Getter] = {
    **_plain("id", "name", "overload_name"),
    "start_us": lambda event: event.time_range.start,
    "end_us": lambda event: event.time_range.end,
    "device_type": _device_type,
    **_plain("device_index", "thread", "sequence_nr"),
    "process": lambda event: getattr(event, "pid", None),
    "step": lambda event: _own(event, "step"),
    "kind": lambda event: _own(event, "kind"),
    "parent": lambda event: None if event.cpu_parent is None else event.cpu_parent.id,
    **_TIMES_AND_MEMORY,
    "flops": _flops,
    "input_shapes": lambda event: _listed(event.input_shapes),
    "stack": lambda event: _listed(event.stack),
}
AVERAGE_COLUMNS: dict[str, Getter] = {
    **_plain("key", "overload_name", "count"),
    "device_type": _device_type,
    **_plain("cpu_time", "device_time"),
    **_TIMES_AND_MEMORY,
    "flops": _flops,
    "input_shapes": lambda row: _listed(row.input_shapes),
    "stack": lambda row: _listed(row.stack),
}


def columns(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The table as a dictionary of columns, with modules if they are known. Without rows it has the columns of
    events."""
    getters = AVERAGE_COLUMNS if len(rows) and not hasattr(rows[0], "time_range") else EVENT_COLUMNS
    table = {name: [get(row) for row in rows] for name, get in getters.items()}
    modules = [getattr(row, "module", None) for row in rows]
    return {**table, "module": modules} if any(modules) else table


def to_csv(rows: Sequence[Any], path: str | os.PathLike[str] | None = None) -> str | None:
    """The table as CSV with a header, written to `path` or returned. Shapes and stacks are JSON inside their cell."""
    table = columns(rows)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table)
    cells = [[text(cell) if isinstance(cell, list) else cell for cell in column] for column in table.values()]
    writer.writerows(zip(*cells, strict=True))
    return _deliver(buffer.getvalue(), path)


def to_json(rows: Sequence[Any], path: str | os.PathLike[str] | None = None) -> str | None:
    """The table as a JSON list with an object per row, written to `path` or returned."""
    table = columns(rows)
    records = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    return _deliver("[\n" + ",\n".join(map(text, records)) + "\n]\n" if records else "[]\n", path)


def to_dataframe(rows: Sequence[Any]) -> Any:
    """The table as a pandas DataFrame; `flops` is a nullable integer column."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(_missing("to_dataframe", "pandas")) from error
    frame = pandas.DataFrame(columns(rows))
    return frame.astype({"flops": "Int64"})


def to_arrow(rows: Sequence[Any]) -> Any:
    """The table as a pyarrow Table; shapes are JSON text because their nesting differs between rows."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(_missing("to_arrow", "pyarrow")) from error
    table = columns(rows)
    table["input_shapes"] = [text(shapes) for shapes in table["input_shapes"]]
    types = {"flops": pyarrow.int64(), "stack": pyarrow.list_(pyarrow.string())}
    return pyarrow.table({name: pyarrow.array(column, types.get(name)) for name, column in table.items()})


def _missing(function: str, package: str) -> str:
    return f"{function} needs {package}, which is not installed: pip install 'mindtorch-v2[analysis]'"


def _listed(value: Any) -> list[Any]:
    """Shapes and stacks as plain lists; they may be tuples, None, or text after grouping."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [value]
    return orjson.loads(text(list(value)))


def _deliver(content: str, path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return content
    write_atomically(path, [content.encode("utf-8", "replace")])
    return None
