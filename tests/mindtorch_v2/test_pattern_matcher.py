"""Patterns of slow programs: on traces made by hand, and what a report keeps and says."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as mt
from mindtorch_v2.profiler import _pattern_matcher as patterns
from mindtorch_v2.profiler import _utils
from mindtorch_v2.profiler.result import ProfilerResult
from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.trace import TensorInput, ThreadInfo

NPU = 20
VECTOR = TensorInput((4,), "float32", (1,))


def finished(build: TraceBuilder) -> Any:
    """What a pattern takes of a profiler, around a trace."""
    result = ProfilerResult(build.finish())
    return SimpleNamespace(profiler=SimpleNamespace(kineto_results=result), with_stack=True, record_shapes=True)


def moved_to_a_device(fill: str) -> Any:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(pid=1, tid=1))
    for name, start, end, inputs in [
            ("aten::ones", 0, 10, None), ("aten::empty", 1, 3, None), (fill, 4, 8, (VECTOR, 1)),
            ("aten::to", 20, 40, (VECTOR,)), ("aten::_to_copy", 21, 39, (VECTOR,)),
            ("aten::empty_strided", 22, 25, None), ("aten::copy_", 26, 38, (VECTOR, VECTOR, False))]:
        build.add(name=name, kind=Kind.OP, start_ns=start, end_ns=end, thread=main, inputs=inputs)
    build.add_row("memory", time_ns=2, thread=main, size_bytes=16, address=100, total_bytes=16)
    build.add_row("memory", time_ns=23, thread=main, size_bytes=16, address=200, total_bytes=16, device=NPU,
                  device_index=0)
    build.add_columns("uses", {
        "thread": np.full(2, main), "time_ns": np.array([26, 26]),
        "argument": np.array([0, 1]), "address": np.array([200, 100]), "size_bytes": np.array([16, 16])})
    return finished(build)


@pytest.mark.parametrize(("fill", "count"), [("aten::fill_", 1), ("aten::uniform_", 1), ("aten::neg", 0)])
def test_filled_here_and_moved_there(fill: str, count: int) -> None:
    found = patterns.ExtraCUDACopyPattern(moved_to_a_device(fill)).matched_events()
    assert [event.name for event in found] == ["aten::to"] * count


def test_neighbours() -> None:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(pid=1, tid=1))
    for name, start, end in [("a.py(3): f", 0, 50), ("x", 1, 10), ("y", 11, 20), ("z", 21, 30), ("last", 60, 70)]:
        kind = Kind.PYTHON if "py" in name else Kind.SCOPE
        build.add(name=name, kind=kind, start_ns=start, end_ns=end, thread=main)
    pattern = patterns.NamePattern(finished(build), "y")
    y, = pattern.matched_events()
    assert [[event.name for event in side] for side in pattern.siblings_of(y)] == [["x"], ["z"]]
    before, after = pattern.prev_of(y), pattern.next_of(y)
    assert before is not None
    assert after is not None
    assert (before.name, after.name) == ("x", "z")
    assert pattern.prev_of(before) is None
    assert pattern.root_of(y).name == "a.py(3): f"
    found = pattern.go_up_until(y, lambda event: event.name.startswith("a"))
    assert found is pattern.root_of(y)
    assert pattern.go_up_until(y, lambda event: False) is pattern.root_of(y)
    assert patterns.source_code_location(y) == "a.py:3"
    last, = patterns.NamePattern(finished(build), "last").matched_events()
    assert patterns.source_code_location(last) == "No source code location found"


def test_pattern_must_say_what_it_matches() -> None:
    with mt.profiler.profile() as prof:
        mt.ones(1)
    with pytest.raises(NotImplementedError, match="Pattern does not say"):
        patterns.Pattern(prof).matched_events()
    running = mt.profiler.profile()
    with running, pytest.raises(AssertionError, match="not finished"):
        patterns.NamePattern(running, "x")


def test_sizes_are_measured_if_asked() -> None:
    with mt.profiler.profile(with_stack=True, record_shapes=True) as prof:
        mt.ones(5, 6).half() @ mt.ones(6, 7).half()
    pattern = patterns.MatMulDimInFP16Pattern(prof, should_benchmark=True)
    events = pattern.matched_events()
    assert [event.name for event in events] == ["aten::mm"]
    factors = pattern.benchmark(events)
    assert list(factors) == [((5, 6), (6, 7))]
    assert factors[((5, 6), (6, 7))] > 0
    assert "Total Estimated Speedup" in pattern.summary(events)


def test_report_keeps_what_other_programs_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "torchtidy_report.json"
    report.write_text(json.dumps({"other.py": []}))
    rows = mt.ones(20, 2)

    def loop() -> None:
        for i in range(20):
            rows[i] = i

    with mt.profiler.profile(with_stack=True) as prof:
        loop()
    patterns.report_all_anti_patterns(prof, print_enable=False, json_report_dir=str(tmp_path))
    found = json.loads(report.read_text())
    assert found.pop("other.py") == []
    (file, (entry,)), = found.items()
    assert file.endswith("test_pattern_matcher.py")
    assert entry["line_number"] == loop.__code__.co_firstlineno
    assert entry["name"] == "For Loop Indexing Pattern"
    assert not capsys.readouterr().out
    patterns.report_all_anti_patterns(prof)
    assert "Vectorization recommended" in capsys.readouterr().out


def test_overlap_counts_once() -> None:
    event = SimpleNamespace(name="n", id=1, start_time_ns=10, end_time_ns=20)
    stretches = [_utils.Interval(12, 14), _utils.Interval(13, 16), _utils.Interval(1, 3), _utils.Interval(19, 90)]
    assert _utils.EventKey(event).intervals_overlap(stretches) == 5


def test_nothing_to_optimize_without_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    with mt.profiler.profile() as prof:
        mt.ones(2) + 1
    evaluation = _utils.BasicEvaluation(prof.profiler)
    assert evaluation.get_optimizable_events(2) == []
    assert "No events to optimize" in capsys.readouterr().out
    assert all(metrics.self_time_ns >= 0 for metrics in evaluation.metrics.values())
