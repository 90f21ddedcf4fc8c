"""Side tables about device work: in our file, in Chrome traces as PyTorch writes them, and as views."""

from __future__ import annotations

import json

import pytest

import mtprof
from mtprof.builder import TraceBuilder
from mtprof.export import chrome
from mtprof.schema import KINETO_TABLES, Direction, Kind
from mtprof.tables.check import check
from mtprof.tables.compare import assert_traces_equal
from mtprof.trace import ThreadInfo, Trace

NPU = 20


def device_trace() -> Trace:
    """An op that launches a copy, a kernel and a fill on one stream of a device. Rows are added out of order."""
    build = TraceBuilder()
    main, stream = build.thread(ThreadInfo(1, 1)), build.thread(ThreadInfo(0, 7, "stream 7"))
    on_device = {"thread": stream, "device": NPU, "device_index": 0}
    build.add(name="aclrtMemset", kind=Kind.FILL, start_ns=900, end_ns=1000, correlation=3, **on_device)
    build.add(name="Memcpy HtoD (Pinned -> Device)", kind=Kind.COPY, start_ns=100, end_ns=300, correlation=1,
              **on_device)
    build.add(name="MatMulV2", kind=Kind.KERNEL, start_ns=400, end_ns=800, correlation=2, **on_device)
    build.add(name="D2H", kind=Kind.COPY, start_ns=1000, end_ns=3000, correlation=4, **on_device)
    build.add(name="aten::mm", kind=Kind.OP, start_ns=0, end_ns=90, thread=main)
    for number in range(1, 5):
        build.add(name="aclrtLaunch", kind=Kind.LAUNCH, start_ns=number * 10, end_ns=number * 10 + 5, thread=main,
                  correlation=number)
    build.add_row("copies", row=1, size_bytes=800, direction=Direction.HOST_TO_DEVICE)
    build.add_row("copies", row=0, size_bytes=64)
    build.add_row("copies", row=3, size_bytes=1000, direction=Direction.DEVICE_TO_HOST)
    for time_ns, device_ns, error_ns in ((10, 1_000_010, 40), (1_000_010, 2_000_110, 15)):
        build.add_row("clocks", time_ns=time_ns, device_ns=device_ns, error_ns=error_ns, device=NPU, device_index=0)
    return check(build.finish(end_ns=3000, epoch_ns=10**15))


def events_of(path) -> dict[str, dict]:
    return {event["name"]: event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"}


def test_rows_follow_their_events():
    trace = device_trace()
    assert [trace.names[trace.events["name"][row]] for row in trace.copies["row"]] == [
        "Memcpy HtoD (Pinned -> Device)", "aclrtMemset", "D2H"]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.mtp"])
def test_files_keep_them(tmp_path, name):
    if name == "t.mtp":
        pytest.importorskip("pyarrow")
        mtprof.Recording(device_trace()).save(tmp_path / name)
    else:
        chrome.write(device_trace(), tmp_path / name)
    assert_traces_equal(mtprof.load(tmp_path / name).trace, device_trace(), tables=KINETO_TABLES)


def test_chrome_traces_have_the_words_of_kineto(tmp_path):
    chrome.write(device_trace(), tmp_path / "t.json")
    found = events_of(tmp_path / "t.json")
    copy = found["Memcpy HtoD (Pinned -> Device)"]
    assert (copy["cat"], copy["pid"], copy["tid"]) == ("gpu_memcpy", 0, 7)
    assert {"device": 0, "stream": 7, "correlation": 1, "bytes": 800, "memory bandwidth (GB/s)": 4}.items() <= \
        copy["args"].items()
    assert found["aclrtMemset"]["cat"] == "gpu_memset"
    assert found["MatMulV2"]["cat"] == "kernel"
    assert found["aclrtLaunch"]["cat"] == "privateuse1_runtime"
    assert found["MatMulV2"]["args"]["External id"] == found["aten::mm"]["args"]["External id"]
    arrows = [event["ph"] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]
              if event.get("cat") == "ac2g"]
    assert sorted(arrows) == ["f"] * 4 + ["s"] * 4


def test_copies_that_pytorch_wrote(tmp_path):
    events = [{"ph": "X", "cat": "gpu_memcpy", "name": f"Memcpy {way} (Device -> Pageable)", "pid": 0, "tid": 7,
               "ts": 10 * number, "dur": 5, "args": {"device": 0, "stream": 7, "bytes": 100, "correlation": number}}
              for number, way in enumerate(["DtoH", "HtoD", "DtoD", "PtoP"])]
    events.append({"ph": "X", "cat": "cpu_op", "name": "other", "pid": 1, "tid": 1, "ts": 0, "args": {"bytes": 5}})
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    trace = mtprof.load(tmp_path / "t.json").trace
    assert trace.copies["direction"].tolist() == [3, 2, 4, 5]
    assert trace.copies["size_bytes"].tolist() == [100] * 4


def test_copies_by_direction():
    rows = mtprof.Recording(device_trace()).copies()
    assert [(row.device, row.direction, row.count, row.size_bytes, row.gb_per_s) for row in rows] == [
        ("npu:0", "device_to_host", 1, 1000, 0.5), ("npu:0", "host_to_device", 1, 800, 4.0),
        ("npu:0", "fill", 1, 64, 0.64)]
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert list(rows.to_dataframe().columns) == ["device", "direction", "count", "size_bytes", "time_us", "gb_per_s"]


def test_a_trace_without_them_says_so():
    with pytest.raises(mtprof.MissingTable, match="no table 'copies'"):
        mtprof.Recording(TraceBuilder().finish()).copies()


def test_collectives(tmp_path):
    said = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 100, "Out msg nelems": 100,
            "Group size": 4, "Process Group Name": "0", "Process Group Description": "default_pg",
            "Process Group Ranks": "[0, 1, 2, 3]", "Rank": 2, "Seq": 9}
    events = [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 0, "dur": 1,
               "args": said},
              {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 20,
               "ts": 1, "dur": 0.4, "args": {**said, "device": 0, "stream": 20}}]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    recording = mtprof.load(tmp_path / "t.json")
    row, = recording.collectives()
    assert (row.where, row.operation, row.group, row.group_size, row.count) == ("cuda:0", "allreduce", "0", 4, 1)
    assert (row.size_bytes, row.time_us, row.gb_per_s, row.bus_gb_per_s) == (400, 0.4, 1.0, 1.5)
    chrome.write(recording.trace, tmp_path / "again.json")
    assert said.items() <= events_of(tmp_path / "again.json")["record_param_comms"]["args"].items()
    assert_traces_equal(mtprof.load(tmp_path / "again.json").trace, recording.trace, tables=KINETO_TABLES)


@pytest.mark.parametrize(("key", "value", "words"), [
    ("In msg nelems", "many", "In msg nelems should be an integer of 64 bits, not 'many'"),
    ("Group size", 2**31, "Group size should be an integer of 32 bits"),
    ("Rank", 1.5, "Rank should be an integer"),
])
def test_values_that_make_no_sense(tmp_path, key, value, words):
    event = {"ph": "X", "cat": "cpu_op", "name": "c", "pid": 1, "tid": 1, "ts": 0,
             "args": {"Collective name": "send", key: value}}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event]}))
    with pytest.raises(mtprof.BadFile, match=words):
        mtprof.load(tmp_path / "t.json")


def test_clocks():
    row, = mtprof.Recording(device_trace()).clocks()
    assert (row.device, row.comparisons, row.error_us) == ("npu:0", 2, 0.04)
    assert (row.offset_us, row.drift_ppm) == (1000, 100)


@pytest.mark.parametrize(("tables", "words"), [
    ([], "mtprof should be an object"),
    ({"clocks": {"time_ns": [1]}}, "clocks should have the lists time_ns, device_ns"),
    ({"clocks": {"time_ns": [1], "device_ns": [], "error_ns": [], "device": [], "device_index": []}},
     "different lengths"),
    ({"clocks": {"time_ns": [2**70], "device_ns": [1], "error_ns": [1], "device": [1], "device_index": [1]}},
     "clocks.time_ns should be an integer of 64 bits"),
])
def test_tables_at_the_top_that_make_no_sense(tmp_path, tables, words):
    (tmp_path / "t.json").write_text(json.dumps({"mtprof": tables, "traceEvents": []}))
    with pytest.raises(mtprof.BadFile, match=words):
        mtprof.load(tmp_path / "t.json")
