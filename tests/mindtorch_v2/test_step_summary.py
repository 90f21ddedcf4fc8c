"""Steps split into data, forward, backward, optimizer and the rest: disjoint, and together the whole step."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from length import examples
from mindtorch_v2 import nn, optim
from mindtorch_v2.profiler import profile, record_function, schedule
from mindtorch_v2.utils.data import DataLoader, Dataset
from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.store.kineto import read
from mtprof.trace import ThreadInfo
from mtprof.views.step_summary import PARTS, step_summary

DATA = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NODE = "autograd::engine::evaluate_function: MulBackward0"
STEP = "Optimizer.step#SGD.step"
ZERO = "Optimizer.zero_grad#SGD.zero_grad"


class Slow(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((4,), float(index))


def train(prof, *, workers=0):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Slow(), batch_size=2, num_workers=workers):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        prof.step()


def made(*events, steps=((0, 1000),), end_ns=None):
    """A trace of `(name, kind, start, end)` events, in microseconds, and of steps."""
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 1))
    for number, (low, high) in enumerate(steps):
        build.add(name=f"ProfilerStep#{number + 5}", kind=Kind.STEP, start_ns=low * 1000, end_ns=high * 1000,
                  thread=main)
    for name, kind, low, high in events:
        build.add(name=name, kind=kind, start_ns=low * 1000, end_ns=high * 1000, thread=main)
    return build.finish(start_ns=0, end_ns=(end_ns or max([high for _, high in steps], default=1000)) * 1000)


def parts(row):
    return {part: row.part_us(part) for part in PARTS}


def check(summary):
    for row in summary:
        assert all(value >= 0 for value in parts(row).values())
        assert sum(round(value * 1000) for value in parts(row).values()) == round(row.wall_us * 1000)
        assert row.wall_us == 0 or sum(row.fractions.values()) == pytest.approx(1)
    return summary


class TestRules:
    def test_each_part(self):
        (row,) = check(step_summary(made(
            (DATA, Kind.SCOPE, 0, 100), ("aten::stack", Kind.OP, 50, 90),
            (ZERO, Kind.SCOPE, 110, 120), ("aten::zero_", Kind.OP, 112, 118),
            ("aten::mul", Kind.OP, 200, 260), ("aten::sum", Kind.OP, 270, 300),
            (NODE, Kind.BACKWARD, 400, 450), ("aten::mul", Kind.OP, 410, 440), (NODE, Kind.BACKWARD, 460, 500),
            (STEP, Kind.SCOPE, 600, 700), ("aten::add_", Kind.OP, 610, 690),
            ("aten::item", Kind.OP, 800, 820))))
        assert row.step == 5
        assert row.wall_us == 1000
        assert row.ops == 7
        assert parts(row) == {"data": 100, "forward": 90, "backward": 90, "optimizer": 110, "other": 610}

    def test_the_first_that_covers_a_moment_has_it(self):
        (row,) = check(step_summary(made(
            ("aten::mul", Kind.OP, 0, 500), (DATA, Kind.SCOPE, 100, 200), (NODE, Kind.BACKWARD, 150, 300),
            (STEP, Kind.SCOPE, 250, 400))))
        assert parts(row) == {"data": 100, "forward": 200, "backward": 100, "optimizer": 100, "other": 500}

    def test_modules_count_and_scopes_of_users_do_not(self):
        (row,) = check(step_summary(made(
            ("mine", Kind.SCOPE, 0, 900), ("nn.Module: Linear_0", Kind.MODULE, 100, 300),
            ("aten::linear", Kind.OP, 150, 250), ("file.py(3): train", Kind.PYTHON, 0, 1000))))
        assert parts(row)["forward"] == 200
        assert parts(row)["other"] == 800

    def test_without_backward_all_ops_are_forward(self):
        (row,) = step_summary(made(("aten::mul", Kind.OP, 10, 20), ("aten::item", Kind.OP, 900, 910)))
        assert parts(row)["forward"] == 20

    def test_several_backwards_in_a_step(self):
        (row,) = step_summary(made(
            ("aten::mul", Kind.OP, 10, 20), (NODE, Kind.BACKWARD, 30, 40), ("aten::mul", Kind.OP, 50, 60),
            (NODE, Kind.BACKWARD, 70, 80), ("aten::item", Kind.OP, 90, 95)))
        assert parts(row) == {"data": 0, "forward": 20, "backward": 20, "optimizer": 0, "other": 960}

    def test_an_event_across_two_steps_is_in_both(self):
        first, second = check(step_summary(made((DATA, Kind.SCOPE, 900, 1100), steps=[(0, 1000), (1000, 2000)])))
        assert first.data_us == second.data_us == 100

    def test_other_threads_do_not_count(self):
        build = TraceBuilder()
        main, other = build.thread(ThreadInfo(1, 1)), build.thread(ThreadInfo(2, 2))
        build.add(name="ProfilerStep#0", kind=Kind.STEP, start_ns=0, end_ns=1000, thread=main)
        build.add(name="aten::mul", kind=Kind.OP, start_ns=0, end_ns=500, thread=other)
        (row,) = step_summary(build.finish())
        assert row.forward_us == 0
        assert row.ops == 0

    def test_a_backward_on_another_thread_of_the_process(self):
        build = TraceBuilder()
        main, engine = build.thread(ThreadInfo(1, 1)), build.thread(ThreadInfo(1, 2))
        build.add(name="ProfilerStep#0", kind=Kind.STEP, start_ns=0, end_ns=1000_000, thread=main)
        build.add(name="aten::mul", kind=Kind.OP, start_ns=0, end_ns=100_000, thread=main)
        build.add(name=NODE, kind=Kind.BACKWARD, start_ns=200_000, end_ns=500_000, thread=engine)
        (row,) = step_summary(build.finish())
        assert row.backward_us == 300
        assert row.forward_us == 100

    def test_an_empty_trace(self):
        assert [row.wall_us for row in step_summary(TraceBuilder().finish())] == [0.0]


INTERVALS = st.tuples(
    st.sampled_from([(DATA, Kind.SCOPE), (NODE, Kind.BACKWARD), (STEP, Kind.SCOPE), (ZERO, Kind.SCOPE),
                     ("aten::mul", Kind.OP), ("mine", Kind.SCOPE), ("nn.Module: A_0", Kind.MODULE)]),
    st.integers(0, 60), st.integers(0, 30))
CUTS = st.lists(st.integers(0, 90), min_size=2, max_size=5, unique=True).map(sorted)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(INTERVALS, max_size=12), CUTS)
def test_parts_are_what_counting_moments_gives(intervals, cuts):
    """Against the definition, moment by moment, for events that may overlap in any way."""
    steps = list(itertools.pairwise(cuts))
    events = [(name, kind, start, start + length) for (name, kind), start, length in intervals]
    summary = check(step_summary(made(*events, steps=steps)))
    for row, (low, high) in zip(summary, steps, strict=True):
        nodes = [start for name, _, start, _ in events if name == NODE and low <= start < high]
        expected = dict.fromkeys(PARTS, 0)
        for moment in range(low, high):
            inside = {name for name, _, start, end in events if start <= moment < end}
            started = [name for name, kind, start, end in events
                       if start <= moment < end and kind in (Kind.OP, Kind.MODULE)
                       and _is_forward(start, events, steps)]
            part = ("data" if DATA in inside else "backward" if NODE in inside else
                    "optimizer" if inside & {STEP, ZERO} else "forward" if started else "other")
            expected[part] += 1
        assert parts(row) == expected, nodes
        assert row.ops == sum(kind == Kind.OP and low <= start < high for _, kind, start, _ in events)


def _is_forward(start, events, steps):
    """Whether an op that began then came before the last backward event of the step that it began in."""
    step = [(low, high) for low, high in steps if low <= start]
    if not step:
        return True
    low, high = step[-1]
    nodes = [begin for name, _, begin, _ in events if name == NODE and low <= begin < high]
    return not nodes or start < max(nodes)


class TestRecordings:
    def test_without_a_schedule(self):
        with profile() as prof:
            train(prof)
        summary = check(prof.step_summary())
        assert [row.step for row in summary] == [0, 1, 2, 3, 4]
        for row in summary[:4]:
            assert row.data_us > 9_000  # two samples of five milliseconds
            assert min(row.forward_us, row.backward_us, row.optimizer_us) > 0
            assert row.ops > 5
        assert summary.stalls == [row.data_us for row in summary]
        assert summary.totals.wall_us * 1000 == pytest.approx(prof.trace.end_ns - prof.trace.start_ns)

    def test_with_a_schedule(self):
        plan = schedule(wait=1, warmup=1, active=2, repeat=1)
        found = []
        with profile(schedule=plan, on_trace_ready=lambda p: found.append(p.step_summary())) as prof:
            train(prof)
        (summary,) = found
        assert [row.step for row in check(summary)] == [2, 3]
        assert all(row.data_us > 9_000 and row.backward_us > 0 for row in summary)

    def test_workers_load_beside_the_steps(self):
        with profile() as prof:
            train(prof, workers=1)
        summary = check(prof.step_summary())
        assert len(summary) == 5
        assert all(row.data_us > 0 for row in summary[:4])

    @pytest.mark.parametrize("plan", [None, schedule(wait=0, warmup=1, active=3, repeat=1)])
    def test_from_a_file(self, tmp_path, plan):
        files = []

        def ready(prof):
            files.append(prof.step_summary().to_dict())
            prof.export_chrome_trace(tmp_path / "trace.json")

        with profile(schedule=plan, on_trace_ready=ready, record_shapes=True) as prof:
            train(prof)
        again = step_summary(read(tmp_path / "trace.json"))
        assert again.to_dict() == files[0]

    def test_a_step_without_events_is_a_step(self):
        with profile() as prof:
            torch.ones(1)
            prof.step()
            prof.step()
            torch.ones(1)
        summary = check(prof.step_summary())
        assert [row.step for row in summary] == [0, 1, 2]
        assert summary[1].ops == 0

    def test_no_steps_at_all(self):
        with profile() as prof, record_function("mine"):
            torch.ones(3) + 1
        (row,) = check(prof.step_summary())
        assert row.forward_us > 0
        assert row.ops >= 2


class TestFaces:
    def summary(self):
        return step_summary(made((DATA, Kind.SCOPE, 0, 250), ("aten::mul", Kind.OP, 300, 400), steps=[(0, 1000)]))

    def test_table(self):
        lines = str(self.summary()).splitlines()
        assert lines[0].split() == ["Step", "Wall", *PARTS, "Ops"]
        assert lines[1].split()[:4] == ["5", "1.000ms", "250.000us", "25.0%"]
        assert lines[-1].split()[0] == "Total"
        assert len({len(line) for line in lines}) == 1

    def test_plain_values(self):
        (row,) = json.loads(json.dumps(self.summary().to_dict()))
        assert row["step"] == 5
        assert row["data_us"] == 250
        assert row["fractions"]["data"] == 0.25
        assert self.summary().totals.step == 1
        assert repr(self.summary()) == "<StepSummary of 1 steps>"


def test_the_view_does_not_load_the_runtime():
    code = textwrap.dedent("""
        import sys, types, importlib, os
        import mtprof.views.step_summary as view
        reached = {name for name, value in vars(view).items() if isinstance(value, types.ModuleType)}
        assert reached <= {"np"}, reached
        from_package = {getattr(value, "__module__", "") for value in vars(view).values()}
        assert not any(name.startswith(("mindtorch_v2._", "mindtorch_v2.nn")) for name in from_package if name)
    """)
    source = str(Path(torch.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": source})
