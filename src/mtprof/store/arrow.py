"""A trace's own file: one Arrow file, memory-mapped, with a column per table.

Each record batch has one row, with the rows of one table as a list of structs; the other columns are null there. So one
file holds tables of different lengths, any reader of Arrow can unpack each (`explode` and `unnest` in polars), and a
table's column is one piece of memory in the file, which is used directly. Batches can be added while a recording runs.
A file whose writer was killed lacks Arrow's footer; it is read as a stream.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import orjson

from ..arguments import decode_arguments, encode_arguments
from ..builder import put_in_order
from ..errors import BadFile
from ..files import atomic_file
from ..json_text import text
from ..own_metadata import STEP_STARTS, check_metadata
from ..schema import FACTS, POOLS, TABLES, Column, Kind, Pool, Table
from ..tables.derived import completed
from ..trace import Columns, Frame, ThreadInfo, Trace

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2  # of written files; all formats up to this one can be read
SUFFIX = ".mtp"
MAGIC = b"ARROW1\0\0"
_KEY = b"mtprof"  # of the format number in Arrow's metadata
_ABOUT = "recording"  # the column with the facts of the recording, as JSON
_TREE_ROWS = 1 << 20  # rows that are checked at a time
_MOST_ROWS = 1 << 30  # in one batch: offsets of lists are 32 bits
_RECORDS: dict[str, type[Any]] = {"threads": ThreadInfo, "frames": Frame}


def arrow() -> Any:
    """The library, or an error that says how to get it."""
    try:
        import pyarrow.ipc
    except ImportError as error:
        raise ImportError("trace files (.mtp) need pyarrow: pip install 'mindtorch-v2[arrow]', or pip install pyarrow. "
                          "Chrome traces (.json, .json.gz) do not need it") from error
    return pyarrow


# -- the schema in Arrow's terms ---------------------------------------------------------------------------------------


def _type(pa: Any, table: Table | Pool) -> pa.DataType:
    """A table's rows as a list of structs."""
    if isinstance(table, Table):
        fields = [(column.name, pa.from_numpy_dtype(np.dtype(column.dtype))) for column in table]
    else:
        fields = [(part.name, pa.int64() if part.type == "int" else pa.string()) for part in table.fields]
    return pa.list_(pa.struct(fields))


def file_schema() -> pa.Schema:
    """The schema of every file of this format."""
    pa = arrow()
    tables: list[Table | Pool] = [*POOLS.values(), *TABLES.values()]
    columns = [pa.field(table.name, _type(pa, table)) for table in tables]
    return pa.schema([pa.field(_ABOUT, pa.string()), *columns], {_KEY: str(FORMAT).encode()})


# -- writing -----------------------------------------------------------------------------------------------------------


class Writer:
    """Adds rows of tables and entries of pools to an open file."""

    def __init__(self, file: BinaryIO) -> None:
        self._pa = arrow()
        self._schema = file_schema()
        self._writer = self._pa.ipc.new_file(file, self._schema)

    def about(self, facts: Mapping[str, Any]) -> None:
        """State facts of the recording; a later statement replaces an earlier one."""
        self._put(_ABOUT, self._pa.array([text(facts)], self._pa.string()))

    def table(self, name: str, columns: Columns) -> None:
        """Add rows to a table, with all its columns. No rows mean that the table was recorded and is empty."""
        count = len(columns[TABLES[name].columns[0].name])
        for low in range(0, max(count, 1), _MOST_ROWS):
            part = {key: value[low:low + _MOST_ROWS] for key, value in columns.items()}
            self._rows(name, [part[column.name] for column in TABLES[name]])

    def pool(self, name: str, values: Sequence[Any]) -> None:
        """Add entries to a pool."""
        self._rows(name, _pool_columns(POOLS[name], values))

    def close(self) -> None:
        """Write what closes the file."""
        self._writer.close()

    def _rows(self, name: str, columns: Sequence[Any]) -> None:
        pa = self._pa
        kind = self._schema.field(name).type.value_type
        arrays = [pa.array(column, kind.field(number).type) for number, column in enumerate(columns)]
        rows = pa.StructArray.from_arrays(arrays, fields=list(kind))
        self._put(name, pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows))

    def _put(self, name: str, value: Any) -> None:
        pa = self._pa
        row = [value if field.name == name else pa.nulls(1, field.type) for field in self._schema]
        self._writer.write_batch(pa.record_batch(row, schema=self._schema))


def _pool_columns(pool: Pool, values: Sequence[Any]) -> list[list[Any]]:
    if pool.fields[0].type == "json":
        return [[text(encode_arguments(value)) for value in values]]
    rows = [(value,) for value in values] if len(pool.fields) == 1 else values
    columns = [list(column) for column in zip(*rows)] or [[] for _ in pool.fields]
    return [[_utf8(value) for value in column] if part.type == "text" else column
            for part, column in zip(pool.fields, columns)]


def _utf8(text: str) -> str:
    """Text that a file can hold: half of a surrogate pair, as in some file names, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def facts_of(trace: Trace) -> dict[str, Any]:
    """What a file states about the recording as a whole."""
    return {**{name: getattr(trace, name) for name, _, _ in FACTS}, "metadata": trace.metadata, "finished": True}


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write everything that a trace knows to a file, which appears when it is complete."""
    with atomic_file(path) as file:
        writer = Writer(file)
        writer.about(facts_of(trace))
        for name in POOLS:
            writer.pool(name, getattr(trace, name))
        for name in TABLES:  # tables that events need come first, so that a file cut short still has them
            if trace.has(name):
                writer.table(name, trace.tables[name])
        writer.close()


# -- reading -----------------------------------------------------------------------------------------------------------


class LazyColumns(Mapping[str, np.ndarray]):
    """The columns of a table in a file; each is made on first use."""

    def __init__(self, makers: Mapping[str, Callable[[], np.ndarray]]) -> None:
        self._makers = makers
        self._made: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._makers[name]()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class LazyList(Sequence[Any]):
    """A pool in a file; its entries are made on first use."""

    def __init__(self, count: int, make: Callable[[], list[Any]]) -> None:
        self._count = count
        self._make = make
        self._made: list[Any] | None = None

    def __getitem__(self, index: Any) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return self[:] == (other[:] if isinstance(other, LazyList) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self[:])


class Reader:
    """The tables and pools of a file, as its batches have them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._pa = pa = arrow()
        self.cut_short = False
        self._chunks: dict[str, list[Any]] = {}
        self.facts: dict[str, Any] = {}
        mapped = pa.memory_map(self.path)
        try:
            self._open(mapped)
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError) as error:
            if isinstance(error, BadFile):
                raise
            raise BadFile(f"{self.path} is damaged: {str(error)[:200]}") from error

    def _open(self, mapped: Any) -> None:
        batches: Iterable[Any]
        try:
            file = self._pa.ipc.open_file(mapped)
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        except (self._pa.ArrowException, OSError):
            schema, batches = self._stream(mapped)
        self._check_schema(schema)
        for batch in batches:
            self._take(batch)

    def _stream(self, mapped: Any) -> tuple[Any, Iterable[Any]]:
        """The complete batches of a file without a footer."""
        pa = self._pa
        self.cut_short = True
        mapped.seek(len(MAGIC))
        try:
            stream = pa.ipc.open_stream(mapped)
        except (pa.ArrowException, OSError) as error:
            raise BadFile(f"{self.path} is cut short before its first row ({error})") from error

        def whole() -> Iterator[Any]:
            try:
                yield from stream
            except (pa.ArrowException, OSError):
                return  # an incomplete batch at the end

        return stream.schema, whole()

    def _check_schema(self, schema: Any) -> None:
        stated = (schema.metadata or {}).get(_KEY)
        if stated is None:
            raise BadFile(f"{self.path} is an Arrow file, not a trace: its columns are {', '.join(schema.names[:8])}")
        number = int(stated) if stated.isdigit() and len(stated) < 10 else 0
        if not 1 <= number <= FORMAT:
            raise BadFile(f"{self.path} has format {stated.decode(errors='replace')[:20]} of trace files, "
                          f"and this mtprof reads formats up to {FORMAT}")
        for field in file_schema():
            place = schema.get_field_index(field.name)
            if place < 0:
                if field.name in TABLES and TABLES[field.name].since > number:
                    continue  # in the older file, the table was not recorded
                raise BadFile(f"{self.path} has no column {field.name}")
            if schema.field(place).type != field.type:
                raise BadFile(f"{self.path}: {self._difference(field, schema.field(place))}")

    def _difference(self, wanted: Any, found: Any) -> str:
        """Which column of a table is missing or has another type."""
        try:
            rows = {field.name: field.type for field in found.type.value_type}
        except (AttributeError, TypeError):
            return f"column {wanted.name} is {found.type} instead of {wanted.type}"
        for field in wanted.type.value_type:
            if field.name not in rows:
                return f"table {wanted.name} has no column {field.name}"
            if rows[field.name] != field.type:
                return f"column {wanted.name}.{field.name} is {rows[field.name]} instead of {field.type}"
        return f"table {wanted.name} has columns that this version does not know"

    def _take(self, batch: Any) -> None:
        batch.validate(full=True)  # without this, offsets and lengths of the file would be trusted
        for name, column in zip(batch.schema.names, batch.columns):
            if column.null_count == len(column):
                continue
            if name == _ABOUT:
                stated = orjson.loads(column[0].as_py())
                if not isinstance(stated, dict):
                    raise BadFile(f"{self.path} is damaged: the facts of the recording are not an object")
                self.facts |= stated
            else:
                self._chunks.setdefault(name, []).append(column.flatten())

    def has(self, name: str) -> bool:
        """Whether a table has rows, or the file states that it has none."""
        return name in self._chunks

    def count(self, name: str) -> int:
        """The number of rows."""
        return sum(map(len, self._chunks.get(name, ())))

    def column(self, table: str, name: str) -> np.ndarray:
        """A column as a NumPy array, without a copy if it is in one piece."""
        parts = [chunk.field(name) for chunk in self._chunks.get(table, ())]
        if any(part.null_count for part in parts):
            raise BadFile(f"{self.path}: column {table}.{name} has missing values")
        dtype = np.dtype(TABLES[table].by_name[name].dtype)
        # Not part.to_numpy(), which imports pandas where that is installed.
        arrays = [np.frombuffer(part.buffers()[1] or b"", dtype, len(part), part.offset * dtype.itemsize)
                  if len(part) else np.zeros(0, dtype) for part in parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def columns(self, table: str) -> LazyColumns:
        """A table; references are checked when columns are made."""
        return LazyColumns({column.name: partial(self._checked, table, column) for column in TABLES[table]})

    def _checked(self, table: str, column: Column) -> np.ndarray:
        value = self.column(table, column.name)
        lowest = min(column.default, 0)
        if column.refers is not None and len(value):
            size = self.count(column.refers)
            if int(value.min()) < lowest or int(value.max()) >= size:
                wrong = int(value.min()) if int(value.min()) < lowest else int(value.max())
                raise BadFile(f"{self.path}: column {table}.{column.name} refers to entry {wrong} of {column.refers}, "
                              f"which has {size}")
        if column.refers == table and self.facts.get("finished"):
            self._check_tree(table, column, value)
        if wrong_code := column.unknown_code(value):
            raise BadFile(f"{self.path}: column {table}.{column.name} {wrong_code}")
        return value

    def _check_tree(self, table: str, column: Column, value: np.ndarray) -> None:
        """Check that a parent comes before its children; otherwise the search for a root might not end."""
        if table not in ("events", "stacks"):
            return self._check_roots(table, column, value)
        for low in range(0, len(value), _TREE_ROWS):
            part = value[low:low + _TREE_ROWS]
            wrong = np.flatnonzero(part >= np.arange(low, low + len(part)))
            if len(wrong):
                raise BadFile(f"{self.path}: row {low + int(wrong[0])} of {table} comes before "
                              f"the row that {column.name} refers to")
        return None

    def _check_roots(self, table: str, column: Column, value: np.ndarray) -> None:
        """Check that every row leads to a root."""
        jump = value
        for _ in range(max(1, len(value)).bit_length() + 1):
            jump = np.where(jump >= 0, jump[jump], -1)
        if (jump >= 0).any():
            raise BadFile(f"{self.path}: {table}.{column.name} has a cycle")

    def pool(self, name: str) -> LazyList:
        """A pool."""
        return LazyList(self.count(name), lambda: self._entries(POOLS[name]))

    def _entries(self, pool: Pool) -> list[Any]:
        try:
            return self._decoded(pool)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise BadFile(f"{self.path} is damaged: {pool.name} has an invalid entry ({str(error)[:100]})") from error

    def _decoded(self, pool: Pool) -> list[Any]:
        columns = [[value for chunk in self._chunks.get(pool.name, ()) for value in chunk.field(part.name).to_pylist()]
                   for part in pool.fields]
        if pool.fields[0].type == "json":
            return [decode_arguments(orjson.loads(value)) for value in columns[0]]
        if pool.name in _RECORDS:
            return [_RECORDS[pool.name](*row) for row in zip(*columns)]
        return columns[0]


def read(path: str | os.PathLike[str]) -> tuple[Trace, bool]:
    """The trace in a file of this format, and whether the file was cut short.

    Columns are read on first use. A file that was written while its recording ran is first put in order.
    """
    reader = Reader(path)
    if not reader.has("events"):
        raise BadFile(f"{reader.path} is cut short: it has no events" if reader.cut_short
                      else f"{reader.path} has no table of events")
    facts: dict[str, Any] = {name: reader.facts[name] for name, _, _ in FACTS if name in reader.facts}
    facts["metadata"] = reader.facts.get("metadata", {})
    if not all(isinstance(facts[name], int) for name, _, _ in FACTS if name in facts) or not isinstance(
            facts["metadata"], dict):
        raise BadFile(f"{reader.path} is damaged: the facts of the recording have other types")
    try:
        check_metadata(facts["metadata"])
    except ValueError as error:
        raise BadFile(f"{reader.path} is damaged: {error}") from error
    pools: dict[str, Any] = {name: reader.pool(name) for name in POOLS}
    tables: dict[str, Columns] = {name: reader.columns(name) for name in TABLES if reader.has(name)}
    trace = Trace(tables, **facts, **pools)
    if reader.facts.get("finished"):
        return trace, reader.cut_short
    trace = completed(put_in_order(trace), with_stack=bool(trace.metadata.get("with_stack")))
    # The facts that state the end of a recording come last. Without them, it ended with its last event in the file.
    end_ns = int(trace.events["end_ns"].max(initial=trace.start_ns))
    return replace(trace, end_ns=max(trace.end_ns, end_ns), metadata=_with_steps(trace)), reader.cut_short


def _with_steps(trace: Trace) -> dict[str, Any]:
    """The metadata of a recording that was cut before it stated when step() was called: no later than what followed."""
    events = trace.events
    if (events["kind"] == Kind.STEP).any():
        return trace.metadata
    order = np.argsort(events["start_ns"], kind="stable")
    step = np.maximum.accumulate(events["step"][order])
    last = min(int(step.max(initial=0)), len(step))  # a damaged file may have any value
    first = np.searchsorted(step, np.arange(1, last + 1))
    starts = (events["start_ns"][order][first] - trace.start_ns).tolist()
    return {**trace.metadata, "mindtorch_v2": {STEP_STARTS: starts}} if starts else trace.metadata
