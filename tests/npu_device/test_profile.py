"""The device timeline: what a profile of work on the NPU says, against the simulator's own log."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import collectors, memory
from mindtorch_v2._backends.npu.library import library
from mindtorch_v2.profiler import ProfilerActivity, profile
from mtprof.schema import Kind

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def kernels(trace: Any) -> np.ndarray:
    return np.flatnonzero(trace.events["device"] == 20)


def test_an_event_is_the_npus() -> None:
    """The user's own test."""
    with profile() as prof:
        x = torch.ones(4, 4, device="npu")
        (x * x).sum().item()
    assert any(e["device_type"] == "NPU" for e in prof.events())
    assert torch.profiler.supported_activities() >= {ProfilerActivity.NPU}
    assert ProfilerActivity.NPU is ProfilerActivity.PrivateUse1


def test_device_work_is_tied_to_the_ops_that_queued_it() -> None:
    x = torch.randn(64, 64, device="npu", requires_grad=True)
    with profile(activities=BOTH, record_shapes=True) as prof:
        torch.relu(x @ x).sum().backward()
    by_name = {row.key: row for row in prof.key_averages()}
    for name in ("aten::mm", "aten::relu", "aten::sum", "aten::threshold_backward"):
        assert by_name[name].device_time_total > 0, name
        assert by_name[name].self_cpu_time_total > 0
    assert by_name["aten::matmul"].self_device_time_total == 0
    assert by_name["aten::matmul"].device_time_total == pytest.approx(
        sum(e.device_time_total for e in prof.events() if e.name == "aten::mm" and e.cpu_parent is not None
            and e.cpu_parent.name == "aten::matmul"))
    trace = prof.profiler.trace
    events = trace.events
    launched = {int(c) for c in events["correlation"][events["kind"] == Kind.LAUNCH]}
    for row in kernels(trace):
        assert int(events["correlation"][row]) in launched
    calls = {trace.names[n] for n in events["name"][events["kind"] == Kind.LAUNCH]}
    assert {"aclnnMm", "aclnnMmGetWorkspaceSize", "aclnnRelu"} <= calls
    table = prof.key_averages().table(sort_by="npu_time_total")
    assert "Self NPU" in table
    assert "NPU time avg" in table
    assert "the NPU was a simulator, not hardware" in table


def test_no_work_starts_before_the_call_that_queued_it() -> None:
    x = torch.randn(32, 32, device="npu")
    with profile(activities=BOTH) as prof:
        for _ in range(30):
            x = torch.tanh(x @ x)
        torch.npu.synchronize()
    trace = prof.profiler.trace
    events, error = trace.events, int(trace.clocks["error_ns"].max())
    begun = dict(zip(events["correlation"][events["kind"] == Kind.LAUNCH].tolist(),
                     events["start_ns"][events["kind"] == Kind.LAUNCH].tolist(), strict=True))
    rows = kernels(trace)
    assert len(rows) == 60
    for row in rows:
        assert events["start_ns"][row] >= begun[int(events["correlation"][row])] - error
        assert events["end_ns"][row] > events["start_ns"][row]
    assert trace.metadata["device_times"][0]["clock_error_ns"] == error
    assert trace.metadata["device_times"][0]["simulator"] is True
    assert error < 50_000_000


def test_times_are_those_of_the_simulators_log(program: Any, tmp_path: Path) -> None:
    """Sums to the nanosecond, by name; copies with their bytes."""
    done = program("""
import json, mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
x = torch.randn(64, 64, device="npu")
torch.npu.synchronize()
with profile() as prof:
    for _ in range(5):
        y = torch.relu(x @ x)
    y.zero_(); z = y.cpu().npu()
sums = {}
trace = prof.profiler.trace
for name, device, start, end in zip(*[trace.events[k].tolist() for k in ("name", "device", "start_ns", "end_ns")]):
    if device:
        sums[trace.names[name]] = sums.get(trace.names[name], 0) + end - start
print(json.dumps([sums, trace.copies["size_bytes"].tolist(), trace.copies["direction"].tolist()]))
""", MINDTORCH_NPU_SIM_LOG=str(tmp_path / "log.jsonl"))
    assert done.returncode == 0, done.stderr
    sums, sizes, directions = json.loads(done.stdout)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()][1:]
    assert sorted(sizes) == [16384, 16384, 16384]
    assert sorted(directions) == [0, 2, 3]
    for name, total in sums.items():
        entries = [e for e in log if e["name"] == name]
        if name == "MemcpyHtoD":  # one more, from before the recording
            entries = entries[-1:]
        assert total == sum(e["end"] - e["start"] for e in entries) * 20, name
    assert any("Mm" in name for name in sums)


def test_two_streams_run_at_the_same_time(simulator: Any) -> None:
    a, b = torch.randn(64, 64, device="npu"), torch.randn(64, 64, device="npu")
    simulator.configure("model", "910b,kernel_us=4000")  # so that the host is faster than the device
    other = torch.npu.Stream()
    torch.npu.synchronize()
    with profile(activities=BOTH) as prof:
        for _ in range(6):
            with torch.npu.stream(other):
                for _ in range(4):
                    a @ a
            for _ in range(4):
                b @ b
        torch.npu.synchronize()
    simulator.configure("model", "910b")
    trace = prof.profiler.trace
    rows = kernels(trace)
    events = trace.events
    lanes = {int(lane): rows[events["thread"][rows] == lane] for lane in np.unique(events["thread"][rows])}
    assert len(lanes) == 2
    assert {trace.threads[lane].tid for lane in lanes} == {other.stream_id, torch.npu.default_stream().stream_id}
    (first, second) = (list(zip(events["start_ns"][r].tolist(), events["end_ns"][r].tolist(), strict=True))
                       for r in lanes.values())
    overlap = sum(max(0, min(e1, e2) - max(s1, s2)) for s1, e1 in first for s2, e2 in second)
    assert overlap > 0
    for stream in (first, second):  # work of one stream is in order
        assert all(before[1] <= after[0] for before, after in pairwise(stream))


def test_device_memory() -> None:
    with profile(activities=BOTH, profile_memory=True) as prof:
        x = torch.empty(1 << 18, device="npu")
        y = x * 2
        del x, y
    trace = prof.profiler.trace
    mine = trace.memory["device"] == 20
    sizes = trace.memory["size_bytes"][mine].tolist()
    assert sizes == [(1 << 20) + 512] * 2 + [-(1 << 20) - 512] * 2
    assert (trace.memory["reserved_bytes"][mine] > 0).all()
    row = next(row for row in prof.key_averages() if row.key == "aten::mul")
    assert row.device_memory_usage == (1 << 20) + 512
    assert "NPU Mem" in prof.key_averages().table()


def memory_profile(where: str) -> Any:
    """Three steps of a small model with an optimizer that goes through its parameters one by one."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(where)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, foreach=False)
    x, y = torch.randn(32, 64).to(where), torch.randint(0, 10, (32,)).to(where)
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return prof


def test_memory_has_the_categories_that_it_has_on_the_cpu(tmp_path: Path) -> None:
    def counted(where: str) -> tuple[Counter, int]:
        found: Counter = Counter()
        unknown = 0
        profiled = memory_profile(where)._memory_profile()
        for _, action, (key, version), size in profiled.timeline:
            category = profiled._categories.get(key, version)
            if str(key.device) != ("cpu" if where == "cpu" else "npu:0"):
                continue
            found[action.name, category and category.name] += 1
            unknown += size if category is None and action.name == "CREATE" else 0
        return found, unknown

    (here, unknown_here), (there, unknown_there) = counted("cpu"), counted("npu")
    for action, name in (("PREEXISTING", "PARAMETER"), ("PREEXISTING", "INPUT"), ("CREATE", "GRADIENT"),
                         ("CREATE", "ACTIVATION"), ("CREATE", "AUTOGRAD_DETAIL"), ("DESTROY", "ACTIVATION"),
                         ("INCREMENT_VERSION", "PARAMETER")):
        assert there[action, name] == here[action, name], (action, name)
    assert there["CREATE", "OPTIMIZER_STATE"] == 8  # the counts of steps stay on the CPU
    assert ("PREEXISTING", None) not in there
    assert unknown_there <= unknown_here * 1.1  # blocks are multiples of 512 bytes

    prof = memory_profile("npu")
    for given in ({"device": "npu:0"}, {}):
        prof.export_memory_timeline(str(tmp_path / "timeline.json"), **given)
        times, sizes = json.loads((tmp_path / "timeline.json").read_text())
        assert len(times) == len(sizes) > 50
        most = np.array(sizes).max(0)
        assert most[1] == sum(memory.rounded(4 * count) for count in (64 * 128, 128, 128 * 10, 10))  # the parameters
        assert all(most[1:8])


def test_what_is_left_in_the_simulators_log_is_read_into_memory_that_lives() -> None:
    collector = collectors.SimulatorCollector(library())
    given = []

    def read(place: Any, most: int) -> int:
        given.append(place)
        return 3

    collector._read = read
    collector._enable = lambda on: None
    collector.stop()
    assert len(given) == 2
    assert not isinstance(given[1], int)  # an address keeps nothing alive


def test_a_profile_of_the_device_alone_and_switches() -> None:
    x = torch.ones(8, device="npu")
    with profile(activities=[ProfilerActivity.NPU]) as prof:
        x + x
    assert {e["device_type"] for e in prof.events() if e.name.startswith("aclnnAdd_")} == {"NPU"}
    assert not any(e.name == "aten::add" for e in prof.events())
    with profile(activities=BOTH) as prof:
        x + x
        prof.toggle_collection_dynamic(False, [ProfilerActivity.NPU])
        x * x
        prof.toggle_collection_dynamic(True, [ProfilerActivity.NPU])
        x - x
    names = [e.name for e in prof.events() if e["device_type"] == "NPU"]
    assert [name.split("_")[0] for name in names] == ["aclnnAdd", "aclnnSub"]


def test_a_profiler_inside_a_profiler() -> None:
    x = torch.ones(8, device="npu")
    with profile(activities=BOTH) as outer:
        x + x
        with profile(activities=BOTH) as inner:
            x * x
        x - x
    operators = [[e.name.split("_")[0] for e in prof.events() if e["device_type"] == "NPU"] for prof in (outer, inner)]
    assert operators == [["aclnnAdd", "aclnnMul", "aclnnSub"], ["aclnnMul"]]


def test_threads() -> None:
    import threading

    def work() -> None:
        x = torch.ones(8, device="npu")
        for _ in range(20):
            x = x + 1

    with profile(activities=BOTH) as prof:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    adds = [e for e in prof.events() if e.name == "aten::add"]
    assert len(adds) == 60
    assert all(e.device_time_total > 0 for e in adds)


@pytest.mark.parametrize("collector", ["events", "mspti"])
def test_other_sources_of_times(collector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2._backends.npu.library import library

    if collector == "mspti" and not library().has("msptiSubscribe"):
        pytest.skip("the simulator has no msPTI")
    x = torch.randn(128, 128, device="npu")
    torch.npu.synchronize()
    monkeypatch.setenv("MINDTORCH_NPU_COLLECTOR", collector)
    with profile(activities=BOTH) as prof:
        for _ in range(5):
            y = x @ x
        y.cpu()
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::mm"].device_time_total > 0
    assert rows["aten::to"].device_time_total > 0
    assert sum(e["device_type"] == "NPU" for e in prof.events()) == 6
    assert prof.profiler.trace.metadata["device_times"][0]["times_from"] == collector


def test_the_exported_trace(tmp_path: Path) -> None:
    x = torch.randn(64, 64, device="npu")
    with profile(activities=BOTH, profile_memory=True) as prof:
        y = torch.relu(x @ x)
        y.zero_()
        y.cpu()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    written = json.loads(path.read_text())
    events = written["traceEvents"]
    found = {e.get("cat") for e in events}
    assert {"cpu_op", "kernel", "gpu_memcpy", "gpu_memset", "privateuse1_runtime"} <= found
    kernel = next(e for e in events if e.get("cat") == "kernel")
    assert kernel["args"]["device"] == 0
    assert kernel["args"]["stream"] == kernel["tid"]
    starts = {e["id"] for e in events if e.get("ph") == "s" and e.get("cat") == "ac2g"}
    ends = {e["id"] for e in events if e.get("ph") == "f" and e.get("cat") == "ac2g"}
    assert starts
    assert starts == ends
    copy = next(e for e in events if e.get("cat") == "gpu_memcpy")
    assert copy["args"]["bytes"] == 64 * 64 * 4
    assert "simulator" in path.read_text()


def test_tables_of_torch_npu(tmp_path: Path) -> None:
    from mindtorch_v2 import _torch_npu as torch_npu

    prof_of = torch_npu.profiler
    x = torch.randn(64, 64, device="npu")
    config = prof_of._ExperimentalConfig(profiler_level=prof_of.ProfilerLevel.Level1)
    with prof_of.profile(activities=[prof_of.ProfilerActivity.CPU, prof_of.ProfilerActivity.NPU],
                         schedule=prof_of.schedule(wait=0, active=2, warmup=1),
                         on_trace_ready=prof_of.tensorboard_trace_handler(str(tmp_path)),
                         experimental_config=config) as prof:
        for _ in range(3):
            (x @ x).sum().item()
            prof.step()
    output = next(tmp_path.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT"))
    assert {path.name for path in output.iterdir()} >= {
        "trace_view.json", "kernel_details.csv", "op_statistic.csv", "step_trace_time.csv", "api_statistic.csv"}
    lines = (output / "op_statistic.csv").read_text().splitlines()
    assert lines[0].startswith("Device_id,OP Type,Core Type,Count,Total Time(us)")
    assert {line.split(",")[1] for line in lines[1:]} == {"Mm", "ReduceSum"}
    assert all(line.split(",")[3] == "2" for line in lines[1:])
    for wrong in ({"profiler_level": prof_of.ProfilerLevel.Level1, "aic_metrics": prof_of.AiCMetrics.PipeUtilization},
                  {"export_type": prof_of.ExportType.Db}):
        with pytest.raises(NotImplementedError, match="_ExperimentalConfig does not take"):
            prof_of._ExperimentalConfig(**wrong)


@pytest.mark.filterwarnings("ignore")  # it and its dependencies deprecate things of each other
def test_holistic_trace_analysis_sees_the_device(tmp_path: Path) -> None:
    analysis = pytest.importorskip("hta.trace_analysis", reason="HolisticTraceAnalysis is not installed")
    model = torch.nn.Linear(64, 64).npu()
    x = torch.randn(32, 64).pin_memory()
    with profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(3):
            model(x.npu(non_blocking=True)).relu().sum().backward()
            torch.npu.synchronize()
            prof.step()
        prof.add_metadata_json("distributedInfo", '{"backend": "hccl", "rank": 0, "world_size": 1}')
    prof.export_chrome_trace(str(tmp_path / "rank-0.json.gz"))
    found = analysis.TraceAnalysis(trace_dir=str(tmp_path), include_last_profiler_step=True)
    breakdown = found.get_temporal_breakdown(visualize=False)
    assert breakdown["compute_time(us)"][0] > 0
    kinds, kernels_found = found.get_gpu_kernel_breakdown(visualize=False)
    assert set(kinds["kernel_type"]) == {"COMPUTATION", "MEMORY"}
    assert any("Addmm" in name for name in kernels_found["name"])
    idle = found.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    assert set(idle["stream"]) == {torch.npu.default_stream().stream_id}
    copies = found.get_memory_bw_summary()
    assert "MemcpyHtoD" in str(copies)


def test_a_file_shows_what_the_recording_shows(simulator: Any, tmp_path: Path) -> None:
    """With the same names, also of the device, although the reader has no device."""
    x = torch.randn(8, 8, device="npu")
    with profile(activities=BOTH, profile_memory=True) as prof:
        (x @ x).relu()
        torch.npu.synchronize()
    prof.save(tmp_path / "run.mtp")
    prof.export_chrome_trace(str(tmp_path / "run.json"))
    table = prof.key_averages().table()
    assert "Self NPU" in table
    for name in ("run.mtp", "run.json"):
        assert torch.profiler.load(tmp_path / name).key_averages().table() == table
