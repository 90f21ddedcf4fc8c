"""`profile(save_to=path)`: a recording that is written while it runs."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
import mtprof
from mindtorch_v2._dispatch.state import THREAD
from mindtorch_v2.profiler import profile, record_function, saving, schedule
from mtprof.tables.check import check

SOURCE = Path(torch.__file__).parent.parent
pytest.importorskip("pyarrow")


def work(count):
    x = torch.ones(4, 4)
    for _ in range(count):
        with record_function("round"):
            (x * 2).sum()


def rows(trace):
    """What a trace says of its events besides times."""
    events = trace.events
    return Counter(zip([trace.names[n] for n in events["name"].tolist()], events["kind"].tolist(),
                       [repr(trace.inputs[n]) if n >= 0 else "" for n in events["inputs"].tolist()],
                       events["flops"].tolist(),
                       [trace.names[events["name"][p]] if p >= 0 else "" for p in events["parent"].tolist()]))


@pytest.mark.parametrize("options", [{}, {"record_shapes": True, "with_flops": True}, {"profile_memory": True},
                                     {"record_shapes": True, "profile_memory": True}])
def test_the_file_has_what_memory_would_have(tmp_path, monkeypatch, options):
    monkeypatch.setattr(saving, "INTERVAL_S", 0.002)
    work(2)  # no first use in either
    with profile(save_to=tmp_path / "saved.mtp", **options) as saved:
        work(300)
    with profile(**options) as kept:
        work(300)
    assert rows(saved.trace) == rows(kept.trace)
    assert len(check(saved.trace)) == len(kept.trace)
    again = mtprof.load(tmp_path / "saved.mtp")
    assert rows(again.trace) == rows(kept.trace)
    assert {row.key: row.count for row in saved.key_averages()} == {row.key: row.count for row in kept.key_averages()}
    if "profile_memory" in options:
        for column in ("size_bytes", "total_bytes"):
            assert (saved.trace.memory[column] == kept.trace.memory[column]).all()
        assert (np.diff(saved.trace.memory["time_ns"]) >= 0).all()


def test_it_was_written_in_pieces_and_memory_was_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "INTERVAL_S", 0.002)
    path = tmp_path / "saved.mtp"
    lengths, sizes = [], []
    state = THREAD.state
    with profile():
        work(50)
        whole = 40 * len(state.events)  # the recorder in Python has several entries for an event
    with profile(save_to=path) as prof:
        state = THREAD.state
        for _ in range(40):
            work(50)
            time.sleep(0.004)
            lengths.append(len(state.events))
            sizes.append(path.stat().st_size)
    assert sizes[-1] > sizes[0] > 0
    assert max(lengths) < whole
    assert Counter(e.name for e in prof.events())["round"] == 2000


def events_in(path):
    """How many events a file has that is being written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has no end yet
        try:
            return len(mtprof.load(path).trace)
        except mtprof.BadFile:
            return 0


def test_killed(tmp_path):
    """What was written is there after `kill -9`."""
    path = tmp_path / "killed.mtp"
    program = f"""
        import time
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile, record_function, saving
        saving.INTERVAL_S = 0.05
        x = torch.ones(4)
        model = torch.nn.Linear(4, 4)
        def inner():
            with record_function("round"):
                x + 1
                model(x)
        with profile(save_to={str(path)!r}, record_shapes=True, with_stack=True, with_modules=True) as prof:
            for number in range(10**9):
                inner()
                if number in (200, 400):
                    prof.step()
                if number == 1000:
                    print("going", flush=True)
                if number > 1000:
                    time.sleep(0.0005)  # a few events in each piece: whoever reads the file is not outrun
        """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": str(SOURCE)}, text=True)
    try:
        assert process.stdout.readline().strip() == "going"
        seen = []  # a piece is whole when the next one has events
        while len(seen) < 2:
            assert process.poll() is None
            time.sleep(0.1)
            if (count := events_in(path)) > (seen[-1] if seen else 3000):
                seen.append(count)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that the file is cut short
        recording = mtprof.load(path)
    counts = {row.key: row.count for row in recording.key_averages()}
    assert counts["aten::add"] > 100
    assert abs(counts["aten::add"] - counts["round"]) <= 1
    trace = recording.trace
    assert 0 < trace.start_ns <= trace.events["start_ns"].min()
    assert abs(trace.start_ns + trace.epoch_ns - time.time_ns()) < 3600 * 10**9  # the clock on the wall
    rows = list(recording.step_summary())
    assert [row.step for row in rows] == [0, 1, 2]
    assert rows[0].ops > rows[1].ops == rows[0].ops // 201 * 200
    calls = [name for name in trace.names if name.endswith(": inner")]
    adds = trace.events["stack"][trace.events["name"] == trace.names.index("aten::add")]
    assert len(calls) == 1
    assert {trace.stack(number)[0].function for number in adds[:-1].tolist()} == {"inner"}
    assert recording.module_tree()["Linear"].calls > 100


def test_another_profiler_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "INTERVAL_S", 0.002)
    with profile(save_to=tmp_path / "saved.mtp") as outer:
        work(50)
        with profile() as inner:
            work(50)
            time.sleep(0.02)
        work(50)
    assert Counter(e.name for e in inner.events())["round"] == 50
    assert Counter(e.name for e in outer.events())["round"] == 150


def shown_calls(trace):
    """What a trace says of Python calls, stacks, lines and modules, without this function's own place in files."""
    events, names = trace.events, trace.names
    parents = [names[events["name"][p]] if p >= 0 else "" for p in events["parent"].tolist()]
    modules = [names[m] if m >= 0 else "" for m in events["module"].tolist()]
    stacks = [tuple(map(str, trace.stack(number))) for number in events["stack"].tolist()]
    return Counter(zip([names[n] for n in events["name"].tolist()], events["kind"].tolist(), events["line"].tolist(),
                       parents, modules, stacks))


def train(model, rounds):
    x = torch.ones(2, 4)
    for _ in range(rounds):
        model(x).sum().backward()


def generated():
    try:
        yield torch.ones(1)
        yield torch.ones(2)
    except KeyError:
        yield torch.ones(3)


def delegated():
    yield from generated()


def throw(rounds):
    for _ in range(rounds):
        running = delegated()
        next(running)
        running.throw(KeyError())


def recorded(model, path=None, **options):
    gc.disable()  # others may have asked to be called when it runs, and these calls would be noted too
    try:
        with profile(save_to=path, **options) as prof:
            train(model, 60)
            throw(20)
    finally:
        gc.enable()
    return prof


@pytest.mark.parametrize("options", [{"with_modules": True}, {"with_stack": True},
                                     {"with_stack": True, "with_modules": True, "profile_memory": True,
                                      "record_shapes": True}])
def test_calls_and_modules(tmp_path, monkeypatch, options):
    monkeypatch.setattr(saving, "INTERVAL_S", 0.002)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    recorded(model)  # no first use in what follows
    kept, saved = recorded(model, **options), recorded(model, tmp_path / "saved.mtp", **options)
    check(saved.trace)
    assert shown_calls(saved.trace) == shown_calls(kept.trace)
    if "with_modules" in options:
        trees = [[(row.path, row.calls) for row in one.module_tree()] for one in (saved, kept)]
        assert trees[0] == trees[1]
        assert trees[0]


def test_a_file_a_cycle_of_a_schedule(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "INTERVAL_S", 0.002)
    work(1)
    ready = []
    with profile(save_to=tmp_path / "saved.mtp", schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda prof: ready.append(len(prof.events()))) as prof:
        for step in range(8):
            work(step)
            prof.step()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved.2.mtp", "saved.mtp"]
    counts = [{row.key: row.count for row in mtprof.load(tmp_path / name).key_averages()}
              for name in ("saved.mtp", "saved.2.mtp")]
    assert [count["round"] for count in counts] == [2 + 3, 6 + 7]
    assert counts[0]["ProfilerStep*"] == counts[1]["ProfilerStep*"] == 2
    assert len(ready) == 2


def test_what_cannot_be_saved_while_it_is_recorded(tmp_path):
    path = tmp_path / "saved.mtp"
    with pytest.raises(NotImplementedError, match="save_to together with execution_trace_observer"):
        profile(save_to=path, execution_trace_observer=torch.profiler.ExecutionTraceObserver())
    assert not path.exists()


def test_no_place_for_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"), profile(save_to=tmp_path / "nowhere" / "saved.mtp"):
        pass
    with profile() as prof:
        torch.ones(1)
    assert len(prof.events()) == 3


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "INTERVAL_S", 0.002)

    def full(self, trace):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving.ChunkFile, "add", full)
    prof = profile(save_to=tmp_path / "saved.mtp")
    prof.start()
    work(20)
    time.sleep(0.05)
    with pytest.raises(OSError, match="No space left"):
        prof.stop()
    with profile() as prof:
        torch.ones(1)
    assert len(prof.events()) == 3
