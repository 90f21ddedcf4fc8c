"""`Compare`: measurements as tables, with the best and the worst in colour."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import common

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _WORST = "\033[92m\033[1m", "\033[34m\033[1m", "\033[2m\033[91m", "\033[31m\033[1m"
_PLAIN = "\033[0m\033[0m"
_ALIKE_S = 100e-9  # seconds by which the best may be missed for no reason
_BETWEEN = "  |  "


class Colorize(enum.Enum):
    """What colours compare: the cells of a column, or of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class _Row(NamedTuple):
    """What the measurements of a row have in common."""

    threads: int
    env: str | None
    name: str


def _coloured(text: str, value: float, best: float) -> str:
    if value <= best * 1.01 or value <= best + _ALIKE_S:
        colour = _BEST
    elif value <= best * 1.1:
        colour = _GOOD
    elif value >= best * 5:
        colour = _WORST
    elif value >= best * 2:
        colour = _BAD
    else:
        return text
    return colour + text + _PLAIN


class _Column:
    """How the cells of a column are written."""

    def __init__(self, cells: Sequence[common.Measurement], scale: float, trim: bool, warn: bool) -> None:
        warn = warn and any(cell.has_warnings for cell in cells)
        found = [(math.ceil(math.log10(cell.median / scale)), cell.significant_figures) for cell in cells]
        decimals = min(max(figures - digits, 0) for digits, figures in found) if trim else 1
        length = max(digits for digits, _ in found) + decimals + (1 if decimals else 0)
        self._template = f"{{:>{length}.{decimals}f}}{{:>{7 if warn else 0}}}"
        self._scale, self._trim, self._warn = scale, trim, warn

    def text(self, cell: common.Measurement | None) -> str:
        """A cell; an empty one is as wide as the others."""
        if cell is None:
            return " " * len(self._template.format(1.0, ""))
        value = cell.median / self._scale
        if self._trim:
            value = common.trim_sigfig(value, cell.significant_figures)
        warning = f" (! {cell.iqr / cell.median * 100:.0f}%)" if self._warn and cell.has_warnings else ""
        return self._template.format(value, warning)


class _Table:
    """The measurements of one label."""

    def __init__(self, results: Sequence[common.Measurement], colorize: Colorize, trim: bool, warn: bool) -> None:
        self._label: str = results[0].label or ""
        self._colorize = colorize
        self._unit, scale = common.select_unit(min(one.median for one in results))
        self._cells = {(_Row(one.num_threads, one.task_spec.env, one.as_row_name), one.description): one
                       for one in results}
        # Within threads and environments, rows stay in the order in which they were measured.
        self._rows: list[_Row] = common.ordered_unique(row for row, _ in self._cells)
        self._rows.sort(key=lambda row: row[:2])
        self._names = common.ordered_unique(name for _, name in self._cells)
        self._columns = [_Column([cell for (_, column), cell in self._cells.items() if column == name],
                                 scale, trim, warn) for name in self._names]
        envs = {row.env for row in self._rows}
        self._env_width = max(len(f"({env})") for env in envs) + 2 if len(envs) > 1 else 0

    def _best(self, row: _Row, name: str | None) -> float:
        """The best time that a cell is compared with."""
        return min(cell.median for (other, column), cell in self._cells.items()
                   if (other == row if self._colorize is Colorize.ROWWISE
                       else column == name and other.threads == row.threads))

    def _heading(self, number: int) -> str:
        """What stands before the cells of a row; an environment is named where it begins."""
        row, before = self._rows[number], self._rows[number - 1] if number else None
        same = before is not None and before[:2] == row[:2]
        env = "" if row.env is None or same or not self._env_width else f"({row.env})"
        return f"  {env.ljust(self._env_width or 4)}{row.name}"

    def lines(self) -> list[str]:
        """The table's lines."""
        texts = [[self._heading(number), *[column.text(self._cells.get((row, name)))
                                           for name, column in zip(self._names, self._columns)]]
                 for number, row in enumerate(self._rows)]
        header = ["", *[name or "" for name in self._names]]
        widths = [max(map(len, column)) for column in zip(header, *texts)]
        whole = sum(widths) + len(_BETWEEN) * (len(widths) - 1)
        made = [f"[{f' {self._label} '.center(whole - 2, '-')}]",
                _BETWEEN.join([" " * widths[0], *[name.center(width) for name, width in zip(header[1:], widths[1:])]])]
        threads = None
        for row, text in zip(self._rows, texts):
            if row.threads != threads:
                threads = row.threads
                made.append(f"{threads} threads: ".ljust(whole, "-"))
            made.append(_BETWEEN.join([text[0].ljust(widths[0]), *self._cell_texts(row, text[1:], widths[1:])]))
        return [*made, "", f"Times are in {common.unit_to_english(self._unit)}s ({self._unit})."]

    def _cell_texts(self, row: _Row, texts: Sequence[str], widths: Sequence[int]) -> list[str]:
        made = []
        for name, text, width in zip(self._names, texts, widths):
            cell = self._cells.get((row, name))
            text = text.center(width)
            if cell is not None and self._colorize is not Colorize.NONE:
                text = _coloured(text, cell.median, self._best(row, name))
            made.append(text)
        return made


class Compare:
    """Measurements as tables: a table for each label, a column for each description, a row for each task."""

    def __init__(self, results: list[common.Measurement]) -> None:
        self._results: list[common.Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Iterable[Any]) -> None:
        """Add measurements."""
        for one in results:
            if not isinstance(one, common.Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only digits that mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show in colour how far a cell is from the best of its column, or of its row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Show which times spread far."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def _render(self) -> list[str]:
        labels = common.ordered_unique(one.label for one in self._results)
        made = []
        for label in labels:
            results = common.Measurement.merge(one for one in self._results if one.label == label)
            lines = _Table(results, self._colorize, self._trim_significant_figures, self._highlight_warnings).lines()
            if self._highlight_warnings and any(one.has_warnings for one in results):
                lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
            made.append("\n".join([*lines, ""]))
        return made
