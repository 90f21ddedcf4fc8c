"""Files made from traces and event lists: literal traces in, literal content out; and back through the reader."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import os
import pathlib
import stat
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from length import examples
from mtprof.builder import TraceBuilder
from mtprof.export import chrome, event_list_chrome, stacks, tabular
from mtprof.files import write_atomically
from mtprof.schema import DEVICE_KINDS, KINETO_TABLES, Kind
from mtprof.store import kineto, kineto_stream
from mtprof.store.kineto_scan import ABSENT
from mtprof.tables.check import check
from mtprof.tables.compare import assert_traces_equal
from mtprof.tables.told_modules import with_told_modules
from mtprof.trace import Frame, TensorInput, ThreadInfo, Trace

assert_same_file = functools.partial(assert_traces_equal, tables=KINETO_TABLES)
MATRIX = TensorInput((2, 3), "float32", (3, 1))
NPU = 20


def small_trace(**facts: Any) -> Trace:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(10, 11, "main"))
    build.add(name="ProfilerStep#4", kind=Kind.STEP, start_ns=1000, end_ns=90_000, thread=main, step=4)
    build.add(name="aten::mul", overload="Tensor", kind=Kind.OP, start_ns=2_001, end_ns=12_345, thread=main, step=4,
              inputs=(MATRIX, 1.0, None), sequence=7, module="net.fc", flops=6)
    build.add(name="MulBackward0", kind=Kind.BACKWARD_FUNCTION, start_ns=20_000, end_ns=30_000, thread=main, step=4,
              sequence=7)
    build.add_row("memory", time_ns=3_000, thread=main, size_bytes=24, address=4096, total_bytes=24, reserved_bytes=0)
    return build.finish(**{"start_ns": 500, "end_ns": 100_000, "metadata": {
        "record_shapes": True, "with_flops": False, "trace_id": "ID", "host_name": "host"}, **facts})


def written(trace: Trace, path: pathlib.Path, **options: Any) -> dict[str, Any]:
    chrome.write(trace, path, **options)
    return json.loads(path.read_bytes())


def of_phase(document: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == phase]


# -- files -------------------------------------------------------------------------------------------------------------


def test_file_is_replaced_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, [b"one", b" two"])
    write_atomically(os.fspath(path), [b"three"])
    assert path.read_bytes() == b"three"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def failing() -> Iterator[bytes]:
        yield b"new"
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_atomically(path, failing())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_errors_name_the_path(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent.*does not exist"):
        write_atomically(tmp_path / "absent" / "a.json", [])
    with pytest.raises(IsADirectoryError, match=r"it is a directory"):
        write_atomically(tmp_path, [])

    def full() -> Iterator[bytes]:
        raise OSError(28, "No space left on device")
        yield b""

    with pytest.raises(OSError, match=r"cannot write .*a\.json: No space left") as raised:
        write_atomically(tmp_path / "a.json", full())
    assert raised.value.errno == 28
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_stays_what_it_is(tmp_path: pathlib.Path) -> None:
    """A pipe or a device is written to, not replaced by a file, which root could do."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, [b"one", b" two"])
    reader.join()
    assert received == [b"one two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_goes_on_pointing_where_it_pointed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "latest.json").symlink_to(tmp_path / "runs" / "one.json")
    for content in (b"first", b"second"):
        write_atomically(tmp_path / "latest.json", [content])
        assert (tmp_path / "latest.json").is_symlink()
        assert (tmp_path / "runs" / "one.json").read_bytes() == content
    assert os.listdir(tmp_path / "runs") == ["one.json"]


def test_output_that_the_shell_redirected_stays_open(tmp_path: pathlib.Path) -> None:
    with open(tmp_path / "out.txt", "wb") as file:
        file.write(b"before ")
        file.flush()
        write_atomically(f"/proc/self/fd/{file.fileno()}", [b"text"])
        file.write(b" after")
    assert (tmp_path / "out.txt").read_bytes() == b"before text after"


def test_names_may_be_bytes_but_not_empty(tmp_path: pathlib.Path) -> None:
    write_atomically(os.fsencode(tmp_path / "a.gz"), [b"text"])
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"
    with pytest.raises(FileNotFoundError, match="without a name"):
        write_atomically("", [])


def test_gzip_by_suffix_is_reproducible(tmp_path: pathlib.Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_atomically(tmp_path / name, [b"text " * 100, b"end"])
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text " * 100 + b"end"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_new_file_has_the_usual_permissions(tmp_path: pathlib.Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "ours", [b""])
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "ours").chmod(0o600)
    write_atomically(tmp_path / "ours", [b"again"])
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o600


# -- Chrome trace of a recording ---------------------------------------------------------------------------------------


def test_top_level(tmp_path: pathlib.Path) -> None:
    trace = small_trace(dropped=3, epoch_ns=1_790_857_026_000_000_000 + 5_000_000_000)
    document = written(trace, tmp_path / "t.json", metadata={"user": '"text"', "j": '{"a": [1]}', "bad": "not json"})
    del document["traceEvents"]
    assert document == {
        "schemaVersion": 1, "deviceProperties": [], "trace_id": "ID", "record_shapes": 1, "host_name": "host",
        "user": "text", "j": {"a": [1]}, "bad": "not json", "mindtorch_v2": {"dropped_events": 3},
        "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_790_857_026_000_000_000,
        "traceName": str(tmp_path / "t.json"),
    }


def test_events(tmp_path: pathlib.Path) -> None:
    document = written(small_trace(), tmp_path / "t.json")
    place = {"pid": 10, "tid": 11}
    assert of_phase(document, "X") == [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", **place, "ts": 1.0, "dur": 89.0,
         "args": {"External id": 1, "Record function id": 0, "Ev Idx": 0}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mul", **place, "ts": 2.001, "dur": 10.344, "args": {
            "External id": 2, "Sequence number": 7, "Fwd thread id": 0, "Record function id": 0,
            "Concrete Inputs": ["", "1.", ""], "Input type": ["float", "Scalar", ""],
            "Input Strides": [[3, 1], [], []], "Input Dims": [[2, 3], [], []],
            "Overload": "Tensor", "Module": "net.fc", "FLOPs": 6, "Ev Idx": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "MulBackward0", **place, "ts": 20.0, "dur": 10.0, "args": {
            "External id": 3, "Sequence number": 7, "Fwd thread id": 1, "Record function id": 0, "Ev Idx": 2}},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
         "ts": 0.5, "dur": 99.5, "args": {"Op count": 0}},
    ]
    assert of_phase(document, "s") == [
        {"ph": "s", "id": 1, **place, "ts": 2.001, "cat": "fwdbwd", "name": "fwdbwd"}]
    assert of_phase(document, "f") == [
        {"ph": "f", "id": 1, **place, "ts": 20.0, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"}]
    assert of_phase(document, "i") == [
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **place, "ts": 3.0, "args": {
            "Total Reserved": 0, "Total Allocated": 24, "Bytes": 24, "Device Id": -1, "Device Type": 0, "Addr": 4096,
            "finished": False, "Ev Idx": 3}},
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
         "tid": "Trace PyTorch Profiler", "ts": 0.5},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 100.0},
    ]
    assert of_phase(document, "M") == [
        {"ph": "M", "name": "process_name", "ts": 0.5, "pid": 10, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "ts": 0.5, "pid": 10, "tid": 0, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "process_sort_index", "ts": 0.5, "pid": 10, "tid": 0, "args": {"sort_index": 10}},
        {"ph": "M", "name": "thread_name", "ts": 0.5, **place, "args": {"name": "thread 11 (main)"}},
        {"ph": "M", "name": "thread_sort_index", "ts": 0.5, **place, "args": {"sort_index": 11}},
        {"ph": "M", "name": "process_sort_index", "ts": 0.5, "pid": "Spans", "tid": 0,
         "args": {"sort_index": 536870912}},
    ]


def test_times_keep_three_decimals_in_the_text(tmp_path: pathlib.Path) -> None:
    chrome.write(small_trace(), tmp_path / "t.json")
    assert '"ts":20.000,"dur":10.000,' in (tmp_path / "t.json").read_text()


def test_device_work_has_its_own_process_and_arrows(tmp_path: pathlib.Path) -> None:
    build = TraceBuilder()
    host, stream = build.thread(ThreadInfo(10, 10, "main")), build.thread(ThreadInfo(10, 7, ""))
    build.add(name="aten::add", kind=Kind.OP, start_ns=0, end_ns=100, thread=host)
    build.add(name="aclLaunch", kind=Kind.LAUNCH, start_ns=10, end_ns=20, thread=host, correlation=5)
    build.add(name="Add_kernel", kind=Kind.KERNEL, start_ns=50, end_ns=90, thread=stream, correlation=5,
              device=NPU, device_index=2)
    trace = build.finish(start_ns=0, end_ns=200)
    document = written(trace, tmp_path / "t.json")
    op, launch, kernel = of_phase(document, "X")[:3]
    assert (launch["cat"], launch["args"]["External id"]) == ("privateuse1_runtime", op["args"]["External id"])
    assert (kernel["cat"], kernel["pid"], kernel["tid"]) == ("kernel", 2, 7)
    assert kernel["args"] == {"External id": op["args"]["External id"], "device": 2, "stream": 7, "correlation": 5,
                              "Ev Idx": 2}
    assert [(e["ph"], e["cat"], e["id"], e["pid"], e["ts"]) for e in document["traceEvents"] if e["ph"] in "sf"] == [
        ("s", "ac2g", 5, 10, 0.01), ("f", "ac2g", 5, 2, 0.05)]
    labels = {e["pid"]: e["args"]["labels"] for e in of_phase(document, "M") if e["name"] == "process_labels"}
    assert labels == {10: "CPU", 2: "NPU 2"}


def test_forward_of_the_same_thread_is_preferred_and_must_come_before(tmp_path: pathlib.Path) -> None:
    build = TraceBuilder()
    one, two = build.thread(ThreadInfo(1, 1)), build.thread(ThreadInfo(1, 2))
    build.add(name="outer", kind=Kind.OP, start_ns=0, end_ns=50, thread=one, sequence=3)
    build.add(name="inner", kind=Kind.OP, start_ns=10, end_ns=20, thread=one, sequence=3)
    build.add(name="other", kind=Kind.OP, start_ns=60, end_ns=70, thread=two, sequence=3)
    build.add(name="B0", kind=Kind.BACKWARD_FUNCTION, start_ns=100, end_ns=110, thread=one, sequence=3)
    build.add(name="later", kind=Kind.OP, start_ns=200, end_ns=210, thread=one, sequence=3)
    build.add(name="B1", kind=Kind.BACKWARD_FUNCTION, start_ns=5, end_ns=6, thread=two, sequence=9)
    document = written(build.finish(), tmp_path / "t.json")
    assert [(e["tid"], e["ts"]) for e in of_phase(document, "s")] == [(1, 0.01)]
    assert [(e["tid"], e["ts"]) for e in of_phase(document, "f")] == [(1, 0.1)]


def test_python_calls(tmp_path: pathlib.Path) -> None:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 1))
    build.add(name="train.py(3): main", kind=Kind.PYTHON, start_ns=0, end_ns=100, thread=main)
    build.add(name="scope", kind=Kind.SCOPE, start_ns=10, end_ns=90, thread=main)
    frames = (Frame("", 0, "nn.Module: Linear_4"), Frame("train.py", 3, "main"))
    build.add(name="nn.Module: Linear_4", kind=Kind.MODULE, start_ns=20, end_ns=80, thread=main, stack=frames[1:])
    build.add(name="aten::linear", kind=Kind.OP, start_ns=30, end_ns=40, thread=main, stack=frames)
    trace = build.finish(end_ns=100)
    document = written(trace, tmp_path / "t.json")
    arguments = {event["name"]: event["args"] for event in of_phase(document, "X")}
    assert arguments["train.py(3): main"] == {"Python parent id": None, "Python id": 1, "Ev Idx": 0}
    assert arguments["nn.Module: Linear_4"] == {
        "Python parent id": 1, "Python id": 2, "Python module id": 4, "Ev Idx": 2}
    assert "Call stack" not in arguments["aten::linear"], "the Python calls around it say it already"
    assert arguments["scope"]["Call stack"] == "", "it has no stack, although the Python calls say so"
    assert_same_file(with_told_modules(trace), kineto.read(tmp_path / "t.json"))


@pytest.mark.parametrize("name", ['quote " back \\ slash', "line\nbreak\ttab\x00", "µ × 中 \U0001f600", "</script>"])
def test_text_is_escaped(name: str, tmp_path: pathlib.Path) -> None:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 1, name, name))
    build.add(name=name, overload=name, module=name, kind=Kind.SCOPE, start_ns=0, end_ns=1, thread=main,
              inputs=(name,), stack=[Frame(name, 1, name)])
    trace = build.finish(end_ns=1, metadata={"key": name, name: 1})
    assert of_phase(written(trace, tmp_path / "t.json"), "X")[0]["name"] == name
    assert_same_file(trace, kineto.read(tmp_path / "t.json"))


def test_lone_surrogates_are_replaced(tmp_path: pathlib.Path) -> None:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 1, "th\udc80"))
    build.add(name="bad\ud800name", kind=Kind.SCOPE, start_ns=0, end_ns=1, thread=main, inputs=("\ud800",))
    document = written(build.finish(metadata={"k": "\ud800"}), tmp_path / "t.json", metadata={"m": "\ud800"})
    assert of_phase(document, "X")[0]["name"] == "bad?name"
    assert (document["k"], document["m"]) == ("?", "?")


def test_empty_trace(tmp_path: pathlib.Path) -> None:
    trace = TraceBuilder().finish()
    written(trace, tmp_path / "t.json")
    assert_same_file(trace, kineto.read(tmp_path / "t.json"))


def test_same_trace_gives_same_bytes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        chrome.write(small_trace(), "t.json.gz")
    assert (tmp_path / "a/t.json.gz").read_bytes() == (tmp_path / "b/t.json.gz").read_bytes()


# -- round trip --------------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = WORDS | st.sampled_from([
    "aten::add", "AddBackward0", "autograd::engine::evaluate_function: AddBackward0", "ProfilerStep#2",
    "ProfilerStep#x", "nn.Module: Linear_0", "a.py(3): f", "Memset (Device)", "cudaLaunchKernel", "cuLaunch",
    "aclLaunch"])
SIZES = st.lists(st.integers(0, 2**40), max_size=3).map(tuple)
TENSORS = st.builds(TensorInput, SIZES, st.sampled_from(["float32", "int64", "bfloat16", "odd type"]), SIZES)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | WORDS | st.complex_numbers()
INPUTS = st.lists(TENSORS | SCALARS | st.lists(TENSORS, max_size=2) | st.lists(SCALARS, max_size=2), max_size=3)
FRAMES = st.lists(st.builds(Frame, WORDS, st.integers(0, 99), WORDS), min_size=1, max_size=3)
# One number is refused by readers of Chrome traces, for which it stands for none.
INT64 = st.integers(-(2**63), 2**63 - 1).filter(lambda number: number != ABSENT)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    build = TraceBuilder()
    for number in range(draw(st.integers(1, 3))):
        build.thread(ThreadInfo(1000 + number // 2, 2000 + number, draw(WORDS.filter(lambda w: "stream" not in w))))
    device_lane = build.thread(ThreadInfo(0, 7, "stream 7"))
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, 10**7))
        kind = draw(st.sampled_from(list(Kind)))
        on_device = kind in DEVICE_KINDS
        build.add(
            name=draw(NAMES), overload=draw(WORDS), kind=kind, start_ns=start,
            end_ns=start + draw(st.integers(0, 10**6)),
            thread=device_lane if on_device else draw(st.integers(0, device_lane - 1)),
            inputs=draw(st.none() | INPUTS.map(tuple)), stack=draw(st.none() | FRAMES), module=draw(st.none() | WORDS),
            sequence=draw(st.integers(-1, 3)), step=draw(st.integers(0, 4)), flops=draw(st.integers(-1, 2**62)),
            line=draw(st.integers(0, 3)),
            device=draw(st.sampled_from([1, NPU] if on_device else [0, 1, NPU])),
            device_index=0 if on_device else draw(st.integers(-1, 2)), correlation=draw(st.integers(0, 3)))
    for _ in range(draw(st.integers(0, 3))):
        build.add_row("memory", time_ns=draw(st.integers(0, 10**7)), thread=0, size_bytes=draw(INT64),
                      address=draw(INT64), total_bytes=draw(INT64), reserved_bytes=draw(INT64),
                      device=draw(st.sampled_from([0, NPU])), device_index=draw(st.integers(-1, 2)),
                      line=draw(st.integers(0, 3)))
    trace = build.finish(
        start_ns=0, end_ns=draw(st.integers(0, 10**8)), epoch_ns=draw(st.integers(0, 4 * 10**18)),
        dropped=draw(st.integers(0, 2)),
        metadata=draw(st.dictionaries(st.sampled_from(["record_shapes", "with_stack"]), st.booleans())))
    return check(trace)


@settings(max_examples=examples(200), deadline=None)
@given(trace=traces(), suffix=st.sampled_from([".json", ".json.gz"]))
def test_round_trip(trace: Trace, suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    chrome.write(trace, path)
    again = check(kineto.read(path))
    # Categories of events of no known kind are kept by name, so that they survive another round.
    again.metadata.pop("other_categories", None)
    assert_same_file(with_told_modules(trace), again)


@pytest.mark.parametrize("epoch_ns", [4_471_845_018_963_956, 7_889_237_000_000_000, 4_503_599_627_370_000, 0])
def test_no_nanosecond_is_lost_in_a_file(epoch_ns: int, tmp_path: pathlib.Path) -> None:
    """Times have as many digits as a float holds; reading must not round them twice."""
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 1))
    for start in range(2000):
        build.add(name="a", kind=Kind.OP, start_ns=start, end_ns=start + 1, thread=main)
    trace = build.finish(epoch_ns=epoch_ns, end_ns=3000)
    chrome.write(trace, tmp_path / "t.json")
    assert_same_file(trace, kineto.read(tmp_path / "t.json"))


def test_comparison_finds_differences() -> None:
    assert_same_file(small_trace(), small_trace())
    with pytest.raises(AssertionError, match="end_ns"):
        assert_same_file(small_trace(), small_trace(end_ns=7))
    with pytest.raises(AssertionError, match="dropped"):
        assert_same_file(small_trace(), small_trace(dropped=1))
    with pytest.raises(AssertionError, match="metadata"):
        assert_same_file(small_trace(), small_trace(metadata={"with_stack": 1}))
    for column in ("name", "overload", "kind", "sequence", "inputs", "module", "step", "device", "flops", "parent"):
        changed = small_trace()
        changed.events[column] = changed.events[column].copy()
        changed.events[column][1] = 0 if changed.events[column][1] > 0 else -1 + (changed.events[column][1] < 0)
        if column == "inputs":
            changed.events[column][1] = -1
        if column == "device":
            changed.events[column][1] = NPU
        with pytest.raises(AssertionError, match=f"events.{column}"):
            assert_same_file(small_trace(), changed)


# -- reading -----------------------------------------------------------------------------------------------------------

KINETO = {
    "schemaVersion": 1, "record_shapes": 1, "baseTimeNanoseconds": 1_000_000, "note": "mine", "traceEvents": [
        {"ph": "M", "name": "process_name", "ts": 0, "pid": 5, "tid": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "thread_name", "ts": 0, "pid": 5, "tid": 6, "args": {"name": "thread 6 (worker)"}},
        {"ph": "M", "name": "thread_name", "ts": 0, "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 5, "tid": 6, "ts": 1, "dur": 100.5},
        {"ph": "X", "cat": "python_function", "name": "a.py(9): go", "pid": 5, "tid": 6, "ts": 2, "dur": 50,
         "args": {"Python id": 1, "Python parent id": None}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::cat", "pid": 5, "tid": 6, "ts": 3.25, "dur": 9.001, "args": {
            "Input Dims": [[[2], [3]], []], "Input type": ["TensorList", "Scalar"], "Input Strides": [[[1], [1]], []],
            "Concrete Inputs": ["", "0"], "Sequence number": 4, "Fwd thread id": 0}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 6, "ts": 4, "dur": 1,
         "args": {"correlation": 77}},
        {"ph": "X", "cat": "kernel", "name": "cat_kernel", "pid": 0, "tid": 7, "ts": 6, "dur": 2,
         "args": {"correlation": 77, "device": 0, "stream": 7}},
        {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: Acc", "pid": 5, "tid": 6,
         "ts": 60, "dur": 9},
        {"ph": "X", "cat": "cpu_op", "name": "Acc", "pid": 5, "tid": 6, "ts": 61, "dur": 2},
        {"ph": "X", "cat": "cpu_op", "name": "CatBackward0", "pid": 5, "tid": 6, "ts": 71, "dur": 2,
         "args": {"Sequence number": 4, "Fwd thread id": 1}},
        {"ph": "X", "cat": "strange", "name": "what", "pid": 5, "tid": "text", "ts": 200, "dur": 1},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 5, "tid": 6, "ts": 5.5, "s": "t", "args": {
            "Total Reserved": 9, "Total Allocated": 8, "Bytes": -7, "Device Id": 0, "Device Type": 1, "Addr": 6}},
        {"ph": "s", "id": 1, "pid": 5, "tid": 6, "ts": 3.25, "cat": "fwdbwd", "name": "fwdbwd"},
    ],
}


def test_reads_what_pytorch_writes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pytorch.json"
    path.write_text(json.dumps(KINETO))
    trace = check(kineto.read(path))
    rows = {trace.names[name]: row for row, name in enumerate(trace.events["name"].tolist())}

    def column(name: str, *events: str) -> list[int]:
        return [int(trace.events[name][rows[event]]) for event in events]

    assert {name: Kind(int(trace.events["kind"][row])) for name, row in rows.items()} == {
        "ProfilerStep#3": Kind.STEP, "a.py(9): go": Kind.PYTHON, "aten::cat": Kind.OP,
        "cudaLaunchKernel": Kind.LAUNCH, "cat_kernel": Kind.KERNEL, "Acc": Kind.BACKWARD_FUNCTION,
        "autograd::engine::evaluate_function: Acc": Kind.BACKWARD, "CatBackward0": Kind.BACKWARD_FUNCTION,
        "what": Kind.OTHER}
    assert column("start_ns", "aten::cat") == [3250]
    assert column("end_ns", "aten::cat", "ProfilerStep#3") == [12_251, 101_500]
    assert column("step", "aten::cat", "what") == [3, 4]
    assert column("parent", "aten::cat", "Acc") == [
        rows["ProfilerStep#3"], rows["autograd::engine::evaluate_function: Acc"]]
    assert column("sequence", "aten::cat", "CatBackward0", "Acc") == [4, 4, -1]
    assert column("device", "cat_kernel", "aten::cat") == [1, 0]
    assert column("device_index", "cat_kernel", "aten::cat") == [0, -1]
    assert column("correlation", "cat_kernel", "cudaLaunchKernel", "aten::cat") == [77, 77, 0]
    assert trace.inputs == [([TensorInput((2,), "", (1,)), TensorInput((3,), "", (1,))], 0)]
    stack = trace.stack(column("stack", "cudaLaunchKernel")[0])
    assert [str(frame) for frame in stack] == ["a.py(9): go"]
    assert trace.threads[:2] == [ThreadInfo(5, 6, "worker", "python3"), ThreadInfo(0, 7, "stream 7", "python")]
    assert trace.threads[2].name == "text"
    assert {key: value.tolist() for key, value in trace.memory.items()} == {
        "time_ns": [5500], "thread": [0], "size_bytes": [-7], "address": [6], "total_bytes": [8],
        "reserved_bytes": [9], "device": [1], "device_index": [0], "row": [rows["aten::cat"]], "line": [0]}
    assert trace.metadata == {"record_shapes": 1, "note": "mine", "other_categories": {"what": "strange"}}
    assert (trace.epoch_ns, trace.start_ns, trace.end_ns) == (1_000_000, 1000, 201_000)
    chrome.write(trace, tmp_path / "again.json")
    assert_same_file(trace, kineto.read(tmp_path / "again.json"))


@pytest.mark.parametrize("layout", [{"indent": 2}, {}, {"separators": (",\n", ": ")}])
def test_batches_do_not_change_what_is_read(layout: dict[str, Any], tmp_path: pathlib.Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    nested = {"traceEvents": [{"ph": "X"}, {"ph": "X"}]}
    for document in (KINETO, {**KINETO, "traceName": "n"}, {"first": nested, **KINETO, "traceName": "n"},
                     {**KINETO, "last": nested, "traceName": "n"}):
        path.write_text(json.dumps(document, **layout))
        whole = kineto.read(path)
        with monkeypatch.context() as patch:
            patch.setattr(kineto_stream, "_PIECE", 16)
            patch.setattr(kineto_stream, "_ROOM", 1)
            assert_same_file(whole, kineto.read(path))
        assert len(whole) == 9
        assert whole.metadata.get("last", nested) == nested


@pytest.mark.parametrize(("content", "complaint"), [
    (b"", "not JSON"),
    (b'{"traceEvents": [', "cut short before its first event"),
    (b"\xff\xfe", "not JSON"),
    (b"[1]", "an item of traceEvents should be an object"),
    (b"[]", "a list without events"),
    (b"3", "top level should be an object"),
    (b"{}", "no list traceEvents"),
    (b'{"traceEvents": {}}', "no list traceEvents"),
    (b'{"traceEvents": [3]}', "an item of traceEvents should be an object"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "args": 3}]}', "object as args"),
    (b'{"traceEvents": [], "baseTimeNanoseconds": "x"}', "baseTimeNanoseconds should be an integer"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": "x"}]}', "ts should be a number"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1}]}', "an event without a time"),
    (b'{"traceEvents": [{"ph": "X", "name": 3, "pid": 1, "tid": 1, "ts": 1}]}', "name should be a string"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "pid": [], "tid": 1, "ts": 1}]}', "pid and tid should be"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "args": {"Sequence number": "x"}}]}',
     "Sequence number should be an integer"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "args": {"Kind": 99}}]}', "Kind should"),
    (b'{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "args": {"Input Dims": [[]], '
     b'"Input type": []}}]}', None),
    (b'{"traceEvents": [{"ph": "B", "name": "a", "pid": 1, "tid": 1, "ts": 1}]}', "begin and end events"),
    (gzip.compress(b'{"traceEvents": []}', mtime=0)[:-12], "ends before its first event"),
    (b"\x1f\x8bnonsense", "gzip stream is damaged"),
])
def test_malformed_files(content: bytes, complaint: str | None, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    if complaint is None:
        assert len(kineto.read(path)) == 1
        return
    with pytest.raises(ValueError, match=rf"cannot read .*broken\.json as a Chrome trace: .*{complaint}"):
        kineto.read(path)


def test_missing_file_is_an_os_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        kineto.read(tmp_path / "absent.json")


# -- lists of events and averages --------------------------------------------------------------------------------------


def event(name: str = "aten::add", **facts: Any) -> SimpleNamespace:
    values = {
        "id": 1, "key": name, "name": name, "trace_name": name, "overload_name": "Tensor", "thread": 3,
        "is_remote": False,
        "node_id": -1, "kernels": [], "cpu_parent": None,
        "time_range": SimpleNamespace(start=1.5, end=4.0, elapsed_us=lambda: 2.5),
        "device_type": SimpleNamespace(name="CPU"), "device_index": 0, "sequence_nr": -1, "cpu_time_total": 2.5,
        "self_cpu_time_total": 2.0, "device_time_total": 0, "self_device_time_total": 0, "cpu_memory_usage": 0,
        "self_cpu_memory_usage": 0, "device_memory_usage": 0, "self_device_memory_usage": 0, "flops": 0,
        "input_shapes": [[2, 3], []], "stack": [],
    }
    return SimpleNamespace(**{**values, **facts})


def average(key: str = "aten::add", **facts: Any) -> SimpleNamespace:
    values = vars(event()).copy()
    for name in ("time_range", "trace_name", "name"):
        del values[name]
    return SimpleNamespace(**{**values, "key": key, "count": 2, "cpu_time": 1.25, "device_time": 0.0, **facts})


def test_event_list_as_chrome_trace(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "events.json"
    remote = event("remote", is_remote=True, node_id=4)
    event_list_chrome.write([event('say "hi"', kernels=["k"]), event(trace_name=None), remote], path)
    assert json.loads(path.read_bytes()) == [
        {"name": 'say "hi"', "ph": "X", "ts": 1.5, "dur": 2.5, "tid": 3, "pid": "CPU functions", "args": {}},
        {"name": 'say "hi"', "ph": "s", "ts": 1.5, "tid": 3, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda",
         "args": {}},
        {"name": "remote", "ph": "X", "ts": 1.5, "dur": 2.5, "tid": " node_id:4, thread_id:3 ",
         "pid": "CPU functions", "args": {}},
    ]
    event_list_chrome.write([], path)
    assert json.loads(path.read_bytes()) == []


def test_averages_as_chrome_trace(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "averages.json"
    rows = [average("µ"), average("b", flops=12, input_shapes=[])]
    event_list_chrome.write(rows, path)
    first = path.read_bytes()
    event_list_chrome.write(rows, path)
    assert path.read_bytes() == first
    times = {"self_cpu_time_total": 2.0, "cpu_time_total": 2.5, "cpu_time": 1.25, "self_device_time_total": 0,
             "device_time_total": 0, "device_time": 0.0}
    assert json.loads(first.decode("utf-8")) == {"traceEvents": [
        {"name": "µ", "ph": "X", "ts": 0.0, "dur": 2.5, "pid": 0, "tid": 0, "cat": "cpu_op",
         "args": {"count": 2, "device_type": "CPU", **times, "input_shapes": "[[2, 3], []]"}},
        {"name": "b", "ph": "X", "ts": 2.5, "dur": 2.5, "pid": 0, "tid": 0, "cat": "cpu_op",
         "args": {"count": 2, "device_type": "CPU", **times, "flops": 12}},
    ]}
    event_list_chrome.write([], path, averages=True)
    assert json.loads(path.read_bytes()) == {"traceEvents": []}


def test_stacks(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "stacks.txt"
    events = [
        event(stack=["in ner;\t\n", "outer"], self_cpu_time_total=7.9, self_device_time_total=3),
        event(stack=[], self_cpu_time_total=7.9), event(stack=["short"], self_cpu_time_total=0.9),
    ]
    stacks.write(events, path, "self_cpu_time_total")
    assert path.read_text() == "outer;in_ner___;aten::add 7\n"
    for metric in stacks.METRICS[1:]:
        stacks.write(events, path, metric)
        assert path.read_text() == "outer;in_ner___;aten::add 3\n"
    with pytest.raises(ValueError, match=r"metric should be one of: \['self_cpu_time_total', 'self_cuda_time_total', "
                                         r"'self_xpu_time_total', 'self_privateuse1_time_total'\]"):
        stacks.write(events, path, "cpu_time_total")


def test_csv_and_json_leave_unknown_flops_empty(tmp_path: pathlib.Path) -> None:
    rows = [event('a,"b"', flops=0), event(flops=None), event(flops=6, stack=["f", "g"])]
    text = tabular.to_csv(rows)
    assert text is not None
    table = list(csv.DictReader(io.StringIO(text)))
    assert [row["flops"] for row in table] == ["", "", "6"]
    assert (table[0]["name"], table[0]["start_us"], table[0]["input_shapes"]) == ('a,"b"', "1.5", "[[2,3],[]]")
    records = json.loads(tabular.to_json(rows) or "")
    assert [row["flops"] for row in records] == [None, None, 6]
    assert (records[2]["stack"], records[0]["device_type"]) == (["f", "g"], "CPU")
    assert tabular.to_csv(rows, tmp_path / "t.csv") is None
    assert (tmp_path / "t.csv").read_text() == text
    tabular.to_json([], tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_bytes()) == []


def test_averages_as_rows() -> None:
    (record,) = json.loads(tabular.to_json([average(flops=8)]) or "")
    assert (record["key"], record["count"], record["cpu_time"], record["flops"]) == ("aten::add", 2, 1.25, 8)


@pytest.mark.parametrize(("convert", "package"), [(tabular.to_dataframe, "pandas"), (tabular.to_arrow, "pyarrow")])
def test_missing_package_is_named(convert: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}.*mindtorch-v2\[analysis\]"):
        convert([event()])


def test_dataframe() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = tabular.to_dataframe([event(flops=0), event(flops=6)])
    assert frame["flops"].isna().tolist() == [True, False]
    assert frame["flops"][1] == 6
    assert frame["name"].tolist() == ["aten::add"] * 2


def test_arrow() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = tabular.to_arrow([event(flops=0, stack=["f"]), event(flops=6)])
    assert table["flops"].to_pylist() == [None, 6]
    assert table["stack"].to_pylist() == [["f"], []]
    assert table["input_shapes"].to_pylist() == ["[[2,3],[]]"] * 2
