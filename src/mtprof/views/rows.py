"""`Rows`: the result of a view as a list of records that prints as a table and becomes a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar, overload

Row = TypeVar("Row")


class Rows(Sequence[Row]):
    """Records of one dataclass; `derived` names properties of it that are also shown."""

    def __init__(self, kind: type[Row], rows: Sequence[Row], derived: Sequence[str] = ()) -> None:
        self.columns = (*(part.name for part in fields(kind)), *derived)  # type: ignore[arg-type]
        self._rows = list(rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def to_dict(self) -> list[dict[str, Any]]:
        """Each row as plain values."""
        return [{name: getattr(row, name) for name in self.columns} for row in self._rows]

    def to_dataframe(self) -> Any:
        """A pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.to_dict(), columns=list(self.columns))

    def __str__(self) -> str:
        lines = [list(self.columns), *([_shown(getattr(row, name)) for name in self.columns] for row in self._rows)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        first, *others = widths
        return "\n".join("  ".join([line[0].ljust(first), *(cell.rjust(w) for cell, w in zip(line[1:], others))])
                         for line in lines)

    __repr__ = __str__


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
