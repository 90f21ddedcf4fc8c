"""Traces that are large, deep, crossing or damaged: read in time proportional to their size, or refused by name."""

from __future__ import annotations

import json
import pathlib
import threading
from collections.abc import Iterable
from typing import Any

from ..registry import ANY, case
from ..tools import grows_linearly, peak_mb, raises


def _write(path: pathlib.Path, events: Iterable[dict[str, Any]], **top: Any) -> pathlib.Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events), "traceName": "t", **top}))
    return path


def _op(ts: float, dur: float, tid: int = 1, name: str = "aten::add", cat: str = "cpu_op", **args: Any
        ) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def _read_everything(path: pathlib.Path) -> None:
    import mtprof

    recording = mtprof.load(path)
    recording.events()
    recording.key_averages().table()


@case(recorders=ANY, seconds=120, quick=False)
def many_threads(directory: pathlib.Path) -> None:
    """A trace of many threads is read in time proportional to their number."""
    def work(count: int) -> None:
        _read_everything(_write(directory / "t.json", (_op(n, 1, n) for n in range(count))))

    grows_linearly(work, 2000)


@case(recorders=ANY, seconds=120, quick=False)
def crossing_events(directory: pathlib.Path) -> None:
    """Events that cross each other are read in time proportional to their number."""
    def work(count: int) -> None:
        _read_everything(_write(directory / "t.json", (_op(n, count) for n in range(count))))

    grows_linearly(work, 4000)


@case(recorders=ANY, seconds=120, quick=False)
def blank_lines(directory: pathlib.Path) -> None:
    """Blank lines between events cost no more than their bytes."""
    def work(count: int) -> None:
        path = directory / "t.json"
        rows = ",".join(json.dumps(_op(n, 1)) + "\n" * (count // 10) for n in range(10))
        path.write_text('{"traceEvents": [\n' + "\n" * count + rows + "\n" * count + ']\n' + "\n" * count + "}")
        _read_everything(path)

    grows_linearly(work, 16_000)


@case(recorders=ANY, seconds=120, quick=False)
def nested_events(directory: pathlib.Path) -> None:
    """Events inside events, thousands deep, are read in time proportional to their number."""
    def work(count: int) -> None:
        _read_everything(_write(directory / "t.json", (_op(n, 2 * (count - n)) for n in range(count))))

    grows_linearly(work, 2000)


@case(recorders=ANY, seconds=120, quick=False)
def nested_python_functions(directory: pathlib.Path) -> None:
    """Python calls inside each other are read in time proportional to their number."""
    def work(count: int) -> None:
        rows = (_op(n, 2 * (count - n), name=f"file.py({n % 50}): f", cat="python_function",
                    **{"Python id": n + 1, "Python parent id": n or None}) for n in range(count))
        _read_everything(_write(directory / "t.json", rows))

    grows_linearly(work, 1500)


@case(seconds=120, quick=False)
def recording_many_threads(directory: pathlib.Path) -> None:
    """Recording threads that come and go takes time proportional to their number."""
    import mindtorch_v2 as torch

    def work(count: int) -> None:
        with torch.profiler.profile() as prof:
            for _ in range(count):
                thread = threading.Thread(target=lambda: torch.ones(1))
                thread.start()
                thread.join()
        assert sum(event.name == "aten::ones" for event in prof.events()) == count

    grows_linearly(work, 250)


@case(seconds=120, quick=False)
def recording_deep_scopes(directory: pathlib.Path) -> None:
    """Deep scopes with memory take time proportional to their number."""
    import contextlib

    import mindtorch_v2 as torch

    def work(count: int) -> None:
        with torch.profiler.profile(profile_memory=True) as prof, contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(torch.profiler.record_function("scope"))
                torch.ones(1)
        prof.key_averages().table()
        prof.export_chrome_trace(directory / "t.json")

    grows_linearly(work, 1000)


@case(recorders=ANY, seconds=120, memory_gb=12.0)
def a_million_events(directory: pathlib.Path) -> None:
    """Reading a million events back takes a bounded multiple of the columns' size."""
    import numpy as np

    import mindtorch_v2 as torch
    import mtprof

    x = torch.ones(1)
    with torch.profiler.profile() as prof:
        for _ in range(250_000):
            x + 1
    prof.save(directory / "t.mtp")
    prof.export_chrome_trace(directory / "t.json")
    columns = sum(np.asarray(column).nbytes for table in prof.trace.tables.values() for column in table.values()) / 1e6
    del prof
    for name, most in (("t.mtp", 12), ("t.json", 40)):
        before = peak_mb()
        recording = mtprof.load(directory / name)
        recording.key_averages().table()
        assert peak_mb() - before < most * columns + 200, (name, peak_mb() - before, columns)


@case(recorders=ANY)
def numbers_that_do_not_fit(directory: pathlib.Path) -> None:
    """Times and counts that do not fit into 64 bits are refused by name; nothing wraps silently."""
    import mtprof

    limit = 2 ** 63
    for ts in (limit // 1000 + 1, limit, 1e300, -1e300, 1 << 70, float("nan"), float("inf"), "x", None, [], True, {}):
        path = _write(directory / "t.json", [_op(1, 1), _op(ts, 1)])
        try:
            recording = mtprof.load(path)
        except ValueError as error:
            assert "t.json" in str(error), error
            continue
        starts = [event.time_range.start for event in recording.events()]
        assert all(abs(start) < 1e16 for start in starts), (ts, starts)
        assert not isinstance(ts, (int, float)) or isinstance(ts, bool) or abs(ts) < limit / 1000, (ts, starts)
    for key in ("Sequence number", "External id", "Fwd thread id", "correlation", "device", "FLOPs", "Step", "Kind"):
        for value in (1 << 63, 1 << 70, -1 << 70, "x", [], {}, 1.5, None, True):
            path = _write(directory / "t.json", [_op(1, 1, **{key: value})])
            try:
                mtprof.load(path).events()
            except ValueError as error:
                assert "t.json" in str(error), (key, value, error)


@case(recorders=ANY, seconds=120)
def rows_of_any_form(directory: pathlib.Path) -> None:
    """Whatever JSON stands where an event should be, the error is a ValueError that names the file."""
    import mtprof

    values: list[Any] = [None, True, 3, -1, 1.5, "text", "", [], {}, [1], {"a": 1}, 1 << 70, "\ud800", "\0"]
    good = _op(1.0, 2.0, **{"Sequence number": 3, "Input Dims": [[2], []], "Input type": ["float", ""]})
    for key in (*good, "extra"):
        for value in values:
            for row in ({**good, key: value}, {k: v for k, v in good.items() if k != key}):
                path = directory / "t.json"
                path.write_text(json.dumps({"traceEvents": [good, row]}))
                try:
                    mtprof.load(path).key_averages().table()
                except ValueError as error:
                    assert "t.json" in str(error), (key, value, error)
    for document in ([], {}, 3, "x", None, {"traceEvents": {}}, {"traceEvents": [[]]}, {"traceEvents": [3]}):
        path.write_text(json.dumps(document))
        if document != []:
            raises(ValueError, lambda: mtprof.load(path), "t.json")


@case(recorders=ANY, seconds=180)
def every_byte_of_a_trace_changed(directory: pathlib.Path) -> None:
    """A trace file with bytes changed or cut off gives a ValueError that names it, or a trace that can be shown."""
    import random
    import warnings

    import mindtorch_v2 as torch
    import mtprof

    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        torch.ones(2).requires_grad_().mul(2).sum().backward()
    chance = random.Random(1)
    warnings.simplefilter("ignore")
    for name in ("t.json", "t.json.gz", "t.mtp"):
        (prof.save if name.endswith("mtp") else prof.export_chrome_trace)(directory / name)
        raw = (directory / name).read_bytes()
        path = directory / f"changed-{name}"
        for number in range(250):
            changed = bytearray(raw)
            if number % 5 == 0:
                del changed[chance.randrange(len(raw)):]
            else:
                for _ in range(chance.choice((1, 1, 4, 30))):
                    changed[chance.randrange(len(raw))] = chance.randrange(256)
            path.write_bytes(changed)
            try:
                mtprof.load(path).key_averages().table()
            except ValueError as error:
                assert path.name in str(error), (name, number, error)
