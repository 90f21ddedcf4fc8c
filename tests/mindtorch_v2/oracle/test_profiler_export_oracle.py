"""Chrome traces against PyTorch's own: a file that PyTorch wrote, read and written again, says the same."""

from __future__ import annotations

import functools
import json
import pathlib
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from torch.autograd.profiler_util import EventList  # noqa: E402

from mtprof.export import chrome, event_list_chrome, stacks, tabular  # noqa: E402
from mtprof.schema import KINETO_TABLES, Kind  # noqa: E402
from mtprof.store import kineto  # noqa: E402
from mtprof.tables.check import check  # noqa: E402
from mtprof.tables.compare import assert_traces_equal  # noqa: E402

# Numbers that only tie events of one file together.
assert_same_file = functools.partial(assert_traces_equal, tables=KINETO_TABLES)
IDENTITIES = {"External id", "Ev Idx", "Python id", "Python parent id"}
Event = dict[str, Any]


def train_step(model: Any, optimizer: Any) -> None:
    with torch.profiler.record_function("forward"):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(3, 4)), torch.tensor([0, 1, 0]))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cat([torch.ones(2), torch.full((3,), 0.1)]).to(torch.bfloat16).mul(2j)


def record(**options: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as profile:
        for _ in range(4):
            train_step(model, optimizer)
            profile.step()
        worker = threading.Thread(target=lambda: torch.ones(3).add(1))
        worker.start()
        worker.join()
    return profile


OPTIONS = {
    "plain": {},
    "all": {"record_shapes": True, "profile_memory": True, "with_flops": True, "with_stack": True},
    "modules": {"with_modules": True, "with_stack": True, "record_shapes": True},
    "schedule": {"schedule": torch.profiler.schedule(wait=1, warmup=1, active=2), "record_shapes": True},
}


@pytest.fixture(params=list(OPTIONS), scope="module")
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, ...]:
    folder = tmp_path_factory.mktemp(request.param)
    options = dict(OPTIONS[request.param])
    if "schedule" in options:
        options["on_trace_ready"] = lambda profile: profile.export_chrome_trace(str(folder / "theirs.json"))
        record(**options)
    else:
        record(**options).export_chrome_trace(str(folder / "theirs.json"))
    chrome.write(check(kineto.read(folder / "theirs.json")), folder / "ours.json")
    return folder / "theirs.json", folder / "ours.json"


def load(files: tuple[pathlib.Path, ...]) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in files]


def test_top_level_is_the_same(files: tuple[pathlib.Path, ...]) -> None:
    theirs, ours = load(files)
    assert set(theirs) == set(ours)
    for key in set(theirs) - {"traceEvents", "traceName"}:
        assert theirs[key] == ours[key], key


def test_keys_of_each_phase_and_category_are_the_same(files: tuple[pathlib.Path, ...]) -> None:
    def keys(document: dict[str, Any]) -> dict[tuple[Any, ...], set[tuple[Any, ...]]]:
        found: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
        for event in document["traceEvents"]:
            place = (event["ph"], event.get("cat"), event["name"] if event["ph"] == "M" else "")
            found.setdefault(place, set()).add((tuple(sorted(event)), tuple(sorted(event.get("args", ())))))
        return found

    theirs, ours = load(files)
    assert keys(theirs) == keys(ours)


def test_fields_of_all_events_are_the_same(files: tuple[pathlib.Path, ...]) -> None:
    def facts(document: dict[str, Any]) -> list[str]:
        return sorted(
            json.dumps({**event, "id": 0, "args": {
                key: value for key, value in (event.get("args") or {}).items() if key not in IDENTITIES}},
                sort_keys=True)
            # PyTorch names threads more than once, and its span ends a little before the window that it ends in.
            for event in document["traceEvents"] if event["ph"] != "M" and event.get("cat") != "Trace")

    theirs, ours = load(files)
    assert facts(theirs) == facts(ours)
    named = [{json.dumps({**event, "ts": 0}, sort_keys=True) for event in document["traceEvents"]
              if event["ph"] == "M"} for document in (theirs, ours)]
    # A thread that only memory changes happened on has no name in PyTorch's file.
    assert named[0] <= named[1]


def test_arrows_tie_the_same_events(files: tuple[pathlib.Path, ...]) -> None:
    def arrows(document: dict[str, Any]) -> set[tuple[float, float]]:
        ends: dict[str, dict[int, float]] = {"s": {}, "f": {}}
        for event in document["traceEvents"]:
            if event.get("cat") == "fwdbwd":
                ends[event["ph"]][event["id"]] = event["ts"]
        return {(ends["s"][number], ends["f"][number]) for number in ends["s"] | ends["f"]}

    theirs, ours = load(files)
    assert arrows(theirs)
    assert arrows(theirs) == arrows(ours)


def test_python_calls_have_the_same_callers(files: tuple[pathlib.Path, ...]) -> None:
    def callers(document: dict[str, Any]) -> list[tuple[Any, ...]]:
        calls = [event for event in document["traceEvents"] if event.get("cat") == "python_function"]
        by_id = {event["args"]["Python id"]: event for event in calls}
        # A caller that PyTorch numbers but does not write is as good as none.
        above = [by_id.get(event["args"]["Python parent id"], {}) for event in calls]
        return sorted((event["ts"], event["name"], up.get("ts", 0), up.get("name", ""))
                      for event, up in zip(calls, above, strict=True))

    theirs, ours = load(files)
    assert callers(theirs) == callers(ours)


def test_both_files_read_equal(files: tuple[pathlib.Path, ...]) -> None:
    assert_same_file(*(check(kineto.read(path)) for path in files))


def test_reader_agrees_with_pytorchs_own_events(tmp_path: pathlib.Path) -> None:
    profile = record(record_shapes=True)
    profile.export_chrome_trace(str(tmp_path / "theirs.json"))
    trace = kineto.read(tmp_path / "theirs.json")
    theirs = sorted((event.name, event.sequence_nr, event.scope, event.cpu_parent.name if event.cpu_parent else "")
                    for event in profile.events())
    scopes = {Kind.OP: 0, Kind.BACKWARD: 0, Kind.BACKWARD_FUNCTION: 1, Kind.SCOPE: 7, Kind.STEP: 7}
    events = trace.events
    ours = sorted(
        (trace.names[events["name"][row]], int(events["sequence"][row]), scopes[Kind(int(events["kind"][row]))],
         trace.names[events["name"][events["parent"][row]]] if events["parent"][row] >= 0 else "")
        for row in range(len(trace)))
    assert theirs == ours


def test_event_list_file_is_the_same(tmp_path: pathlib.Path) -> None:
    events = record().events()
    events.export_chrome_trace(str(tmp_path / "theirs.json"))
    event_list_chrome.write(events, tmp_path / "ours.json")
    theirs, ours = (json.loads((tmp_path / name).read_bytes()) for name in ("theirs.json", "ours.json"))
    assert theirs == ours
    EventList([]).export_chrome_trace(str(tmp_path / "theirs.json"))
    event_list_chrome.write([], tmp_path / "ours.json")
    assert json.loads((tmp_path / "theirs.json").read_bytes()) == json.loads((tmp_path / "ours.json").read_bytes())


def test_stacks_file_is_the_same_but_for_what_ran(tmp_path: pathlib.Path) -> None:
    """Our lines end with the event's own name."""
    events = EventList([event for event in record().events() if event.self_cpu_time_total > 1])
    for number, event in enumerate(events):
        event.stack = [f"file {number}.py(3): a;b\t\nc", "outer"] if number % 3 else []
    assert events.supported_export_stacks_metrics() == stacks.METRICS
    for metric in stacks.METRICS:
        events.export_stacks(str(tmp_path / "theirs"), metric)
        stacks.write(events, tmp_path / "ours", metric)
        ours_lines = [line.rpartition(" ") for line in (tmp_path / "ours").read_text().splitlines()]
        without = [f"{frames.rpartition(';')[0]} {time}" for frames, _, time in ours_lines]
        assert (tmp_path / "theirs").read_text().splitlines() == without
        keys = {event.key.replace(" ", "_") for event in events}
        assert all(frames.rpartition(";")[2] in keys for frames, _, _ in ours_lines)
    with pytest.raises(ValueError, match="metric should be") as theirs:
        events.export_stacks(str(tmp_path / "theirs"), "count")
    with pytest.raises(ValueError, match="metric should be") as ours:
        stacks.write(events, tmp_path / "ours", "count")
    assert str(theirs.value) == str(ours.value)


def test_tables_of_pytorchs_own_lists(tmp_path: pathlib.Path) -> None:
    profile = record(record_shapes=True, with_flops=True)
    for rows in (profile.events(), profile.key_averages()):
        records = json.loads(tabular.to_json(rows) or "")
        assert [record["self_cpu_time_total"] for record in records] == [row.self_cpu_time_total for row in rows]
        known = {record.get("name", record.get("key")) for record in records if record["flops"] is not None}
        assert "aten::addmm" in known
        assert "aten::t" not in known
    event_list_chrome.write(profile.key_averages(), tmp_path / "averages.json")
    events = json.loads((tmp_path / "averages.json").read_bytes())["traceEvents"]
    assert [event["name"] for event in events] == [row.key for row in profile.key_averages()]
