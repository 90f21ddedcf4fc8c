"""Chrome traces are read piece by piece: of any layout, by both twins, cut short, damaged, of torch_npu."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mtprof
from length import examples
from mtprof.builder import TraceBuilder
from mtprof.export import chrome
from mtprof.schema import KINETO_TABLES, Kind
from mtprof.store import kineto_scan, kineto_stream
from mtprof.store.kineto_columns import DEFAULTS, INTS, TEXTS
from mtprof.tables.check import problems
from mtprof.tables.compare import assert_traces_equal
from mtprof.trace import Frame, TensorInput, ThreadInfo, Trace

SCANNERS = {"python": kineto_scan.scan}
if kineto_scan.scanner() is not kineto_scan.scan:
    SCANNERS["c"] = kineto_scan.scanner()
LOOSE = settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=SCANNERS, autouse=True)
def twin(request, monkeypatch):
    monkeypatch.setattr(kineto_stream, "scanner", lambda: SCANNERS[request.param])


def small_trace() -> Trace:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 2, "main"))
    for number in range(20):
        build.add(
            name=f"aten::mul{number % 3}",
            kind=Kind.OP,
            start_ns=number * 50,
            end_ns=number * 50 + 30,
            thread=main,
            inputs=(TensorInput((2, number % 2), "float32", (3, 1)), 1.5),
            stack=[Frame("a.py", 3, "gö")],
        )
        build.add_row("memory", time_ns=number * 50 + 5, thread=main, size_bytes=24, address=4096)
    return build.finish(start_ns=0, end_ns=1000, epoch_ns=5 * 10**17, metadata={"with_stack": True})


def load(path, **expected):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        recording = mtprof.load(path)
    return recording, [str(one.message) for one in seen]


# -- what both twins make of a list ------------------------------------------------------------------------------------

WORD = st.sampled_from(
    [
        "ph",
        "cat",
        "name",
        "pid",
        "tid",
        "ts",
        "dur",
        "args",
        "Sequence number",
        "Bytes",
        "Input Dims",
        "Call stack",
        "other",
        "",
        "ä\n",
    ]
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1).filter(lambda number: number != kineto_scan.ABSENT),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["X", "i", "M", "s", "12.5", "1e3", "-7", 'name "quoted"', "\\", "ü"]),
)
ANY = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3), max_leaves=6
)
TIME = (
    st.integers(-(10**7), 10**15)
    | st.decimals(0, 10**12, places=3).map(float)
    | st.decimals(0, 9999, places=3).map(str)
)
EVENT = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "i", "M", "s", "C"]),
        "name": st.sampled_from(["a", 'b"', "[memory]", "ö"]),
        "ts": TIME,
    },
    optional={
        "cat": st.sampled_from(["cpu_op", "kernel", "async_npu"]),
        "pid": st.integers(0, 3) | st.just("Spans"),
        "tid": st.integers(0, 3),
        "dur": TIME | st.none(),
        "id": st.integers(0, 3),
        "args": st.none()
        | st.dictionaries(WORD.filter(lambda key: key not in ("Sequence number", "Bytes")), ANY, max_size=3)
        | st.fixed_dictionaries({"Sequence number": st.integers(-1, 2**63 - 1)}),
    },
)


def told(scanner, data: bytes, room: int = 7):
    """What a scanner says, with numbers replaced by what they stand for."""
    pairs, lanes, rests = {}, {}, {}
    out = np.empty((kineto_scan.FIXED + len(INTS), room), np.int64)
    rows, found, place, first, closed = [], [], 0, True, False
    while not closed:
        before = place
        try:
            count, place, closed, first, others = scanner(
                data, place, first, INTS, TEXTS, DEFAULTS, pairs, lanes, rests, out
            )
        except ValueError:
            return "fault"
        names = [[json.loads((b"[%b]" % key).decode("utf-8", "replace")) for key in known] for known in (pairs, lanes)]
        texts = [json.loads((b"{%b}" % key[:-1]).decode("utf-8", "replace")) for key in rests] + [None]
        rows += [
            (row[0], names[0][row[1]], names[1][row[2]], row[3:5], texts[row[5]], row[6:])
            for row in out[:, :count].T.tolist()
        ]
        found += [json.loads(one.decode("utf-8", "replace")) for one in others]
        if place == before and not closed:
            return rows, found, data[place:]
    return rows, found, place


@pytest.mark.skipif("c" not in SCANNERS, reason="the C reader is not built")
@LOOSE
@given(
    events=st.lists(EVENT | ANY, max_size=5),
    layout=st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}]),
    escape=st.booleans(),
    room=st.sampled_from([1, 7]),
)
def test_both_twins_say_the_same(events, layout, escape, room):
    data = json.dumps(events, ensure_ascii=escape, **layout).encode()[1:]
    ours, theirs = (told(scanner, data, room) for scanner in SCANNERS.values())
    assert ours == theirs


@pytest.mark.skipif("c" not in SCANNERS, reason="the C reader is not built")
@LOOSE
@given(events=st.lists(EVENT, min_size=1, max_size=3), data=st.data())
def test_both_twins_meet_any_bytes(events, data):
    """Neither crashes, and the C one accepts nothing that the Python one refuses."""
    whole = bytearray(json.dumps(events, ensure_ascii=False).encode()[1:])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 4))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"{", b"]", b"\\"])
        )
        if not whole:
            break
    content = bytes(whole)
    found = told(SCANNERS["c"], content)
    if found != "fault" and isinstance(found[2], int):
        try:
            content.decode()
        except UnicodeDecodeError:
            return
        assert json.loads(b"[" + content[: found[2]]) is not None


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_pieces_of_any_size(tmp_path, monkeypatch, piece):
    chrome.write(small_trace(), tmp_path / "t.json")
    monkeypatch.setattr(kineto_stream, "_PIECE", piece)
    monkeypatch.setattr(kineto_stream, "_ROOM", 1)
    assert_traces_equal(mtprof.load(tmp_path / "t.json").trace, small_trace(), tables=KINETO_TABLES)


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_files_that_are_cut_short(tmp_path, suffix):
    """Wherever the cut is: the complete part, with a warning, or one clear error."""
    chrome.write(small_trace(), tmp_path / f"whole{suffix}")
    content = (tmp_path / f"whole{suffix}").read_bytes()
    counts = []
    for end in range(0, len(content) - 1, max(1, len(content) // 150)):
        (tmp_path / "cut").write_bytes(content[:end])
        try:
            recording, seen = load(tmp_path / "cut")
        except mtprof.BadFile:
            counts.append(0)
            continue
        assert any("cut short" in one for one in seen) or content[end:].strip(b"\n}") == b"" or suffix.endswith("gz")
        assert list(problems(recording.trace)) == []
        counts.append(len(recording.trace))
    assert counts == sorted(counts)
    assert len(set(counts)) > 10 or suffix.endswith("gz")
    assert counts[-1] == 20


@LOOSE
@given(data=st.data())
def test_damaged_bytes(data, tmp_path_factory):
    """A trace that keeps every rule, or BadFile."""
    folder = tmp_path_factory.getbasetemp()
    suffix = data.draw(st.sampled_from([".json", ".json.gz"]))
    chrome.write(small_trace(), folder / f"whole{suffix}")
    content = bytearray((folder / f"whole{suffix}").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    (folder / "bad").write_bytes(bytes(content))
    try:
        recording, _ = load(folder / "bad")
    except mtprof.BadFile:
        return
    assert list(problems(recording.trace)) == []
    recording.table()


def event(**facts):
    return {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, **facts}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"ts": 2**63 // 1000}, "ts is too large"),
        ({"ts": 10**30}, "ts is too large"),
        ({"ts": -(10**17)}, "ts is too large"),
        ({"ts": 1e300}, "ts is too large"),
        ({"ts": "9" * 60}, "ts is too large"),
        ({"dur": 2**63}, "dur is too large"),
        ({"ts": "x"}, "ts should be a number"),
        ({"ts": True}, "ts should be a number"),
        ({"ts": []}, "ts should be a number"),
        ({"args": {"correlation": 2**63}}, "correlation is too large"),
        ({"args": {"device": 2**40}}, "device should be"),
        ({"args": {"Step": 2**40}}, "Step should be"),
    ],
)
def test_numbers_that_do_not_fit(tmp_path, facts, words):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event(**facts)]}))
    with pytest.raises(mtprof.BadFile, match=words):
        mtprof.load(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("facts", "start", "end"),
    [
        ({"ts": "12.5"}, 12_500, 12_500),
        ({"ts": 12.3456, "dur": None}, 12_346, 12_346),
        ({"dur": -5}, 1000, 1000),
        ({"ts": 4_000_000_000_000_000, "dur": 0.001}, 4 * 10**18, 4 * 10**18 + 1),
        ({"ts": 1.5e3, "dur": "7"}, 1_500_000, 1_507_000),
        ({"ts": "1695812345678901.123", "dur": 1}, 1695812345678901123, 1695812345678902123),
        ({"name": "ProfilerStep#" + "9" * 5000, "cat": "user_annotation"}, 1000, 1000),
        ({"name": "ProfilerStep#9999999999", "cat": "user_annotation"}, 1000, 1000),
    ],
)
def test_times_and_names_that_are_odd(tmp_path, facts, start, end):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event(**facts)]}))
    recording = mtprof.load(tmp_path / "t.json")
    events = recording.trace.events
    assert (events["start_ns"].tolist(), events["end_ns"].tolist()) == ([start], [end])
    recording.table()
    recording.step_summary()
    recording.export_chrome_trace(tmp_path / "again.json")
    assert_traces_equal(mtprof.load(tmp_path / "again.json").trace, recording.trace, tables=KINETO_TABLES)


def test_an_event_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(kineto_stream, "LARGEST_VALUE", 1 << 20)
    monkeypatch.setattr(kineto_stream, "_PIECE", 1 << 16)
    (tmp_path / "t.json").write_bytes(b'{"traceEvents": [{"ph": "' + b"x" * (1 << 22))
    with pytest.raises(mtprof.BadFile, match="an event has more than 1 MB"):
        mtprof.load(tmp_path / "t.json")


# -- torch_npu ---------------------------------------------------------------------------------------------------------


def test_what_torch_npu_writes(tmp_path):
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in ((7, "Python"), (8, "CANN"), (9, "Ascend Hardware"), (10, "Overlap Analysis"))
    ]
    names += [
        {"ph": "M", "name": "process_labels", "pid": 9, "tid": 0, "args": {"labels": "NPU 3"}},
        {"ph": "M", "name": "thread_name", "pid": 9, "tid": 2, "args": {"name": "Stream 2"}},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 70, "args": {"name": "Thread 70"}},
    ]
    stack = "/a/train.py(9): step;\r\n/a/train.py(30): <module>"
    events = [
        event(
            name="aten::mm",
            pid=7,
            tid=70,
            ts="1695812345678900.000",
            dur=50.0,
            args={
                "Sequence number": 4,
                "Fwd thread id": 0,
                "Call stack": stack,
                "Input Dims": [[2, 3], [3, 4]],
                "Input type": ["c10::Half", "c10::Half"],
            },
        ),
        {
            "ph": "X",
            "name": "AscendCL@aclnnMm",
            "pid": 8,
            "tid": 70,
            "ts": "1695812345678910.000",
            "dur": 5.5,
            "args": {"Thread Id": 70, "level": "acl", "connection_id": 12},
        },
        {
            "ph": "X",
            "name": "MatMulV2",
            "pid": 9,
            "tid": 2,
            "ts": "1695812345678930.250",
            "dur": 30.0,
            "args": {"Model Id": 4294967295, "Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 3, "connection_id": 12},
        },
        {"ph": "X", "name": "MEMCPY_ASYNC", "pid": 9, "tid": 2, "ts": "1695812345679000.000", "dur": 1, "args": {}},
        {"ph": "X", "name": "Free", "pid": 10, "tid": 2, "ts": "1695812345678930.250", "dur": 3, "args": {}},
    ]
    flow = {"bp": "e", "name": "torch_to_npu", "id": "1695812345678930250", "cat": "async_npu"}
    flows = [
        {"ph": "s", "pid": 7, "tid": 70, "ts": "1695812345678900.000", **flow},
        {"ph": "f", "pid": 9, "tid": 2, "ts": "1695812345678930.250", **flow},
    ]
    (tmp_path / "trace_view.json").write_text(json.dumps(names + events + flows))
    recording = mtprof.load(tmp_path / "trace_view.json")
    trace = recording.trace
    kinds = {trace.names[name]: Kind(kind) for name, kind in zip(trace.events["name"], trace.events["kind"])}
    assert kinds == {
        "aten::mm": Kind.OP,
        "AscendCL@aclnnMm": Kind.LAUNCH,
        "MatMulV2": Kind.KERNEL,
        "MEMCPY_ASYNC": Kind.COPY,
        "Free": Kind.OTHER,
    }
    rows = {row.key: row for row in recording.key_averages()}
    assert rows["MatMulV2"].device_type == "NPU"
    assert rows["aten::mm"].device_time_total == 30.0
    kernel = next(one for one in recording.events() if one.name == "MatMulV2")
    assert (kernel.device_index, kernel.time_range.elapsed_us()) == (3, 30.0)
    op = trace.events["kind"].tolist().index(Kind.OP)
    assert trace.stack(int(trace.events["stack"][op])) == (
        Frame("/a/train.py", 9, "step"),
        Frame("/a/train.py", 30, "<module>"),
    )
    assert recording.use_device == "npu"


@pytest.mark.parametrize("name", list(SCANNERS))
def test_arrows_at_the_end_cut_nothing_short(tmp_path, monkeypatch, name):
    monkeypatch.setattr(kineto_stream, "scanner", lambda: SCANNERS[name])
    event = {"ph": "X", "name": "a", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    arrow = {"ph": "s", "name": "x", "id": 1, "pid": 1, "tid": 1, "ts": 1}
    items = [event, *[arrow] * 3000, event, *[arrow] * 3000]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": items}, indent=1))
    assert len(mtprof.load(tmp_path / "t.json").trace) == 2
