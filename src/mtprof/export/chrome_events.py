"""The events of a Chrome trace as text, a chunk of rows at a time.

An event shares most of its text with others of the same name, thread and inputs. That text is encoded once per distinct
combination. What remains per event are integers, which are converted to text a column at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..arguments import canonical, encode_input
from ..json_text import text
from ..names import ENGINE_PREFIX, frame_text, parse_stack
from ..schema import Kind
from ..store import kineto_sides
from ..store import kineto_words as words
from ..tables import derived
from ..tables.distinct import distinct
from ..tables.told_modules import with_told_modules
from ..trace import Arguments, ThreadInfo, Trace
from .chrome_links import is_device_work
from .fixed_text import THREE_DIGITS, lines, thousands

_CHUNK_ROWS = 1 << 11  # small enough that a chunk's text stays in the cache

_AFTER_INSTANT = [f'.{ns:03d},"args":{{' for ns in range(1000)]
_DIGITS = re.compile(r"_(\d+)\Z")


class EventText:
    """Makes the lines of a trace's events; `lanes` are its threads with the pid that each gets in the file."""

    def __init__(self, trace: Trace, base_ns: int, lanes: Sequence[ThreadInfo], forward: np.ndarray,
                 external: np.ndarray, with_overloads: bool = False) -> None:
        self.trace, self.lanes, self.external = trace, lanes, external
        events = trace.events
        self.names = [text(name) for name in trace.names]
        self.start = events["start_ns"] + (trace.epoch_ns - base_ns)
        self.duration = trace.duration_ns
        self.numbered = bool(events["record_id"].any())  # otherwise the zeros are part of the shared text
        self.on_device = is_device_work(trace)
        self.python = np.isin(events["kind"], [Kind.PYTHON, Kind.MODULE])
        self.pause = events["kind"] == Kind.GC  # a Python event in the file, but not a call
        backward = np.isin(events["kind"], [Kind.BACKWARD, Kind.BACKWARD_FUNCTION]) & (events["sequence"] >= 0)
        # PyTorch counts threads from 1 here, and writes 0 in forward ops.
        thread = np.where(forward >= 0, events["thread"][np.maximum(forward, 0)] if len(trace) else 0, events["thread"])
        self.forward_thread = np.where(backward, thread + 1, 0)
        self.python_id = np.cumsum(self.python)
        self.python_caller = np.zeros(len(trace), np.int64)  # 0 for none
        calls = derived.Calls(events)
        if len(calls.rows):
            self.python_caller[calls.rows] = np.where(calls.callers >= 0, self.python_id[calls.callers], 0)
        self.with_overloads = with_overloads
        self.head_code, self.heads, expected = self._heads()
        self.tail_code, self.tails = self._tails(expected)
        self.side_rows, self.side_texts = kineto_sides.texts(trace)

    def chunks(self) -> Iterator[bytes]:
        """All events, one per line, each followed by a comma."""
        for low in range(0, len(self.trace), _CHUNK_ROWS):
            yield self._chunk(np.arange(low, min(low + _CHUNK_ROWS, len(self.trace))))

    def _chunk(self, rows: np.ndarray) -> bytes:
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        start_us, start_ns = thousands(self.start[part])
        us, ns = thousands(self.duration[part])
        parts: list[bytes] = [b""] * (6 * len(rows))
        parts[0::6] = map(self.heads.__getitem__, self.head_code[part].tolist())
        parts[1::6] = lines([start_us, b".", THREE_DIGITS.take(start_ns, 0), b',"dur":', us, b".",
                             THREE_DIGITS.take(ns, 0), b',"args":{'])
        python, device = self.python[part], self.on_device[part]
        parts[2::6] = _scatter(len(rows), [
            (mask, make(rows[mask])) for mask, make in (
                (~python & ~device & ~self.pause[part], self._host_numbers), (python, self._python_numbers),
                (device, self._device_numbers)) if mask.any()])
        parts[3::6] = self._linked_numbers(rows)
        parts[4::6] = map(self.tails.__getitem__, self.tail_code[part].tolist())
        parts[5::6] = lines([b'"Ev Idx":', rows, b"}},\n"])
        return b"".join(parts)

    def _host_numbers(self, rows: np.ndarray) -> list[bytes]:
        if self.numbered:
            return lines([b'"External id":', self.external[rows], b',"Record function id":',
                          np.maximum(self.trace.events["record_id"][rows], 0), b","])
        return lines([b'"External id":', self.external[rows], b","])

    def _python_numbers(self, rows: np.ndarray) -> list[bytes]:
        called = self.python_caller[rows] > 0
        return _scatter(len(rows), [
            (called, lines([b'"Python parent id":', self.python_caller[rows[called]], b',"Python id":',
                            self.python_id[rows[called]], b","])),
            (~called, lines([b'"Python parent id":null,"Python id":', self.python_id[rows[~called]], b","]))])

    def _device_numbers(self, rows: np.ndarray) -> list[bytes]:
        events = self.trace.events
        streams = [lane.tid for lane in self.lanes]
        return [
            f'"External id":{e},"device":{d},"stream":{streams[lane]},"correlation":{c},'.encode()
            for e, d, lane, c in zip(self.external[rows].tolist(), events["device_index"][rows].tolist(),
                                     events["thread"][rows].tolist(), events["correlation"][rows].tolist(), strict=True)
        ]

    def _linked_numbers(self, rows: np.ndarray) -> list[bytes]:
        """Sequence numbers of autograd, correlation numbers if the device's own text has none, side tables."""
        sequence, correlation = self.trace.events["sequence"][rows], self.trace.events["correlation"][rows]
        numbered = sequence >= 0
        result = _scatter(len(rows), [(numbered, lines([
            b'"Sequence number":', sequence[numbered], b',"Fwd thread id":', self.forward_thread[rows[numbered]],
            b","]))]) if numbered.any() else [b""] * len(rows)
        for place in np.flatnonzero((correlation != 0) & ~self.on_device[rows]).tolist():
            result[place] += b'"correlation":%d,' % int(correlation[place])
        low, high = np.searchsorted(self.side_rows, (rows[0], rows[-1] + 1)).tolist()
        for row, said in zip(self.side_rows[low:high].tolist(), self.side_texts[low:high]):
            result[row - int(rows[0])] += said
        return result

    def _heads(self) -> tuple[np.ndarray, list[bytes], np.ndarray]:
        """Text up to the start time, and the kind that a reader would infer from it."""
        trace, events = self.trace, self.trace.events
        overload = events["overload"] if self.with_overloads else np.zeros(len(trace), np.int32)
        code, rows = distinct([events["kind"], events["name"], events["thread"], events["device"] != 0, overload])
        others = trace.metadata.get("other_categories", {})
        heads, kinds, engine = [], [], set()
        self.categories = set()
        for row in rows.tolist():
            name = trace.names[events["name"][row]]
            cat = words.category(Kind(int(events["kind"][row])), name, int(events["device"][row]), others)
            self.categories.add(cat)
            lane = self.lanes[events["thread"][row]]
            shown = text(f"{name}.{trace.names[overload[row]]}") if overload[row] else self.names[events["name"][row]]
            head = f'{{"ph":"X","cat":{text(cat)},"name":{shown},'
            heads.append(f'{head}"pid":{lane.pid},"tid":{lane.tid},"ts":'.encode())
            kinds.append(words.kind_of(cat, name))
            if kinds[-1] is Kind.BACKWARD:
                engine.add(name[len(ENGINE_PREFIX):])
        expected = np.array(kinds, np.int64)[code] if kinds else np.zeros(0, np.int64)
        of_engine = np.array([name in engine for name in trace.names], bool)
        function = (expected == Kind.OP) & (of_engine[events["name"]] | (self.forward_thread != 0))
        return code, heads, np.where(function, int(Kind.BACKWARD_FUNCTION), expected)

    def _own_modules(self) -> np.ndarray:
        """The modules of events; none if the calls of modules give them all, as in traces of PyTorch."""
        trace, module = self.trace, self.trace.events["module"]
        nothing = np.full_like(module, -1)
        known = trace.optional("modules")
        if not len(known["path"]) or any(trace.names[path].rpartition(".")[2] != trace.names[label]
                                         for path, label in zip(known["path"], known["label"])):
            return module  # the paths of modules in the model, which calls do not give
        tables = {name: table for name, table in trace.tables.items() if name not in ("modules", "module_calls")}
        again = with_told_modules(replace(trace, tables={**tables, "events": {**trace.events, "module": nothing}}))
        told = again.events["module"]
        _, rows = distinct([told, module])
        same = all(a == b or (a >= 0 and b >= 0 and again.names[a] == trace.names[b])
                   for a, b in zip(told[rows].tolist(), module[rows].tolist()))
        return nothing if same else module

    def _tails(self, expected: np.ndarray) -> tuple[np.ndarray, list[bytes]]:
        """Text between an event's own numbers and its end: inputs and our extras, each left out at its default."""
        trace, events = self.trace, self.trace.events
        kind = events["kind"].astype(np.int64)
        step = events["step"]
        told = derived.steps(expected, events["name"], events["start_ns"], events["end_ns"], trace.names)
        step = np.where(step == told, np.int64(-1), step)
        own_kind = np.where(kind == expected, -1, kind)
        stack = self._own_stacks()
        module_call = np.where(kind == Kind.MODULE, events["name"], -1)
        default_device = np.where(self.on_device | ((kind == Kind.SCOPE) & (events["device"] != 0)),
                                  int(words.accelerator(self.categories)), 0)
        device = np.where(events["device"] == default_device, -1, events["device"])
        index = np.where(self.on_device, np.int16(-1), events["device_index"])
        plain = np.where(self.python | self.pause, 0, np.where(self.on_device, 1, 2))
        module = self._own_modules()
        code, rows = distinct([events["inputs"], events["overload"], module, events["flops"], events["line"], own_kind,
                               step, stack, module_call, device, index, plain])
        inputs = [_inputs_text(arguments) for arguments in trace.inputs]
        stacks = {number: self._stack_text(number) for number in np.unique(stack).tolist() if number != -1}
        tails = []
        for row in rows.tolist():
            parts = ['"Record function id":0,'] if plain[row] == 2 and not self.numbered else []
            if module_call[row] >= 0:
                digits = _DIGITS.search(trace.names[module_call[row]])
                parts.append(f'"Python module id":{digits[1] if digits else 0},')
            if events["inputs"][row] >= 0:
                parts.append(inputs[events["inputs"][row]])
            if events["overload"][row] > 0:
                parts.append(f'"{words.OWN_OVERLOAD}":{self.names[events["overload"][row]]},')
            if module[row] >= 0:
                parts.append(f'"{words.OWN_MODULE}":{self.names[module[row]]},')
            for key, value, absent in ((words.OWN_FLOPS, events["flops"], -1), (words.OWN_KIND, own_kind, -1),
                                       (words.OWN_STEP, step, -1), (words.OWN_DEVICE, device, -1),
                                       (words.OWN_DEVICE_INDEX, index, -1), (words.OWN_LINE, events["line"], 0)):
                if value[row] != absent:
                    parts.append(f'"{key}":{value[row]},')
            if stack[row] != -1:
                parts.append(stacks[int(stack[row])])
            tails.append("".join(parts).encode())
        return code, tails

    def _own_stacks(self) -> np.ndarray:
        """The stack to state for each event: -1 if Python events give it, -2 for "there is none"."""
        trace, own = self.trace, self.trace.events["stack"].astype(np.int64)
        known = derived.Stacks()
        numbers = known.take(trace)
        told = derived.stacks(trace.events, trace.names, known)
        if not (told >= 0).any():
            return own
        return np.where(numbers[own] == told, -1, np.where(own < 0, -2, own))

    def _stack_text(self, number: int) -> str:
        frames = self.trace.stack(number)
        line = ";".join(frame_text(frame) for frame in frames)
        result = f'"{words.OWN_STACK}":{text(line)},'
        if frames and (not line or parse_stack(line) != frames):
            result += f'"{words.OWN_FRAMES}":{text([[f.file, f.line, f.function] for f in frames])},'
        return result


def _scatter(count: int, groups: Sequence[tuple[np.ndarray, list[bytes]]]) -> list[bytes]:
    """Texts of several groups of rows, back in the order of the rows; b"" for rows in no group."""
    if len(groups) == 1 and len(groups[0][1]) == count:
        return groups[0][1]
    result = np.full(count, b"", object)
    for mask, texts in groups:
        result[mask] = texts
    return result.tolist()


def _inputs_text(arguments: tuple[object, ...]) -> str:
    described = words.describe_inputs(arguments)
    result = text(described)[1:-1] + ","
    if isinstance(arguments, Arguments) and arguments.named:
        named = {key: "None" if isinstance(value, str) and '"' in value else value  # as PyTorch writes such text
                 for key, value in arguments.named.items() if _is_writable(key, value)}
        result = text(named)[1:-1] + "," + result if named else result
    if repr(canonical(words.parse_inputs(described))) != repr(canonical(arguments)):
        result += f'"{words.OWN_INPUTS}":{text(encode_input(arguments))},'
    return result


def _is_writable(key: str, value: object) -> bool:
    """Whether PyTorch's file has a keyword value: of lists only those of text, and streams by number."""
    if key == "stream":
        return type(value) is int
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (bool, int, float, str))


def memory_chunks(trace: Trace, base_ns: int, lanes: Sequence[ThreadInfo]) -> Iterator[bytes]:
    """All memory changes as instants, one per line, each followed by a comma."""
    heads = [
        f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{lane.pid},"tid":{lane.tid},"ts":'
        for lane in lanes
    ]
    after = _AFTER_INSTANT
    memory = trace.optional("memory")
    for low in range(0, len(memory["time_ns"]), _CHUNK_ROWS):
        part = {key: column[low:low + _CHUNK_ROWS] for key, column in memory.items()}
        us, rest = np.divmod(part["time_ns"] + (trace.epoch_ns - base_ns), 1000)
        columns = ("thread", "reserved_bytes", "total_bytes", "size_bytes", "device_index", "device", "address")
        yield "".join([
            f'{heads[lane]}{t}{after[t_rest]}"Total Reserved":{reserved},"Total Allocated":{total},"Bytes":{size},'
            f'"Device Id":{index},"Device Type":{device},"Addr":{address},'
            f'{stated}"finished":false,"Ev Idx":{number}}}}},\n'
            for t, t_rest, lane, reserved, total, size, index, device, address, stated, number in zip(
                us.tolist(), rest.tolist(), *(part[key].tolist() for key in columns),
                [f'"{words.OWN_LINE}":{line},' if line else "" for line in part["line"].tolist()],
                range(len(trace) + low, len(trace) + low + len(us)), strict=True)
        ]).encode()


def failure_lines(trace: Trace, base_ns: int, lanes: Sequence[ThreadInfo]) -> bytes:
    """All failed allocations as instants, one per line, each followed by a comma. There are few, if any."""
    result = []
    columns = ("time_ns", "thread", "reserved_bytes", "total_bytes", "size_bytes", "device_index", "device")
    first = len(trace) + len(trace.optional("memory")["time_ns"])
    failures = trace.optional("failures")
    rows = zip(*(failures[key].tolist() for key in columns), strict=True)
    for number, (time, lane, reserved, total, size, index, device) in enumerate(rows, start=first):
        us, rest = divmod(time + trace.epoch_ns - base_ns, 1000)
        result.append(
            f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[OutOfMemory]","pid":{lanes[lane].pid},'
            f'"tid":{lanes[lane].tid},"ts":{us}{_AFTER_INSTANT[rest]}"Total Reserved":{reserved},'
            f'"Total Allocated":{total},"Bytes":{size},"Device Id":{index},"Device Type":{device},"finished":false,'
            f'"Ev Idx":{number}}}}},\n')
    return "".join(result).encode()
