"""Collections, refused allocations, trace_only and step summaries, against what real PyTorch does."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2
from mtprof.schema import Kind
from mtprof.store.kineto import read
from mtprof.views.step_summary import PARTS, step_summary

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

BOTH = pytest.mark.parametrize("runtime", [torch, mindtorch_v2], ids=["torch", "mindtorch_v2"])
HUGE = 10**15


def export(prof: Any, path: Path) -> list[dict[str, Any]]:
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


@BOTH
def test_collections(runtime: Any, tmp_path: Path) -> None:
    config = runtime.profiler._ExperimentalConfig(record_python_gc_info=True)
    gc.disable()
    try:
        with runtime.profiler.profile(with_stack=True, experimental_config=config) as prof:
            runtime.ones(2)
            gc.collect()
            with runtime.profiler.record_function("mine"):
                gc.collect(0)
    finally:
        gc.enable()
    found = [event for event in prof.events() if event.name == "Python GC"]
    facts = {(e.is_user_annotation, e.is_python_function, e.scope, e.id, e.activity_type) for e in found}
    assert len(found) == 2
    assert facts == {(False, False, 0, 0, "python_function")}
    assert [row.count for row in prof.key_averages() if row.key == "Python GC"] == [2]
    written = [event for event in export(prof, tmp_path / "trace.json") if event["name"] == "Python GC"]
    ours = {"Line", "collected", "generation"}
    assert [(event["ph"], event["cat"], set(event["args"]) - ours) for event in written] == [
        ("X", "python_function", {"Ev Idx"})] * 2
    assert (read(tmp_path / "trace.json").events["kind"] == Kind.GC).sum() == 2


@pytest.mark.parametrize("make", [
    lambda torch: torch.empty(HUGE),
    lambda torch: torch.zeros(HUGE, dtype=torch.float64),
    lambda torch: torch.ones(1).expand(HUGE).clone(),
    lambda torch: torch.arange(HUGE),
    lambda torch: torch.cat([torch.ones(1).expand(HUGE)] * 2),
    lambda torch: torch.nn.Linear(10**7, 10**8),
    lambda torch: torch.empty(2**62),
])
def test_errors_of_refused_allocations(make: Any) -> None:
    texts = []
    for runtime in (torch, mindtorch_v2):
        with pytest.raises(RuntimeError) as caught:
            make(runtime)
        assert type(caught.value) is RuntimeError
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_events_of_refused_allocations(tmp_path: Path) -> None:
    results = []
    for runtime in (torch, mindtorch_v2):
        with runtime.profiler.profile(profile_memory=True) as prof:
            kept = runtime.ones(1000)
            for size in (HUGE, 2 * HUGE):
                with pytest.raises(RuntimeError):
                    runtime.empty(size)
        del kept
        events = [(e.name, e.cpu_memory_usage, e.cpu_time_total) for e in prof.events() if e.name == "[OutOfMemory]"]
        rows = [(r.key, r.count, r.cpu_memory_usage) for r in prof.key_averages() if r.key == "[OutOfMemory]"]
        path = tmp_path / f"{runtime.__name__}.json"
        written = [event for event in export(prof, path) if event["name"] == "[OutOfMemory]"]
        # PyTorch's total goes on from one recording to the next; a number of the event is no fact about it.
        counted = dict.fromkeys(("Ev Idx", "Total Allocated"))
        facts = [(event["ph"], event["cat"], event["s"], {**event["args"], **counted}) for event in written]
        assert all(event["args"]["Total Allocated"] >= 4000 for event in written)
        assert read(path).failures["size_bytes"].tolist() == [4 * HUGE, 8 * HUGE]
        results.append((events, rows, facts))
    assert results[0] == results[1]


@BOTH
def test_trace_only(runtime: Any, tmp_path: Path) -> None:
    config = runtime.profiler._ExperimentalConfig(trace_only=True)
    with runtime.profiler.profile(experimental_config=config) as prof:
        runtime.ones(2)
    for ask in (prof.events, prof.key_averages):
        with pytest.raises(RuntimeError, match=r"^events\(\) is not available when trace_only=True in Experimental"
                                               r"Config. Use export_chrome_trace\(\) instead.$"):
            ask()
    assert "aten::ones" in {event["name"] for event in export(prof, tmp_path / "trace.json")}
    with pytest.warns(UserWarning, match="trace_only=True is incompatible with with_stack=True"):
        runtime.profiler.profile(experimental_config=config, with_stack=True)


@BOTH
@pytest.mark.parametrize("with_stack", [False, True])
def test_steps_of_a_training_run(runtime: Any, with_stack: bool, tmp_path: Path) -> None:
    """From a file of either: all parts exist and add up."""
    nn = runtime.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = runtime.optim.SGD(model.parameters(), lr=0.1)
    loader = runtime.utils.data.DataLoader(runtime.randn(12, 8), batch_size=2)
    path = tmp_path / "trace.json"
    with runtime.profiler.profile(
            schedule=runtime.profiler.schedule(wait=1, warmup=1, active=3, repeat=1), with_stack=with_stack,
            on_trace_ready=lambda prof: prof.export_chrome_trace(str(path))) as prof:
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            prof.step()
    summary = step_summary(read(path))
    assert [row.step for row in summary] == [2, 3, 4]
    for row in summary:
        assert all(row.part_us(part) > 0 for part in PARTS), row
        assert sum(round(1000 * row.part_us(part)) for part in PARTS) == round(1000 * row.wall_us)
        assert row.ops > 10
