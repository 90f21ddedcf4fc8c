"""Whatever a trace holds, its analyses give consistent numbers."""

from __future__ import annotations

import json

import orjson
from hypothesis import HealthCheck, Phase, given, settings
from strategies import traces

from length import examples
from mtprof.analysis import GROUPINGS, Analysis, compare
from mtprof.analysis.device.critical_path import critical_path
from mtprof.analysis.device.idle import idle_times
from mtprof.analysis.device.kernels import kernel_breakdown
from mtprof.analysis.device.launches import launch_statistics
from mtprof.analysis.device.queue import queue_lengths
from mtprof.analysis.device.temporal import temporal_breakdown
from mtprof.analysis.health import examine, repaired
from mtprof.analysis.merging import merged
from mtprof.analysis.trimming import trimmed
from mtprof.cli.summary import as_dict
from mtprof.export import folded, pprof, speedscope
from mtprof.recording import Recording
from mtprof.tables.check import check
from mtprof.views.call_paths import call_paths
from mtprof.views.step_summary import PARTS

RUN = settings(max_examples=examples(40), phases=[Phase.generate], suppress_health_check=list(HealthCheck))


@RUN
@given(traces())
def test_every_question_has_an_answer(trace):
    analysis = Analysis(Recording(trace))
    orjson.dumps(as_dict(analysis, 5, []), option=orjson.OPT_SERIALIZE_NUMPY, default=str)
    for by in GROUPINGS:
        rows = analysis.operators([by])
        assert sum(row.calls for row in rows) == sum(row.calls for row in analysis.operators())
        assert all(row.self_ns >= 0 for row in rows)
    json.dumps(analysis.advice.to_dict())
    assert analysis.advice.markdown().startswith("# Advice")
    assert analysis.headline
    for ask in (temporal_breakdown, idle_times, kernel_breakdown, queue_lengths, launch_statistics):
        json.dumps([row.to_dict() for row in ask(analysis)])
    for row in temporal_breakdown(analysis):
        assert row.total_ns == row.computation_ns + row.communication_ns + row.memory_ns + row.idle_ns
    for row in idle_times(analysis):
        assert sum(row.by_cause_ns.values()) == row.idle_ns
    path = critical_path(analysis)
    assert sum(path.by_lane_ns.values()) == path.total_ns
    assert compare(analysis, analysis).summary


@RUN
@given(traces())
def test_parts_of_steps_add_up(trace):
    analysis = Analysis(Recording(trace))
    for row in analysis.breakdown.rows:
        assert abs(sum(row.part_us(part) for part in PARTS) - row.wall_us) < 1e-3
    for peak in analysis.memory_peaks:
        assert peak.peak_bytes >= peak.low_bytes


@RUN
@given(traces(), traces())
def test_traces_that_were_mended_trimmed_or_joined_keep_the_rules(one, other):
    examine(one)
    check(repaired(one)[0])
    middle = (one.start_ns + one.end_ns) // 2
    check(trimmed(one, one.start_ns, middle))
    if one.epoch_ns and other.epoch_ns:
        joined, _ = merged([one, other])
        assert len(joined) == len(one) + len(other)
        check(joined)


@RUN
@given(traces())
def test_paths_are_trees_and_can_be_written(trace):
    for by_module in (False, True):
        paths = call_paths(trace, by_module=by_module)
        assert (paths.parent < range(len(paths))).all()
        assert (paths.self_ns >= 0).all()
    for line in folded.lines(trace):
        assert line.rsplit(b" ", 1)[1].strip().isdigit()
        assert line.count(b"\n") == 1
    assert json.loads(speedscope.document(trace))["profiles"] is not None
    assert pprof.document(trace)
