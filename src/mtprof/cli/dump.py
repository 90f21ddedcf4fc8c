"""Print the raw rows of a trace.

Without --table it prints what the trace has: its tables, pools and facts. With --table it prints the rows of one table,
with references written out."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .errors import CommandError
from .files import add_input, read
from .output import SETTINGS, line, print_json, table
from .summary import row_count

if TYPE_CHECKING:
    from ..trace import Trace

EXAMPLES = """
mtprof dump run.mtp
mtprof dump --table events --rows 50 run.mtp
mtprof dump --table memory --json trace.json.gz
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--table", metavar="NAME", help="a table of the schema: events, stacks, memory, modules, …")
    parser.add_argument("--rows", type=row_count, metavar="N", help="how many rows (default: all)")


def run(options: argparse.Namespace) -> int:
    trace = read(options.trace).trace
    if options.table is None:
        _overview(trace)
        return 0
    from ..schema import TABLES

    if options.table not in TABLES:
        raise CommandError(f"there is no table '{options.table}'; the tables are {', '.join(TABLES)}")
    rows = _rows(trace, options.table, options.rows)
    if SETTINGS.json:
        print_json(rows)
    elif rows:
        table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    else:
        line(f"no rows in {options.table}")
    return 0


def _overview(trace: Trace) -> None:
    from ..schema import FACTS, POOLS, TABLES
    from ..trace import count_rows

    tables = {name: count_rows(trace.tables[name]) for name in TABLES if trace.has(name)}
    pools = {name: len(getattr(trace, name)) for name in POOLS}
    facts = {name: getattr(trace, name) for name, _, _ in FACTS}
    if SETTINGS.json:
        print_json({"facts": facts, "metadata": trace.metadata, "tables": tables, "pools": pools})
        return
    table(("table", "rows", "meaning"), [(name, f"{count:,}", TABLES[name].meaning) for name, count in tables.items()],
          left=(0, 2))
    line()
    table(("pool", "entries", "meaning"), [(name, f"{count:,}", POOLS[name].meaning) for name, count in pools.items()],
          left=(0, 2))
    line()
    table(("fact", "value", "meaning"), [(name, str(facts[name]), meaning) for name, meaning, _ in FACTS], left=(0, 2))
    for key, value in trace.metadata.items():
        line(f"metadata {key}: {value}")


def _rows(trace: Trace, name: str, limit: int | None) -> list[dict[str, Any]]:
    from ..schema import TABLES
    from ..trace import count_rows

    columns = getattr(trace, name)  # raises an error that says what to record
    count = count_rows(columns)
    shown = count if limit is None else min(limit, count)
    values = {column.name: _values(trace, column, columns[column.name][:shown].tolist()) for column in TABLES[name]}
    return [dict(zip(values, row)) for row in zip(*values.values())]


def _values(trace: Trace, column: Any, numbers: list[int]) -> list[Any]:
    """Numbers, or the text that they stand for."""
    if column.codes is not None:
        return [column.codes(number).name for number in numbers]
    if column.refers in ("names", "frames"):
        pool = getattr(trace, column.refers)
        return [str(pool[number]) if number >= 0 else None for number in numbers]
    return numbers
