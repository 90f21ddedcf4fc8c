"""A recording is saved and loaded unchanged; a damaged file gives its complete part, or one clear error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import traces

import mtprof
from length import examples
from mtprof.builder import TraceBuilder
from mtprof.schema import POOLS, TABLES, Kind
from mtprof.tables.check import check
from mtprof.tables.compare import assert_traces_equal
from mtprof.trace import Frame, TensorInput, ThreadInfo, Trace

pa = pytest.importorskip("pyarrow", reason="trace files need pyarrow")
from mtprof.store import arrow  # noqa: E402


def small_trace() -> Trace:
    build = TraceBuilder()
    main = build.thread(ThreadInfo(1, 2, "main"))
    build.add(name="step", kind=Kind.SCOPE, start_ns=0, end_ns=100, thread=main)
    build.add(name="aten::mul", kind=Kind.OP, start_ns=10, end_ns=30, thread=main, stack=[Frame("a.py", 3, "go")],
              inputs=(TensorInput((2, 3), "float32", (3, 1)), 1.5, [1, 2], None))
    build.add_row("memory", time_ns=20, thread=main, size_bytes=24, address=4096)
    return build.finish(start_ns=0, end_ns=100, epoch_ns=5, metadata={"with_stack": True, "note": "µ"})


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(trace=traces())
def test_everything_comes_back(trace, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.mtp"
    arrow.save(trace, path)
    again, cut_short = arrow.read(path)
    assert not cut_short
    assert set(again.tables) == set(trace.tables)
    for name, table in trace.tables.items():
        for column in TABLES[name]:
            found = again.tables[name][column.name]
            assert found.dtype == column.dtype
            np.testing.assert_array_equal(found, table[column.name], err_msg=f"{name}.{column.name}")
    for name in POOLS:
        assert repr(list(getattr(again, name))) == repr(list(getattr(trace, name))), name
    assert again.metadata == trace.metadata
    assert (again.start_ns, again.end_ns, again.epoch_ns, again.dropped, again.first_id) == (
        trace.start_ns, trace.end_ns, trace.epoch_ns, trace.dropped, trace.first_id)


def test_the_same_results_before_and_after(tmp_path):
    trace = small_trace()
    arrow.save(trace, tmp_path / "t.mtp")
    recording = mtprof.load(tmp_path / "t.mtp")
    check(recording.trace)
    assert_traces_equal(trace, recording.trace)
    assert recording.table() == mtprof.Recording(trace).table()
    assert repr(recording) == "<Recording t.mtp: 2 events, 0.000 s, 1 threads, with_stack>"
    assert recording.trace.stack(0) == (Frame("a.py", 3, "go"),)


def test_columns_are_read_when_asked_for(tmp_path):
    arrow.save(small_trace(), tmp_path / "t.mtp")
    trace = arrow.read(tmp_path / "t.mtp")[0]
    assert trace.events._made == {}
    assert trace.events["name"].tolist() == [1, 2]
    assert list(trace.events._made) == ["name"]
    assert not trace.events["name"].flags.writeable
    assert not trace.events["start_ns"].flags.owndata, "it is the file's own memory"


def test_other_libraries_read_it(tmp_path):
    arrow.save(small_trace(), tmp_path / "t.mtp")
    table = pa.ipc.open_file(tmp_path / "t.mtp").read_all()
    rows = table.column("events").combine_chunks().flatten()
    assert rows.field("start_ns").to_pylist() == [0, 10]
    assert table.column("names").combine_chunks().flatten().field("text").to_pylist() == ["", "step", "aten::mul"]


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.8, 0.99])
def test_a_file_that_is_cut_short(tmp_path, share):
    arrow.save(small_trace(), tmp_path / "t.mtp")
    whole = (tmp_path / "t.mtp").read_bytes()
    (tmp_path / "cut.mtp").write_bytes(whole[: int(len(whole) * share)])
    has_events = share > 0.6  # pools come first, then events
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if not has_events:
            with pytest.raises(mtprof.BadFile, match=r"cut.mtp is cut short"):
                mtprof.load(tmp_path / "cut.mtp")
            return
        recording = mtprof.load(tmp_path / "cut.mtp")
    assert "cut short" in str(seen[0].message)
    assert recording.trace.events["start_ns"].tolist() == [0, 10]


def rewritten(path, change):
    """The file with other content: `change` gets the schema and the table of rows."""
    table = pa.ipc.open_file(path).read_all()
    table = change(table)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def without_column(table, name, column):
    place = table.schema.get_field_index(name)
    kind = pa.list_(pa.struct([field for field in table.schema.field(place).type.value_type if field.name != column]))
    return table.set_column(place, pa.field(name, kind), pa.nulls(len(table), kind))


@pytest.mark.parametrize(("change", "words"), [
    (lambda t: t.replace_schema_metadata({b"mtprof": b"99"}), "has format 99"),
    (lambda t: t.replace_schema_metadata({}), "is an Arrow file, not a trace"),
    (lambda t: t.replace_schema_metadata({b"mtprof": b"x" * 99}), "has format xxxx"),
    (lambda t: t.drop_columns(["memory"]).replace_schema_metadata({b"mtprof": b"1"}), "no column memory"),
    (lambda t: t.drop_columns(["copies"]), "no column copies"),
    (lambda t: without_column(t, "memory", "row"), "table memory has no column row"),
    (lambda t: t.set_column(1, "names", pa.nulls(len(t), pa.int64())), "column names is int64"),
])
def test_files_with_a_fault(tmp_path, change, words):
    path = tmp_path / "odd.mtp"
    arrow.save(small_trace(), path)
    rewritten(path, change)
    with pytest.raises(mtprof.BadFile, match=words) as caught:
        mtprof.load(path)
    assert "odd.mtp" in str(caught.value)


def test_a_file_of_an_older_format(tmp_path):
    path = tmp_path / "old.mtp"
    arrow.save(small_trace(), path)
    newer = [name for name, table in TABLES.items() if table.since > 1]
    rewritten(path, lambda table: table.drop_columns(newer).replace_schema_metadata({b"mtprof": b"1"}))
    recording = mtprof.load(path)
    assert_traces_equal(recording.trace, small_trace())
    with pytest.raises(mtprof.MissingTable, match="no table 'copies'"):
        recording.copies()


def test_a_reference_out_of_range(tmp_path):
    trace = small_trace()
    trace = trace.with_columns("events", name=np.array([1, 77], np.int32))
    arrow.save(trace, tmp_path / "t.mtp")
    with pytest.raises(mtprof.BadFile, match=r"events\.name refers to entry 77 of names, which has 3"):
        mtprof.load(tmp_path / "t.mtp").table()


@pytest.mark.parametrize(("column", "wrong"), [("kind", 200), ("device", 77), ("device", -2)])
def test_a_code_that_nobody_knows(tmp_path, column, wrong):
    """In our file and, if it is stated there, in a Chrome trace."""
    trace = small_trace()
    trace = trace.with_columns("events", **{column: np.array([0, wrong], trace.events[column].dtype)})
    arrow.save(trace, tmp_path / "t.mtp")
    with pytest.raises(mtprof.BadFile, match=rf"t\.mtp: column events\.{column} has the code {wrong}, which is none"):
        mtprof.load(tmp_path / "t.mtp").table()
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
             "args": {{"kind": "Kind", "device": "Device Type"}[column]: wrong}}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event]}))
    with pytest.raises(mtprof.BadFile, match=r"t\.json .* (should be a number up to|has the code)"):
        mtprof.load(tmp_path / "t.json")


@pytest.mark.parametrize(("content", "words"), [
    (b"", "JSON"), (b"hello", "is not a trace"),
    (b"\x1f\x8bnot gzip", "gzip"), (b"{", "JSON"), (b"[]", "without events"),
    (b"ARROW1\0\0garbage", "cut short")])
def test_what_is_no_trace(tmp_path, content, words):
    (tmp_path / "no.bin").write_bytes(content)
    with pytest.raises(mtprof.BadFile, match=words) as caught:
        mtprof.load(tmp_path / "no.bin")
    assert "no.bin" in str(caught.value)


def test_a_directory_and_a_missing_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory"):
        mtprof.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        mtprof.load(tmp_path / "nothing.mtp")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.mtp"
    path.write_text("precious")
    monkeypatch.setattr(arrow.Writer, "table", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        arrow.save(small_trace(), path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["t.mtp"]


def test_without_pyarrow_the_error_says_what_to_install(tmp_path):
    program = ("import sys; sys.modules['pyarrow'] = None\nimport mtprof\nfrom mtprof.builder import TraceBuilder\n"
               "mtprof.Recording(TraceBuilder().finish()).save('t.mtp')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(mtprof.__file__))})
    assert "pip install 'mindtorch-v2[arrow]'" in done.stderr


# -- damage ------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_bytes(data, tmp_path_factory):
    """Results or BadFile, never anything else: no crash, no endless loop."""
    path = tmp_path_factory.getbasetemp() / "damaged.mtp"
    arrow.save(small_trace(), path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(8, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged2.mtp"  # the other one may still be mapped
    path.unlink(missing_ok=True)
    path.write_bytes(bytes(content))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mtprof.load(path)
            for name, table in recording.trace.tables.items():
                for column in TABLES[name]:
                    assert len(table[column.name]) == len(table[TABLES[name].columns[0].name])
            recording.table()
            list(recording.trace.inputs), list(recording.trace.frames)
        except mtprof.BadFile:
            return


def test_a_tree_that_goes_round(tmp_path):
    trace = small_trace().with_columns("events", parent=np.array([1, 0], np.int32))
    arrow.save(trace, tmp_path / "t.mtp")
    with pytest.raises(mtprof.BadFile, match="row 0 of events comes before the row that parent refers to"):
        mtprof.load(tmp_path / "t.mtp").table()


# -- written while it runs ---------------------------------------------------------------------------------------------

WRITES = """
import os, sys
import numpy as np
from mtprof.schema import TABLES, Kind
from mtprof.store.arrow import Writer
from mtprof.trace import ThreadInfo, empty_table

file = open(sys.argv[1], "wb", buffering=0)
writer = Writer(file)
writer.about({"start_ns": 0, "epoch_ns": 5})
writer.pool("threads", [ThreadInfo(1, 1)])
writer.pool("names", ["", "outer", "inner"])
for chunk in range(int(sys.argv[2])):
    # What ends first is written first: inner events come before the one around them, which is in a later chunk.
    start = chunk * 100
    rows = {column.name: np.full(2, column.default, column.dtype) for column in TABLES["events"]}
    rows["name"][:], rows["start_ns"][:], rows["end_ns"][:] = 2, [start + 50, start + 10], [start + 60, start + 20]
    writer.table("events", rows)
    writer.table("uses", {**{c.name: np.full(1, c.default, c.dtype) for c in TABLES["uses"]},
                          "row": np.array([2 * chunk + 1], np.int32), "address": np.array([chunk + 7])})
rows = {column.name: np.full(1, column.default, column.dtype) for column in TABLES["events"]}
rows["name"][:], rows["end_ns"][:] = 1, 100 * chunk + 100
writer.table("events", rows)
os.write(1, b"ready")
if sys.argv[3] == "killed":
    os.kill(os.getpid(), 9)
writer.about({"end_ns": 999})
writer.close()
"""


@pytest.mark.parametrize("end", ["killed", "closed", "cut"])
def test_a_file_that_was_written_while_it_ran(tmp_path, end):
    path = tmp_path / "t.mtp"
    done = subprocess.run([sys.executable, "-c", WRITES, str(path), "5", end], capture_output=True,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(mtprof.__file__))})
    assert done.stdout == b"ready", done.stderr
    if end == "cut":  # in the middle of the last chunk
        content = path.read_bytes()
        path = tmp_path / "cut.mtp"
        path.write_bytes(content[:content.rindex(b"ARROW1") - 6000])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trace = mtprof.load(path).trace
    assert [str(one.message).endswith("its last rows are missing") for one in seen] == [True] * (end != "closed")
    check(trace)
    inner = trace.events["name"] == 2
    assert inner.sum() == 10 if end != "cut" else inner.sum() >= 2
    if end != "cut":
        assert trace.events["parent"].tolist() == [-1] + [0] * 10
        assert trace.uses["row"].tolist() == [1, 3, 5, 7, 9], "rows follow their events"
