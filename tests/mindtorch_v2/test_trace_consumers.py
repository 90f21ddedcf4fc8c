"""Programs that read Chrome traces can read ours: the rules of the format, and Holistic Trace Analysis."""

from __future__ import annotations

import gzip
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as mt
from mindtorch_v2.profiler import profile, record_function, schedule

Event = dict[str, Any]

REQUIRED = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "i": {"name", "pid", "tid", "ts", "s"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "M": {"name", "pid", "tid", "args"},
}
METADATA = {
    "process_name": ("name", str), "process_labels": ("labels", str), "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str), "thread_sort_index": ("sort_index", int),
}


def nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def event_complaints(event: Event) -> Iterator[str]:
    """What is wrong with an event on its own."""
    phase = event.get("ph")
    if phase not in REQUIRED:
        yield f"unknown phase {phase!r}"
        return
    missing = REQUIRED[phase] - event.keys()
    if missing:
        yield f"no {', '.join(sorted(missing))}"
        return
    if not isinstance(event["name"], str):
        yield "name is not text"
    yield from (f"{key} is neither integer nor text" for key in ("pid", "tid") if type(event[key]) not in (int, str))
    yield from (f"{key} is not a finite number" for key in ("ts", "dur") if key in event and not is_number(event[key]))
    if not isinstance(event.get("args", {}), dict):
        yield "args is not an object"
    elif phase == "M":
        key, kind = METADATA.get(event["name"], ("", object))
        if type(event["args"].get(key)) is not kind:
            yield f"args of {event['name']} are {event['args']}"
    if phase == "X" and is_number(event["dur"]) and event["dur"] < 0:
        yield "dur is negative"
    if phase == "i" and event["s"] not in ("g", "p", "t"):
        yield f"unknown scope {event['s']!r}"


def slices_by_thread(events: list[Event]) -> dict[tuple[Any, Any], list[tuple[int, int, str]]]:
    """Start, end and name of the complete events, parents before children."""
    threads: dict[tuple[Any, Any], list[tuple[int, int, str]]] = {}
    for event in events:
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            span = (start, start + nanoseconds(event["dur"]), event["name"])
            threads.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in threads.values():
        spans.sort(key=lambda span: (span[0], -span[1]))
    return threads


def nesting_complaints(events: list[Event]) -> Iterator[str]:
    """Slices of one thread that overlap without one lying within the other: viewers drop or misplace them."""
    for spans in slices_by_thread(events).values():
        around: list[tuple[int, int, str]] = []
        for start, end, name in spans:
            while around and around[-1][1] <= start:
                around.pop()
            if around and end > around[-1][1]:
                yield f"{name} ends after {around[-1][2]}, in which it began"
            around.append((start, end, name))


def flow_complaints(events: list[Event]) -> Iterator[str]:
    """Arrows that lack an end, go back in time, or do not touch a slice."""
    threads = slices_by_thread(events)
    ends: dict[str, dict[tuple[str, Any], Event]] = {"s": {}, "f": {}}
    for event in events:
        if event["ph"] in ends:
            key = (event["cat"], event["id"])
            if key in ends[event["ph"]]:
                yield f"arrow {key} has two of {event['ph']}"
            ends[event["ph"]][key] = event
            time = nanoseconds(event["ts"])
            if not any(start <= time <= end for start, end, _ in threads.get((event["pid"], event["tid"]), [])):
                yield f"arrow {key} touches no slice"
    for key in ends["s"].keys() ^ ends["f"].keys():
        yield f"arrow {key} has one end"
    for key in ends["s"].keys() & ends["f"].keys():
        if ends["s"][key]["ts"] > ends["f"][key]["ts"]:
            yield f"arrow {key} goes back in time"


def complaints(events: list[Event]) -> list[str]:
    """All that is wrong with a list of events."""
    alone = [f"{complaint}: {event}" for event in events for complaint in event_complaints(event)]
    return alone or [*nesting_complaints(events), *flow_complaints(events)]


def read(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, parse_constant=refuse)


# -- the rules ---------------------------------------------------------------------------------------------------------


def test_trace_follows_the_rules(training_trace: Path) -> None:
    events = read(training_trace)["traceEvents"]
    assert complaints(events) == []
    assert {"X", "s", "f", "M", "i"} == {event["ph"] for event in events}
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] != "M" and isinstance(e["pid"], int)}
    assert used == named
    assert len(named) == 2
    names = Counter(event["name"] for event in events)
    assert (names["ProfilerStep#2"], names["ProfilerStep#3"], names["aten::addmm"], names["aside"]) == (1, 1, 4, 2)


def test_list_of_events_follows_the_rules(tmp_path: Path) -> None:
    with profile() as recording:
        mt.ones(3).mul(2).sum()
    recording.events().export_chrome_trace(str(tmp_path / "events.json"))
    events = json.loads((tmp_path / "events.json").read_bytes())
    assert "aten::mul" in {event["name"] for event in events}
    # This older layout has no categories; viewers do not need them.
    assert complaints([{"cat": "", **event} for event in events]) == []


SLICE = {"ph": "X", "name": "a", "cat": "c", "pid": 1, "tid": 1, "ts": 0.0, "dur": 10.0}
ARROW = {"ph": "s", "name": "n", "cat": "c", "id": 1, "pid": 1, "tid": 1, "ts": 1.0}
HEAD = {**ARROW, "ph": "f", "bp": "e", "ts": 2.0}


@pytest.mark.parametrize(("events", "complaint"), [
    ([SLICE, {**SLICE, "ts": 10.0}, {**SLICE, "ts": 2.0, "dur": 3.0}, ARROW, HEAD], None),
    ([{**SLICE, "ph": "Q"}], "unknown phase"),
    ([{key: value for key, value in SLICE.items() if key != "dur"}], "no dur"),
    ([{**SLICE, "ts": math.nan}], "ts is not a finite number"),
    ([{**SLICE, "ts": "1"}], "ts is not a finite number"),
    ([{**SLICE, "dur": -1}], "dur is negative"),
    ([{**SLICE, "tid": None}], "tid is neither"),
    ([{**SLICE, "args": []}], "args is not an object"),
    ([{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {}}], "args of thread_name"),
    ([{"ph": "i", "name": "x", "pid": 1, "tid": 1, "ts": 1, "s": "thread"}], "unknown scope"),
    ([SLICE, {**SLICE, "name": "b", "ts": 5.0}], "b ends after a"),
    ([SLICE, ARROW], "has one end"),
    ([SLICE, ARROW, {**HEAD, "ts": 0.5}], "goes back"),
    ([SLICE, ARROW, {**HEAD, "tid": 2}], "touches no slice"),
    ([SLICE, ARROW, ARROW, HEAD], "has two"),
])
def test_the_rules_find_faults(events: list[Event], complaint: str | None) -> None:
    found = complaints(events)
    if complaint is None:
        assert found == []
    else:
        assert len(found) == 1
        assert complaint in found[0]


def worker(begin: threading.Event, done: threading.Event, way: str) -> None:
    """Waits, then calls and opens scopes in turn."""

    def inside() -> None:
        with record_function("inside"):
            mt.ones(2)

    begin.wait()
    if way == "scope":
        with record_function("scope"):
            mt.ones(2)
    elif way == "call and scope":
        inside()
    elif way == "scope and call and scope":
        with record_function("scope"):
            inside()
            mt.ones(1)
    done.set()


@pytest.mark.parametrize("ran_ops", [True, False])
@pytest.mark.parametrize("way", ["scope", "call and scope", "scope and call and scope"])
def test_frames_of_an_older_thread_nest_with_its_scopes(tmp_path: Path, way: str, ran_ops: bool) -> None:
    begin, done, ready = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        if ran_ops:
            mt.ones(1)
        ready.set()
        worker(begin, done, way)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    mt.ones(2)
    with profile(with_stack=True) as recording:
        begin.set()
        done.wait()
        thread.join()
    recording.export_chrome_trace(tmp_path / "trace.json")
    events = read(tmp_path / "trace.json")["traceEvents"]
    assert complaints(events) == []
    [scope] = [event for event in events if event["name"] == ("scope" if way.startswith("scope") else "inside")]
    around = {event["name"].rpartition(": ")[2] for event in events if event.get("cat") == "python_function"
              and event["tid"] == scope["tid"] and event["ts"] <= scope["ts"]
              and scope["ts"] + scope["dur"] <= event["ts"] + event["dur"]}
    assert {"work", "worker"} <= around


def test_memory_belongs_to_the_thread_that_allocated_it(tmp_path: Path) -> None:
    identities = []

    def work() -> None:
        identities.append(threading.get_ident())
        mt.ones(1000)

    with profile(profile_memory=True) as recording:
        for _ in range(5):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            time.sleep(0.01)  # joined is not yet gone, and identities are free only then
    if len(set(identities)) == len(identities):
        pytest.skip("every thread got an identity of its own")
    recording.export_chrome_trace(tmp_path / "trace.json")
    events = read(tmp_path / "trace.json")["traceEvents"]
    workers = {e["tid"] for e in events if e["name"] == "aten::ones"}
    assert len(workers) == len(identities)
    allocations = Counter(e["tid"] for e in events if e["name"] == "[memory]" and e["args"]["Bytes"] == 4000)
    assert allocations == dict.fromkeys(workers, 1)


# -- Holistic Trace Analysis -------------------------------------------------------------------------------------------


@pytest.fixture
def analysis() -> Any:
    """The module hta.trace_analysis."""
    return pytest.importorskip("hta.trace_analysis", reason="HolisticTraceAnalysis is not installed")


def put(trace: Path, folder: Path, rank: int) -> None:
    """A copy of a trace as a job of several processes leaves it, with its rank as PyTorch writes that."""
    document = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 4}, **read(trace)}
    (folder / f"rank-{rank}.json.gz").write_bytes(gzip.compress(json.dumps(document, indent=1).encode()))


@pytest.mark.filterwarnings("ignore")  # it and its dependencies deprecate things of each other
def test_holistic_trace_analysis_finds_the_same_ops(training_trace: Path, analysis: Any, tmp_path: Path) -> None:
    put(training_trace, tmp_path, rank=3)
    found = analysis.TraceAnalysis(trace_dir=str(tmp_path), include_last_profiler_step=True)
    assert [int(step) for step in found.get_profiler_steps()] == [2, 3]
    assert list(found.t.traces) == [3]
    found.t.decode_symbol_ids(use_shorten_name=False)
    frame = found.t.get_trace(3)
    events = [e for e in read(training_trace)["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    assert Counter(zip(frame["s_cat"], frame["s_name"], frame["tid"])) == Counter(
        (e["cat"], e["name"], e["tid"]) for e in events)
    multiplications = frame[frame["s_name"] == "aten::addmm"]
    assert sorted(map(str, multiplications["input_dims"])) == sorted(
        str(e["args"]["Input Dims"]) for e in events if e["name"] == "aten::addmm")
    # It analyses devices; of a run on the CPU it must say that there was none, and not fail.
    kernel_types, kernels = found.get_gpu_kernel_breakdown(visualize=False)
    assert len(kernel_types) == len(kernels) == 0


@pytest.mark.filterwarnings("ignore")
def test_holistic_trace_analysis_finds_the_rank(analysis: Any, tmp_path: Path) -> None:
    with profile(schedule=schedule(wait=0, warmup=0, active=2)) as recording:
        for _ in range(2):
            mt.ones(2)
            recording.step()
        recording.add_metadata_json("distributedInfo", '{"backend": "gloo", "rank": 3, "world_size": 4}')
    recording.export_chrome_trace(tmp_path / "trace.json")
    found = analysis.TraceAnalysis(trace_dir=str(tmp_path), include_last_profiler_step=True)
    assert list(found.t.traces) == [3]
