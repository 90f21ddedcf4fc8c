"""The recorder in Python and its twin in C record the same.

Parts of the twins are compared side by side in this process. Which twin ops use is decided at import, so whole
programs run in a process per twin: this file, run as a script, runs its programs and prints what they recorded.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from length import LONG, examples
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import native
from mindtorch_v2._dispatch.describe import INPUTS, describe_all, describe_value, describer_source, key_of, note
from mindtorch_v2._dispatch.dispatcher import execute
from mindtorch_v2._dispatch.observer import HOOK
from mindtorch_v2._dispatch.state import THREAD, ThreadState
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function
from mindtorch_v2.profiler.sources import buffers, memory
from mtprof.schema import Role
from mtprof.tables.check import check

HERE = Path(__file__).parent
SOURCE = Path(torch.__file__).parent.parent
TWINS = {"python": "0", "native": "1"}


def extension():
    """The module, also where this process was told to do without it."""
    found = native.load("")
    if found is not None and native.NATIVE is None:
        found.set_thread(THREAD, ThreadState)
        found.set_tensor(torch.Tensor, (torch.dtype, torch.device, torch.memory_format))
    return found


BUILT = extension()
needs_native = pytest.mark.skipif(BUILT is None, reason="the C extension is not built: make native")


@pytest.fixture(params=["python", pytest.param("native", marks=needs_native)])
def twin(request):
    return request.param


# -- programs, run in a process per twin -------------------------------------------------------------------------------


def rows(prof):
    """What a trace says of its events, without times."""
    trace = check(prof.trace)
    events = trace.events
    inputs = [None if i < 0 else repr(trace.inputs[i]) for i in events["inputs"].tolist()]
    names = [trace.names[i] for i in events["name"].tolist()]
    overloads = [trace.names[i] for i in events["overload"].tolist()]
    return list(zip(names, overloads, events["kind"].tolist(), events["sequence"].tolist(), events["step"].tolist(),
                    events["parent"].tolist(), inputs))


def names(prof):
    return [row[0] for row in rows(prof)]


def training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with profile(record_shapes=True, with_flops=True) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(torch.ones(3, 4)), torch.tensor([0, 1, 1]))
            loss.backward()
            optimizer.step()
            prof.step()
        with torch.no_grad():
            model(torch.ones(1, 4))
    trace = prof.trace
    return {"rows": rows(prof), "flops": trace.events["flops"].tolist()}


def modules():
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    with profile(with_modules=True) as prof:
        model(torch.ones(3, 4)).sum().backward()
    trace = prof.trace
    return [(trace.names[n], trace.names[m] if m >= 0 else None)
            for n, m in zip(trace.events["name"].tolist(), trace.events["module"].tolist())]


def uses():
    """Which memory ops use: blocks are numbered as they come, since identities differ from run to run."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        torch.mul(torch.ones(7), torch.ones(7), out=torch.empty(7))
        model.bias.data = torch.ones(2)
    trace = check(prof.trace)
    names = [trace.names[n] for n in trace.events["name"].tolist()]
    numbers = {}
    found = []
    columns = ("row", "argument", "address", "size_bytes", "written")
    for row, argument, address, size, written in zip(*(trace.uses[column].tolist() for column in columns)):
        numbers.setdefault((address, size), len(numbers))
        found.append([names[row], argument, size, written])
    weight = numbers[model.weight.data_ptr(), 32]
    return {"uses": found, "weight": weight, "roles": trace.roles["role"].tolist(),
            "moves": len(trace.moves["time_ns"])}


def nested():
    with profile() as outer:
        torch.ones(1) + 1
        with profile(record_shapes=True) as inner:
            torch.ones(1) * 2
            with profile(profile_memory=True) as innermost:
                torch.ones(1) / 2
        torch.ones(1) - 1
    return {"outer": rows(outer), "inner": rows(inner), "innermost": rows(innermost),
            "memory": innermost.trace.memory["size_bytes"].tolist()}


def paused():
    with profile(profile_memory=True) as prof:
        torch.ones(1) + 1
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.ones(1) * 2
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.ones(1) - 1
    return {"rows": rows(prof), "memory": prof.trace.memory["size_bytes"].tolist()}


def bounded():
    with profile(max_events=10) as prof:
        torch.ones(1) + 1
        thread = threading.Thread(target=lambda: [torch.ones(1) * 2 for _ in range(20)])
        thread.start()
        thread.join()
        torch.ones(1) + 1
    return {"names": names(prof), "dropped": prof.trace.dropped}


def threads():
    go = threading.Event()
    ready = threading.Event()

    def early():
        torch.ones(1)
        ready.set()
        go.wait(5)
        torch.ones(2) * 3

    first = threading.Thread(target=early, name="early")
    first.start()
    ready.wait(5)
    with profile(record_shapes=True) as prof:
        go.set()
        first.join()
        second = threading.Thread(target=lambda: torch.ones(2) / 3, name="late")
        second.start()
        second.join()
        torch.ones(1) + 1
    trace = prof.trace
    lanes = [trace.threads[i].name for i in trace.events["thread"].tolist()]
    return sorted(zip(lanes, names(prof)))


def stacks_of_a_thread_that_was_there():
    """Such a thread joins at its next op, through the function that receives its events."""
    go = threading.Event()
    ready = threading.Event()

    def helper():
        torch.ones(1) * 2

    def early():
        torch.ones(1)
        ready.set()
        go.wait(5)
        torch.ones(1)
        helper()

    thread = threading.Thread(target=early)
    thread.start()
    ready.wait(5)
    with profile(with_stack=True) as prof:
        go.set()
        thread.join()
    return [row[0].rpartition(" ")[2] for row in rows(prof) if "helper" in row[0] or row[0] == "aten::mul"]


def allocations():
    x = torch.ones(8, requires_grad=True)
    with profile(profile_memory=True) as prof:
        y = torch.ones(16)
        view = y[2:]
        del y
        gc.collect()
        del view
        cycle = [torch.ones(32)]
        cycle.append(cycle)
        del cycle
        gc.collect()
        (x * x).sum().backward()
        kept = torch.zeros(64)
        torch.ones(0)
        kept.add_(1)
        thread = threading.Thread(target=lambda: torch.ones(128) + 1)
        thread.start()
        thread.join()
    changes = prof.trace.memory
    live = {}
    for address, size in zip(changes["address"].tolist(), changes["size_bytes"].tolist()):
        assert live.pop(address, 0) == (-size if size < 0 else 0)
        if size > 0:
            live[address] = size
    return {"sizes": changes["size_bytes"].tolist(), "total": changes["total_bytes"].tolist(),
            "in_order": bool((np.diff(changes["time_ns"]) >= 0).all()), "threads": changes["thread"].tolist(),
            "live": list(live.values())}


def scopes():
    with profile(record_shapes=True) as prof:
        with record_function("plain"):
            pass
        with record_function("with args", "lr=0.1"):
            torch.ones(1) + 1
    return rows(prof)


def failures():
    with profile(record_shapes=True, profile_memory=True) as prof:
        for wrong in (lambda: torch.ones(2) + torch.ones(3), lambda: torch.ones(2, 3) @ torch.ones(2, 3),
                      lambda: torch.ones(2).view(3), lambda: torch.add(torch.ones(2), "text")):
            try:
                wrong()
            except (RuntimeError, TypeError):
                pass
            else:
                raise AssertionError("this should have failed")
        torch.ones(2) * 2
    return rows(prof)


def odd_arguments():
    nan = float("nan")
    looped: list = [1]
    looped.append(looped)
    x = torch.ones(2, 3)
    values = [1, 1.0, True, None, 0.0, -0.0, nan, nan, float("inf"), 2**80, -2**63, "", "a", "ä", "€" * 5,
              "x" * 20000, [], (), [1], (1,), [1, [2, (3,)]], [True], x.shape, 1j, complex(nan, 0), torch.float32,
              torch.device("cpu"), torch.contiguous_format, x, x.t(), x.double(), [x, x], [x] * 100, nn.Parameter(x),
              torch.ones(()), {"a": 1}, {1, 2}.__class__, b"bytes", slice(1, 2), ...]
    numbers = [describe_all((value,)) for value in values]
    again = [describe_all((value,)) for value in values]
    numbers += [describe_all(()), describe_all((1, 2)), describe_all((1, x))]
    described = repr(INPUTS[describe_all((looped,))])  # to a bounded depth
    inputs = [repr(INPUTS[n]) for n in numbers]
    # May be another number than that of a tensor on the CPU, but says the same.
    elsewhere = repr(INPUTS[describe_all((torch.ones(2, 3, device="meta"),))])
    order = list(dict.fromkeys(numbers))  # other programs may have described some of these before
    return {"numbers": [order.index(n) for n in numbers], "again": [order.index(n) for n in again], "inputs": inputs,
            "elsewhere": elsewhere, "looped": described}


def in_flight():
    """An op that is running when recordings begin and end, as with hooks that use a profiler."""
    found = []

    class Inside(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with profile() as prof:
                x.detach() * 2
            found.append(prof)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    with profile() as outer:
        Inside.apply(torch.ones(1, requires_grad=True)).sum().backward()
    return {"inner": rows(found[0]), "outer": rows(outer)}


def forked():
    with profile(profile_memory=True) as prof:
        kept = torch.ones(1) + 1
        pid = os.fork()
        if pid == 0:
            del kept
            torch.ones(1) * 2
            with profile() as child:
                torch.ones(1) / 2
            os._exit(0 if "aten::div" in names(child) else 1)
        status = os.waitpid(pid, 0)[1]
        torch.ones(1) - 1
    return {"status": status, "rows": rows(prof)}


def resident_kilobytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def leaks():
    """How many kilobytes some hundred sessions, and then some hundred thousand records, leave behind.

    In two halves, of which the one with less counts: what is left behind is so in both, but a table of the interpreter
    that has to grow does so once.
    """
    x, y = torch.ones(4), torch.ones(4)

    def session(count):
        with profile(record_shapes=True, profile_memory=True):
            for _ in range(count):
                torch.mul(x, y)

    def grown(sessions, count):
        before = resident_kilobytes()
        for _ in range(sessions):
            session(count)
        session(1)  # the thread lets go of its last buffer when it gets another
        gc.collect()
        return resident_kilobytes() - before

    grown(100, 10)
    sessions = min(grown(500 if LONG else 200, 10) for _ in range(2))
    records = 100_000 if LONG else 20_000 if native.NATIVE is not None else 8_000  # the twin in Python takes its time
    grown(1, records)
    kept = 5 * records * 40 // 1024  # if they stayed: a record is 40 bytes in C, and more in Python
    return {"sessions": sessions, "records": min(grown(5, records) for _ in range(2)), "kept": kept}


PROGRAMS = [training, modules, uses, nested, paused, bounded, threads, stacks_of_a_thread_that_was_there, allocations,
            scopes, failures, odd_arguments, in_flight, forked]
if sys.version_info < (3, 11):
    # A profile function in Python makes these versions copy a frame's variables: a gradient then looks shared, and is
    # cloned where the twin in C lets it be taken over.
    PROGRAMS.remove(uses)


def run(twin, *programs):
    """The results of programs in a process that uses this twin."""
    if twin == "native" and BUILT is None:
        pytest.skip("the C extension is not built: make native")
    # Which ops are ready from the start depends on what code is on disk.
    environment = {**os.environ, "MINDTORCH_NATIVE": TWINS[twin], "MINDTORCH_CACHE": "0",
                   "PYTHONPATH": f"{SOURCE}{os.pathsep}{HERE.parent}"}
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", __file__, *programs], env=environment,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results():
    return {twin: run(twin, *(p.__name__ for p in PROGRAMS)) for twin in TWINS if twin == "python" or BUILT is not None}


@needs_native
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_are_recorded_the_same(results, program):
    assert results["native"][program.__name__] == results["python"][program.__name__]


def test_the_twin_that_was_asked_for(results, twin):
    assert results[twin]["twin"] == twin


class TestPrograms:
    """That the common result is the right one."""

    def test_nested(self, results, twin):
        found = results[twin]["nested"]
        assert [r[0] for r in found["outer"] if r[0] in ("aten::add", "aten::mul", "aten::div", "aten::sub")] == [
            "aten::add", "aten::mul", "aten::div", "aten::sub"]
        assert {r[0] for r in found["inner"]} >= {"aten::mul", "aten::div"}
        assert not {r[0] for r in found["inner"]} & {"aten::add", "aten::sub"}
        assert not {r[0] for r in found["innermost"]} & {"aten::add", "aten::sub", "aten::mul"}
        assert found["memory"][0] == 4

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="gradients are cloned while a Python profile function runs")
    def test_uses(self, results, twin):
        found = results[twin]["uses"]
        assert ["aten::linear", 1, 32, 0] in found["uses"]
        assert ["aten::addmm", 2, 32, 0] in found["uses"]
        assert ["aten::addcdiv_", 0, 32, 1] in found["uses"]
        assert ["aten::mul", 2, 28, 1] in found["uses"], "what is given as out is written"
        assert found["moves"] == 1
        assert set(found["roles"]) == set(Role)

    def test_paused(self, results, twin):
        assert "aten::mul" not in [r[0] for r in results[twin]["paused"]["rows"]]

    def test_bounded(self, results, twin):
        found = results[twin]["bounded"]
        assert len(found["names"]) == 10
        assert found["dropped"] > 20

    def test_threads(self, results, twin):
        found = [tuple(r) for r in results[twin]["threads"]]
        assert {("early", "aten::mul"), ("late", "aten::div"), ("MainThread", "aten::add")} <= set(found)

    def test_stacks_of_a_thread_that_was_there(self, results, twin):
        assert results[twin]["stacks_of_a_thread_that_was_there"] == ["helper", "aten::mul"]

    def test_allocations(self, results, twin):
        found = results[twin]["allocations"]
        sizes = found["sizes"]
        assert sizes[:4] == [64, -64, 128, -128]
        assert sizes.count(256) == 1
        assert sizes.count(-256) == 0
        assert sizes.count(512) == sizes.count(-512) == 2
        assert found["total"][-1] == sum(sizes)
        assert found["in_order"]
        assert len(set(found["threads"])) == 2

    def test_scopes(self, results, twin):
        assert [(r[0], r[-1]) for r in results[twin]["scopes"] if r[0] in ("plain", "with args")] == [
            ("plain", None), ("with args", "('lr=0.1',)")]

    def test_failed_ops_are_recorded(self, results, twin):
        assert [r[0] for r in results[twin]["failures"] if r[0] == "aten::add"] == ["aten::add"] * 2
        assert [r[0] for r in results[twin]["failures"] if r[5] < 0][-1] == "aten::mul"

    def test_forked(self, results, twin):
        found = results[twin]["forked"]
        assert found["status"] == 0
        assert "aten::mul" not in [r[0] for r in found["rows"]]

    def test_numbers(self, results, twin):
        found = results[twin]["odd_arguments"]
        assert found["numbers"][:4] == [0, 1, 2, 3]
        assert found["numbers"][4] == found["numbers"][5]
        assert found["numbers"][6] == found["numbers"][7]
        assert found["again"] == found["numbers"][:-3]
        # Different numbers say different things, the same ones the same.
        said = dict(zip(found["numbers"], found["inputs"], strict=True))
        assert all(said[n] == text for n, text in zip(found["numbers"], found["inputs"], strict=True))
        assert len(set(said.values())) == len(said)
        assert found["elsewhere"] == "(((2, 3), dtype('float32'), (12, 4)),)"

    def test_nothing_leaks(self, twin):
        if not Path("/proc/self/statm").exists():
            pytest.skip("needs /proc")
        found = run(twin, "leaks")["leaks"]
        assert found["sessions"] < 1000
        # Python's own pools of memory grow and shrink by a few megabytes.
        assert found["records"] < max(2000, found["kept"] / 2)


# -- parts, side by side -----------------------------------------------------------------------------------------------


def new_buffers(twin, monkeypatch):
    monkeypatch.setattr(buffers, "NATIVE", BUILT if twin == "native" else None)
    return {"python": buffers.PythonBuffers, "native": buffers.NativeBuffers}[twin]()


class TestBuffers:
    def test_columns(self, twin, monkeypatch):
        events = new_buffers(twin, monkeypatch).give(state := ThreadState(), None)
        state.extend((3, 10, 20, -1, None))
        state.extend((4, 5, 2**62, 7, 0))
        columns = buffers.columns_of(events)
        assert [c.tolist() for c in columns] == [[3, 4], [10, 5], [20, 2**62], [-1, 7], [-1, 0]]
        assert {c.dtype for c in columns} == {np.dtype(np.int64)}

    def test_no_events(self, twin, monkeypatch):
        events = new_buffers(twin, monkeypatch).give(ThreadState(), None)
        assert [c.tolist() for c in buffers.columns_of(events)] == [[]] * 5
        assert [c.tolist() for c in buffers.columns_of(buffers.since(events, 0))] == [[]] * 5

    @pytest.mark.parametrize("count", [255, 256, 257, 768, 769, 200_000])
    def test_many_events(self, twin, monkeypatch, count):
        events = new_buffers(twin, monkeypatch).give(state := ThreadState(), None)
        half = 0
        for i in range(count):
            if i == count // 2:
                half = len(events)
            state.extend((i, i + 1, i + 2, i + 3, i + 4))
        for begin, first in ((0, 0), (half, count // 2), (len(events), count)):
            part = buffers.since(events, begin)
            for offset, column in enumerate(buffers.columns_of(part)):
                np.testing.assert_array_equal(column, np.arange(first, count) + offset)

    def test_limit_over_all_threads(self, twin, monkeypatch):
        shared = new_buffers(twin, monkeypatch)
        states = [ThreadState() for _ in range(3)]
        events = [shared.give(state, limit) for state, limit in zip(states, (4, 4, None))]
        for state in states * 3:
            state.extend((1, 2, 3, 4, 5))
        # The third has no limit, but what it holds counts for the others.
        assert [len(buffers.columns_of(e)[0]) for e in events] == [2, 1, 3]
        assert shared.dropped == 3

    @needs_native
    @pytest.mark.parametrize("event", [(1, 2, 3, 4), [1, 2, 3, 4, 5], (1, 2, 3, 4, "5"), (None, 2, 3, 4, 5),
                                       (2**70, 2, 3, 4, 5), 7])
    def test_what_is_no_event(self, event):
        buffer = BUILT.EventBuffer(BUILT.Budget())
        with pytest.raises((TypeError, OverflowError)):
            buffer.extend(event)
        assert len(buffer) == 0


@needs_native
class TestMarks:
    @pytest.fixture
    def state(self):
        state = THREAD.state
        before = state.events
        yield state
        state.record_into(before)

    def test_times_are_pythons(self, state):
        first = perf_counter_ns()
        assert first <= BUILT.clock() <= perf_counter_ns()
        state.record_into(buffer := BUILT.EventBuffer(BUILT.Budget()))
        before = perf_counter_ns()
        mark = BUILT.begin(3, True)
        between = perf_counter_ns()
        mark.end(9)
        after = perf_counter_ns()
        (event,), (start,), (end,), (sequence,), (inputs,) = buffer.columns()
        assert before <= start <= between <= end <= after
        assert (event, sequence, inputs) == (9, state.seq, 3)

    def test_place_in_the_graph(self, state):
        state.record_into(buffer := BUILT.EventBuffer(BUILT.Budget()))
        BUILT.begin(None, False).end(0)
        with torch.no_grad():
            BUILT.begin(None, True).end(0)
        BUILT.begin(None, True).end(0)
        assert buffer.columns()[3].tolist() == [-1, -1, state.seq]
        assert buffer.columns()[4].tolist() == [-1, -1, -1]

    def test_whoever_receives_events_gets_tuples(self, state):
        state.record_into(events := [])
        BUILT.begin(None, False).end(5)
        BUILT.begin(8, False).end(6)
        assert [events[i] for i in (0, 3, 4, 5, 8, 9)] == [5, -1, None, 6, -1, 8]
        seen = []
        state.extend = seen.append
        BUILT.begin(None, False).end(7)
        assert seen[0][0] == 7

    def test_receiver_that_raises(self, state):
        state.extend = lambda event: 1 / 0
        with pytest.raises(ZeroDivisionError):
            BUILT.begin(None, False).end(7)

    def test_wrong_arguments(self):
        with pytest.raises(TypeError):
            BUILT.begin()
        BUILT.watch(True, None)
        try:
            with pytest.raises(TypeError, match="'str' object is not callable"):
                BUILT.begin("x", True)
            with pytest.raises(TypeError, match=r"an integer is required|cannot be interpreted as an integer"):
                BUILT.begin(lambda: "x", True)
        finally:
            BUILT.watch(False, None)
        with pytest.raises(TypeError, match="expected a UseLog or None"):
            BUILT.watch(True, "x")
        with pytest.raises(TypeError):
            BUILT.begin(None, True).end("x")
        with pytest.raises(TypeError):
            type(BUILT.begin(None, True))()

    def test_buffer_lives_as_long_as_it_is_written_to(self, state):
        mark = BUILT.begin(None, True)
        state.record_into(BUILT.EventBuffer(BUILT.Budget()))
        gc.collect()
        mark.end(1)
        assert len(state.events) == 1

    def test_slots_are_checked(self):
        class Plain:
            events = grad = seq = extend = None

        with pytest.raises(TypeError, match="has no slot extend"):
            BUILT.set_thread(THREAD, Plain)
        with pytest.raises(AttributeError):
            BUILT.set_tensor(Plain, ())
        # What was set before still holds.
        BUILT.begin(None, True).end(0)
        assert BUILT.Describer(lambda value: 1)(torch.ones(1)) == 1


def python_describer(count):
    """A describer with a table of its own: (function, descriptions)."""
    noted = []

    def note(known, key, values):
        noted.append(values)
        found = known[key] = len(noted) - 1
        return found

    arguments = [f"argument{i}" for i in range(count)]
    text = describer_source(arguments, set(arguments[:2]))
    return execute(compile(text, "<mindtorch_v2 test>", "exec"))(key_of, note), noted


atoms = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.integers(), st.floats(), st.complex_numbers(),
                  st.text(max_size=20), st.sampled_from([torch.float32, torch.int64, torch.contiguous_format]),
                  st.sampled_from(["cpu", "meta", "cpu:0"]).map(torch.device), st.binary(max_size=2))
shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)
tensors = st.builds(lambda shape, dtype, flip: torch.empty(shape, dtype=dtype).permute(
    *(reversed(range(len(shape))) if flip else range(len(shape)))) if shape else torch.empty((), dtype=dtype),
    shapes, st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool]), st.booleans())
values = st.recursive(atoms | tensors, lambda inner: st.lists(inner, max_size=3).flatmap(
    lambda items: st.sampled_from([items, tuple(items)])), max_leaves=6)


@needs_native
class TestDescriber:
    @given(st.lists(st.tuples(values, values, values), min_size=1, max_size=12))
    @settings(max_examples=examples(150), deadline=None)
    def test_numbers_are_pythons(self, calls):
        expected, noted = python_describer(3)
        behind, noted_behind = python_describer(3)
        found = BUILT.Describer(behind)
        for call in calls + calls:
            assert found(*call) == expected(*call)
        assert len(noted) == len(noted_behind)

    def test_arguments_as_they_are_are_described_alike(self):
        x = torch.ones(2, 3)
        for values in [(x, 1, 2.5), (x.t(), None, "mean"), ([x, x], (1, [2, True])), (), (1j, x.numpy()),
                       (torch.float32, x), (torch.contiguous_format, 1)]:
            found = BUILT.Describer(lambda *given: note({}, (), given), True)
            assert INPUTS[found(*values)] == tuple(describe_value(value) for value in values)
            assert found(*values) == found(*values)

    def test_known_arguments_do_not_reach_python(self):
        calls = []
        found = BUILT.Describer(lambda *values: calls.append(values) or len(calls))
        x = torch.ones(2, 3)
        for _ in range(3):
            assert found(x, 1, None, "mean", [1, 2]) == 1
            assert found(torch.zeros(2, 3), 1, None, "mean", (1, 2)) == 1
            assert found(x.t(), 1, None, "mean", [1, 2]) == 2
        assert len(calls) == found.known == 2

    def test_dtypes_that_look_alike_by_address(self):
        """A dtype that dies must not lend its address to another."""
        found = BUILT.Describer(lambda x: str(x._a.dtype))
        for i in range(1000):
            tensor = torch.ones(1)
            tensor._a = np.zeros(1, np.dtype(f"S{i + 1}"))
            assert found(tensor) == f"|S{i + 1}"

    def test_errors_pass_and_are_not_remembered(self):
        def describe(value):
            raise KeyError(value)

        found = BUILT.Describer(describe)
        for _ in range(2):
            with pytest.raises(KeyError):
                found(1)
        with pytest.raises(TypeError):
            found(1, 2)
        with pytest.raises(TypeError):
            found(wrong=2)
        assert found.known == 0

    def test_many_different_arguments(self):
        seen = []
        found = BUILT.Describer(lambda value: seen.append(value) or value)
        for _ in range(2):
            assert [found(i) for i in range(70_000)] == list(range(70_000))
        assert found.known == 65536
        assert len(seen) == 70_000 + 70_000 - 65536

    def test_freed_with_its_function(self):
        def describe(value):
            return 1

        describe.itself = found = BUILT.Describer(describe)
        found(1)
        gone = weakref.ref(describe)
        del found, describe
        gc.collect()
        assert gone() is None


class TestMemoryLog:
    @pytest.fixture
    def log(self, twin):
        return memory.MemoryLog() if twin == "python" else BUILT.MemoryLog()

    def test_allocated_and_released(self, log):
        first = np.ones(4)
        before = HOOK["clock"]()
        log.allocated(first)
        log.allocated(first)
        log.allocated(first[1:])
        second = np.ones(2)[None, 1:]
        log.allocated(second)
        addresses = [first.ctypes.data, second.base.ctypes.data]
        del first
        time_ns, thread, size, address = log.since(0)
        assert size.tolist() == [32, 16, -32]
        assert address.tolist() == [addresses[0], addresses[1], addresses[0]]
        assert thread.tolist() == [threading.get_ident()] * 3
        assert before <= time_ns[0] <= time_ns[1] <= time_ns[2] <= HOOK["clock"]()
        del second
        assert [c.tolist() for c in log.since(3)][2] == [-16]
        assert len(log) == 4

    def test_what_is_not_watched(self, log):
        class Special(np.ndarray):
            pass

        for other in (np.empty(0), np.frombuffer(b"abcd", np.uint8), np.ones(2).view(Special), 3, None,
                      Special(2).view(np.ndarray)):
            log.allocated(other)
        assert len(log) == 0
        assert [c.tolist() for c in log.since(0)] == [[]] * 4

    def test_statistics(self, log):
        first, second = np.ones(4), np.ones(2)
        for array in (first, second):
            log.allocated(array)
        del array, first

        def figures():
            return (log.live_bytes, log.peak_bytes, log.allocated_bytes, log.freed_bytes, log.allocations,
                    log.releases)

        assert figures() == (16, 48, 48, 32, 2, 1)
        log.reset_peak()
        assert figures() == (16, 16, 48, 32, 2, 1)
        log.rest()
        log.reset_sums()
        third = np.ones(1)
        log.allocated(third)
        del second
        assert figures() == (8, 24, 8, 16, 1, 1)
        assert third.size == 1

    def test_resting(self, log):
        kept, dies, dies_later = np.ones(4), np.ones(2), np.ones(1)
        for array in (kept, dies, dies_later):
            log.allocated(array)
        assert log.live_bytes == 56
        log.rest()
        del array, dies
        log.allocated(kept)
        assert (len(log), log.live_bytes) == (0, 40)
        log.wake()
        log.allocated(kept)
        del dies_later
        assert log.since(0)[2].tolist() == [-8]
        assert log.live_bytes == 32

    def test_log_that_dies_first(self, log, request):
        array = np.ones(4)
        log.allocated(array)
        (reference,) = weakref.getweakrefs(array)
        request.node.funcargs.pop("log")
        del log
        gc.collect()
        del array
        assert reference() is None

    def test_many_in_any_order(self, log):
        generator = np.random.default_rng(0)
        arrays = {}
        sizes = []
        for step in range(20_000):
            if arrays and generator.random() < 0.48:
                key = list(arrays)[int(generator.integers(len(arrays)))] if len(arrays) < 50 else next(iter(arrays))
                sizes.append(-arrays[key].nbytes)
                del arrays[key]
            else:
                arrays[step] = np.empty(int(generator.integers(1, 50)))
                log.allocated(arrays[step])
                sizes.append(arrays[step].nbytes)
        assert log.since(0)[2].tolist() == sizes
        for array in arrays.values():
            log.allocated(array)
        assert len(log) == len(sizes)

    def test_array_that_dies_in_a_cycle(self, log):
        holder = [np.ones(3)]
        holder.append(holder)
        log.allocated(holder[0])
        del holder
        gc.collect()
        assert log.since(0)[2].tolist() == [24, -24]


class TestLoading:
    def test_told_not_to(self):
        assert native.load("0") is None

    def test_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "mindtorch_v2._native._recorder", None)
        assert native.load("") is None
        with pytest.raises(ImportError):
            native.load("1")

    @needs_native
    def test_build_of_another_version(self, monkeypatch):
        monkeypatch.setattr(native, "VERSION", BUILT.VERSION + 1)
        assert native.load("") is None
        with pytest.raises(ImportError, match="make native"):
            native.load("1")


if __name__ == "__main__":
    chosen = {name: globals()[name]() for name in sys.argv[1:]}
    print(json.dumps({**chosen, "twin": "python" if native.NATIVE is None else "native"}))
