"""The page `docs/schema.md`, made from the schema: `python -m mtprof.schema_page docs/schema.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np

from .codes import Code
from .devices import DeviceType
from .files import write_atomically
from .schema import FACTS, POOLS, TABLES, Column, Direction, Kind, Role, Table
from .store.arrow import FORMAT

_HEAD = f"""\
# The contents of a trace

`make docs` writes this page from `src/mtprof/schema.py`. A trace is a set of tables with columns of equal length, pools
of values that columns refer to by number, and a few facts about the whole. `recording.trace.events["start_ns"]` is a
NumPy array, `recording.trace.names` a list. If a table was not recorded, asking for it raises an error that says how to
record it.

A file (`prof.save("run.mtp")`, format {FORMAT}) is an Arrow file with a column per table. Each record batch has one row
with the rows of one table as a list of structs, so any reader of Arrow can unpack it. The page marks the tables that a
Chrome trace holds too.

In the tables below, *refers to* names the pool or table that a number belongs to; -1 means none. An *owned* row is
removed together with the row it refers to. *Clock* is the clock of a time. An *identity* has a meaning only in its own
process.
"""


def page() -> str:
    """The text of the page."""
    facts = _grid(("fact", "meaning"), ((f"`{name}`", meaning) for name, meaning, _ in FACTS))
    parts = [_HEAD, "## Facts\n", facts, "\n## Pools\n"]
    for pool in POOLS.values():
        parts.append(f"### `{pool.name}`\n\n{_sentence(pool.meaning)}\n")
        rows = ((f"`{part.name}`", part.type, part.meaning) for part in pool.fields)
        parts.append(_grid(("field", "type", "meaning"), rows) + "\n")
    parts.append("## Tables\n")
    parts += [_table(table) for table in TABLES.values()]
    parts.append("## Codes\n")
    parts += [_codes(codes) for codes in (Kind, Role, Direction, DeviceType)]
    return "\n".join(parts)


def _table(table: Table) -> str:
    notes = [f"Recorded with {table.needs}." if table.needs else "Always recorded.",
             f"Sorted by {', '.join(f'`{key}`' for key in table.order)}." if table.order else "",
             "In Chrome traces too." if table.in_kineto else "",
             f"It is derived from a Chrome trace that has {table.told_by}." if table.told_by else "",
             f"Since format {table.since}." if table.since > 1 else ""]
    rows = ((f"`{column.name}`", np.dtype(column.dtype).name, column.meaning, _notes(column)) for column in table)
    return (f"### `{table.name}`\n\n{_sentence(table.meaning)} {' '.join(filter(None, notes))}\n\n"
            f"{_grid(('column', 'type', 'meaning', 'notes'), rows)}\n")


def _notes(column: Column) -> str:
    found = [f"refers to `{column.refers}`" if column.refers else "", "owned" if column.owned else "",
             f"clock: {column.clock}" if column.clock else "", "identity" if column.identity else "",
             f"codes of `{column.codes.__name__}`" if column.codes else "",
             f'`"{column.kineto}"` in Chrome traces' if column.kineto else "",
             f"{column.default} by default" if column.default and not column.refers else ""]
    return "; ".join(filter(None, found))


def _codes(codes: type[Code]) -> str:
    rows = ((str(int(code)), f"`{code.name}`") for code in codes)
    return f"### `{codes.__name__}`\n\n{_grid(('code', 'name'), rows)}\n"


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                     for row in (head, ["---"] * len(head), *rows))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    write_atomically(sys.argv[1], [page().encode()])
