"""The table: PyTorch's layout, character by character, with a footer of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..devices import DEVICES, DeviceType
from .formatting import _format_memory, _format_time_share, format_time_in
from .function_event import FunctionEvent
from .function_event_avg import FunctionEventAvg

_NUMBER_WIDTH = 12
_GAP = "  "
_FLOPS_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def sort_attribute(sort_by: str) -> str:
    """The attribute behind a sort key: every accelerator's times and sizes are in the `device` fields."""
    for device in ("cuda", "xpu", "privateuse1"):
        sort_by = sort_by.replace(device, "device")
    return sort_by.replace("npu_", "device_")  # with its underscore: "input_shapes" contains "npu" too


SORT_KEYS = ("self_cpu_time_total", "cpu_time_total", "cpu_time", "self_device_time_total", "device_time_total",
             "device_time", "self_cpu_memory_usage", "cpu_memory_usage", "self_device_memory_usage",
             "device_memory_usage", "count", "flops", "key", "name")


def build_table(
    rows: Sequence[Any], sort_by: str | None = None, header: str | None = None, row_limit: int = 100,
    max_src_column_width: int | None = 75, max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80, with_flops: bool = False, profile_memory: bool = False,
    top_level_events_only: bool = False, time_unit: str | None = None, *, dropped: int = 0,
    overhead: tuple[float, float, bool] | None = None, notes: Sequence[str] = (),
    prepared: tuple[float, int] | None = None,
) -> str:
    """Format events or averages; an empty list gives an empty string.

    `sort_by` names an attribute, largest first, ties in the order of `rows`; `row_limit` -1 means all rows; `time_unit`
    is "s", "ms" or "us"; `dropped` is the number of events beyond the limit; `overhead` is the estimated cost of
    recording and the length of the recording, in microseconds; `notes` are lines at the end; `prepared` is the time of
    first uses of ops, and their number.
    """
    if not rows:
        return ""
    if sort_by is not None:
        rows = _sorted(rows, sort_attribute(sort_by))
    layout = _Layout(rows, max_src_column_width, max_name_column_width, max_shapes_column_width, with_flops,
                     profile_memory, time_unit, 0.0 if prepared is None else prepared[0])
    lines: list[str] = []
    if header is not None:
        lines += ["=" * layout.line_length, header]
    if top_level_events_only:
        lines += ["=" * layout.line_length, "This report only display top-level ops statistics"]
    lines += [layout.separator, layout.line(layout.headers), layout.separator]
    shown = 0
    for row in rows:
        if shown == row_limit:
            break
        if top_level_events_only and row.cpu_parent is not None:
            continue
        shown += 1
        lines += layout.row_lines(row)
    lines += [layout.separator, *layout.totals(), *_footer(rows, layout.total_cpu, time_unit, dropped), *notes]
    if prepared is not None:
        lines.append(f"First use: {format_time_in(prepared[0], time_unit)} for preparing {prepared[1]} "
                     f"op{'s' * (prepared[1] != 1)}, not part of any self time")
    if overhead is not None:
        lines.append(_overhead_line(*overhead, time_unit))
    return "".join(line + "\n" for line in lines)


def _sorted(rows: Sequence[Any], attribute: str) -> list[Any]:
    # Only the first row is checked: rows of a list have one class. Checked here so that the error names the public
    # class.
    if not hasattr(rows[0], attribute):
        public = "FunctionEvent" if isinstance(rows[0], FunctionEvent) else "FunctionEventAvg"
        known = ", ".join(name for name in SORT_KEYS if hasattr(rows[0], name))
        raise AttributeError(f"'{public}' object has no attribute '{attribute}'. Rows can be sorted by {known}")
    return sorted(rows, key=lambda row: getattr(row, attribute), reverse=True)


def _footer(rows: Sequence[Any], total_cpu_us: float, time_unit: str | None, dropped: int) -> list[str]:
    calls = sum(row.count for row in rows)
    lines = [f"Total: {len(rows)} rows, Count: {calls} calls, {format_time_in(total_cpu_us, time_unit)}"]
    if dropped:
        lines.append(f"Dropped: {dropped} events beyond max_events")
    return lines


def _overhead_line(cost_us: float, recorded_us: float, by_python: bool, time_unit: str | None) -> str:
    share = f"{100 * cost_us / recorded_us:.1f} %" if recorded_us > 0 else "an unknown part"
    return (f"Profiling overhead (estimated): {format_time_in(cost_us, time_unit)}, {share} of "
            f"{format_time_in(recorded_us, time_unit)}"
            + ("; recorded in Python; the C extension is several times cheaper" if by_python else ""))


class _Layout:
    """The columns, their widths, and how a row fills them."""

    def __init__(self, rows: Sequence[Any], max_src: int | None, max_name: int | None, max_shapes: int | None,
                 with_flops: bool, profile_memory: bool, time_unit: str | None, prepared_us: float) -> None:
        self.max_name = max_name
        self.time_unit = time_unit
        self.profile_memory = profile_memory
        self.use_device = rows[0].use_device
        self.has_device_time = any(row.self_device_time_total > 0 for row in rows)
        if self.has_device_time and not self.use_device:
            raise RuntimeError("use_device is None, but there is device performance data.")
        self.has_device_memory = bool(
            profile_memory and self.use_device and any(row.self_device_memory_usage > 0 for row in rows))
        self.has_overloads = any(row.overload_name for row in rows)
        self.has_modules = isinstance(rows[0], FunctionEventAvg) and any(row.module for row in rows)
        self.has_shapes = any(row.input_shapes is not None and len(row.input_shapes) > 0 for row in rows)
        self.has_nodes = any(row.node_id != -1 for row in rows)
        self.total_cpu, self.total_device = _totals(rows)
        self.whole_cpu = self.total_cpu + prepared_us  # first uses are in the total only

        self.headers: list[str] = []
        self._formats: list[str] = []
        self._rules: list[str] = []
        self._name_columns(rows)
        self._number_columns()
        self.shapes_width = _capped(max((len(str(row.input_shapes)) for row in rows), default=0) + 4, max_shapes)
        if self.has_shapes:
            self._column("Input Shapes", self.shapes_width)
        entries = [len(entry) for row in rows if row.stack for entry in row.stack]
        self.has_stack = bool(entries)
        self.source_width = _capped(max(entries, default=0) + 4, max_src)
        if self.has_stack:
            self._column("Source Location", self.source_width, "<")
        flops = [row.flops for row in rows if row.flops and row.flops > 0] if with_flops else []
        self.has_flops = bool(flops)
        if flops:
            power = int(max(0, min(math.log10(min(flops)) / 3, len(_FLOPS_UNITS) - 1)))
            self.flops_scale = pow(10, power * -3.0)
            self._column(f"Total {_FLOPS_UNITS[power]}", _NUMBER_WIDTH)
        self.separator = "".join(rule + _GAP for rule in self._rules)
        self.line_length = len(self.separator) - len(_GAP)

    def _column(self, title: str, width: int, align: str = ">") -> None:
        self.headers.append(title)
        self._formats.append(f"{{:{align}{width}}}")
        self._rules.append("-" * width)

    def _name_columns(self, rows: Sequence[Any]) -> None:
        width = _capped(max(len(row.key) for row in rows) + 4, self.max_name)
        self._column("Name", width)
        if self.has_overloads:
            self._column("Overload Name", width)
        if self.has_modules:
            self._column("Module", _capped(max(len(row.module or "Module") for row in rows) + 4, self.max_name))

    def _number_columns(self) -> None:
        titles = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        device = self.use_device.upper() if self.use_device is not None else "None"
        if self.has_device_time:
            titles += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"]
        if self.profile_memory:
            titles += ["CPU Mem", "Self CPU Mem"]
        if self.has_device_memory:
            titles += [f"{device} Mem", f"Self {device} Mem"]
        titles.append("# of Calls")
        if self.has_nodes:
            titles.append("Node ID")
        for title in titles:
            self._column(title, _NUMBER_WIDTH)

    def line(self, cells: Sequence[Any]) -> str:
        """One line of text from one value per column."""
        return "".join(form.format(cell) + _GAP for form, cell in zip(self._formats, cells, strict=True))

    def row_lines(self, row: Any) -> list[str]:
        """The lines of a row: the row itself and, with stacks, one per further frame and an empty one."""
        stack = row.stack or []
        cells = [*self._numbers(row)]
        if self.has_shapes:
            cells.append(str(row.input_shapes)[: self.shapes_width])
        # In PyTorch's tables the next two are under each other's titles.
        flops = []
        if self.has_flops:
            flops.append(f"{row.flops * self.flops_scale:8.3f}" if row.flops and row.flops > 0 else "--")
        if not self.has_stack:
            return [self.line([*cells, *flops])]
        first, *others = [_tail(entry, self.source_width) for entry in stack] or [""]
        blank, after = [""] * len(cells), [""] * len(flops)
        further = [self.line([*blank, entry, *after]) for entry in (*others, "")]
        return [self.line([*cells, first, *flops]), *further]

    def _numbers(self, row: Any) -> list[Any]:
        row.self_cpu_percent = _share(row.self_cpu_time_total, self.total_cpu)
        row.total_cpu_percent = 0 if row.is_async else _share(row.cpu_time_total, self.whole_cpu)
        cells = [self._short(row.key)]
        if self.has_overloads:
            cells.append(self._short(row.overload_name or ""))
        if self.has_modules:
            path = row.module or ""
            cells.append(path if self.max_name is None else _tail(path, self.max_name - 4))
        cells += [row.self_cpu_percent, self._time(row.self_cpu_time_total), row.total_cpu_percent,
                  self._time(row.cpu_time_total), self._time(row.cpu_time)]
        if self.has_device_time:
            row.total_device_percent = _share(row.self_device_time_total, self.total_device)
            cells += [self._time(row.self_device_time_total), row.total_device_percent,
                      self._time(row.device_time_total), self._time(row.device_time)]
        if self.profile_memory:
            cells += [_format_memory(row.cpu_memory_usage), _format_memory(row.self_cpu_memory_usage)]
        if self.has_device_memory:
            cells += [_format_memory(row.device_memory_usage), _format_memory(row.self_device_memory_usage)]
        cells.append(row.count)
        if self.has_nodes:
            cells.append(row.node_id)
        return cells

    def totals(self) -> list[str]:
        """The lines below the table that PyTorch prints."""
        lines = [f"Self CPU time total: {self._time(self.total_cpu)}"]
        if self.has_device_time:
            lines.append(f"Self {self.use_device.upper()} time total: {self._time(self.total_device)}")
        return lines

    def _time(self, time_us: float) -> str:
        return format_time_in(time_us, self.time_unit)

    def _short(self, name: str) -> str:
        if self.max_name is not None and len(name) >= self.max_name - 3:
            return name[: self.max_name - 3] + "..."
        return name


def _totals(rows: Sequence[Any]) -> tuple[float, float]:
    """Self CPU time and self device time of all rows."""
    total_cpu: float = 0
    total_device: float = 0
    for row in rows:
        total_cpu += row.self_cpu_time_total
        on_cpu = row.device_type == DeviceType.CPU
        # Kernels are rows of their own, except that a legacy CPU row includes its kernel. Ranges that users marked on a
        # device cover kernels that are already counted.
        if (on_cpu and row.is_legacy) or (
                not on_cpu and DEVICES[DeviceType(row.device_type)].summed and not row.is_user_annotation):
            total_device += row.self_device_time_total
    return total_cpu, total_device


def _capped(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


def _tail(path: str, width: int) -> str:
    """The end of a path, which says more than its beginning."""
    if len(path) <= width:
        return path
    end = path[len(path) - width:]
    return "..." + end[3:] if len(end) > 3 else end


def _share(time_us: float, total_us: float) -> str:
    """A percentage; "NaN" of a total of 0, also if a file's rows have time and their sum has none."""
    return _format_time_share(time_us, total_us) if total_us else "NaN"
