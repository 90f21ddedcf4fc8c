"""Analyses of device work, and the two kinds of advice that need a device, on small traces made by hand."""

from __future__ import annotations

import json

from mtprof.analysis import Analysis, Verdict
from mtprof.analysis.device.critical_path import critical_path
from mtprof.analysis.device.idle import idle_times
from mtprof.analysis.device.kernels import kernel_breakdown
from mtprof.analysis.device.launches import launch_statistics
from mtprof.analysis.device.queue import queue_lengths
from mtprof.analysis.device.temporal import temporal_breakdown
from mtprof.builder import TraceBuilder
from mtprof.recording import Recording
from mtprof.schema import Kind
from mtprof.trace import Frame, ThreadInfo

US = 1000
CUDA = 1


class Program:
    """Writes down what a host and a device did; times in microseconds."""

    def __init__(self) -> None:
        self.build = TraceBuilder()
        self.host = self.build.thread(ThreadInfo(1, 1, "main"))
        self.streams = {number: self.build.thread(ThreadInfo(0, number, f"stream {number}")) for number in (7, 20)}
        self.correlation = 0

    def event(self, name: str, kind: Kind, start: float, end: float, **more: object) -> None:
        self.build.add(name=name, kind=kind, start_ns=int(start * US), end_ns=int(end * US),
                       thread=more.pop("thread", self.host), **more)

    def launch(self, name: str, call: tuple[float, float], work: tuple[float, float], stream: int = 7,
               kind: Kind = Kind.KERNEL) -> None:
        self.correlation += 1
        self.event("cudaLaunchKernel", Kind.LAUNCH, *call, correlation=self.correlation)
        self.event(name, kind, *work, thread=self.streams[stream], device=CUDA, device_index=0,
                   correlation=self.correlation)

    def analysis(self, end: float) -> Analysis:
        return Analysis(Recording(self.build.finish(start_ns=0, end_ns=int(end * US))))


def two_streams() -> Analysis:
    program = Program()
    program.launch("gemm", (0, 10), (10, 40))
    program.launch("ncclDevKernel_AllReduce", (10, 20), (30, 60), stream=20)
    program.launch("Memcpy HtoD", (20, 25), (70, 80), kind=Kind.COPY)
    program.launch("gemm", (90, 95), (100, 110))
    return program.analysis(110)


def test_temporal_breakdown():
    found, = temporal_breakdown(two_streams())
    assert (found.device, found.total_ns) == ("cuda:0", 100 * US)
    parts = (found.computation_ns, found.communication_ns, found.memory_ns, found.idle_ns)
    assert parts == (40 * US, 20 * US, 10 * US, 30 * US)
    assert found.overlapped_share == 10 / 30


def test_idle_time_and_its_cause():
    found, = idle_times(two_streams())
    # From 60 to 70 the copy was queued already; from 80 the host had not launched until 95, the last 5 were queued.
    assert found.idle_ns == 30 * US
    assert found.by_cause_ns == {"data": 0, "synchronisation": 0, "host": 15 * US, "kernel": 15 * US}
    assert (found.gaps, found.longest_ns) == (2, 20 * US)


def test_kernels_queue_and_launches():
    analysis = two_streams()
    rows = {row.name: row for row in kernel_breakdown(analysis)}
    assert (rows["gemm"].count, rows["gemm"].total_ns, rows["gemm"].min_ns, rows["gemm"].max_ns) == (
        2, 40 * US, 10 * US, 30 * US)
    assert {row.work for row in rows.values()} == {"computation", "communication", "memory"}
    queues = {queue.stream: queue for queue in queue_lengths(analysis)}
    assert (queues[7].launches, queues[7].max) == (3, 1)
    assert queues[20].mean == 1.0
    launches = {row.name: row for row in launch_statistics(analysis)}
    assert launches["Memcpy HtoD"].mean_delay_ns == 45 * US
    assert launches["gemm"].mean_call_ns == 7.5 * US


def test_critical_path_goes_through_the_device_that_was_waited_for():
    program = Program()
    program.event("aten::prepare", Kind.OP, 0, 20)
    program.launch("long", (20, 30), (30, 230))
    program.launch("short", (30, 40), (230, 240))
    program.event("cudaStreamSynchronize", Kind.LAUNCH, 50, 240)
    program.event("aten::finish", Kind.OP, 240, 300)
    path = critical_path(program.analysis(300))
    assert path.total_ns == 300 * US
    assert path.by_lane_ns == {"host": 90 * US, "cuda:0": 210 * US}
    times = {row.name: row.time_ns // US for row in path.by_name}
    assert times == {"long": 200, "short": 10, "aten::finish": 60, "aten::prepare": 20, "cudaLaunchKernel": 10}
    assert [segment.name for segment in path.segments] == ["", "long", "short", ""]


def training(sync: bool) -> Analysis:
    """Ten steps of 100 µs; with `sync` the host waits for the device in every one and then has to catch up."""
    program = Program()
    place = [Frame("train.py", 12, "log"), Frame("train.py", 30, "main")]
    for step in range(10):
        start = 100 * step
        program.event(f"ProfilerStep#{step}", Kind.STEP, start, start + 100)
        if sync:
            program.launch("gemm", (start, start + 10), (start + 10, start + 60))
            program.event("aten::item", Kind.OP, start + 10, start + 62, stack=place)
            program.event("cudaStreamSynchronize", Kind.LAUNCH, start + 12, start + 60, stack=place)
        else:
            program.launch("gemm", (start, start + 10), (start + 10, start + 108))
    return program.analysis(1010)


def test_advice_on_synchronisation_and_an_idle_device():
    found = {finding.kind: finding for finding in training(sync=True).advice.findings}
    sync = found["synchronisation"]
    assert "aten::item" in sync.title
    assert str(sync.place) == "train.py:12 (log)"
    assert sync.saves_ns == 480 * US
    idle = found["device-idle"]
    assert "the host has not launched the next work yet" in idle.title
    assert (idle.saves_ns, idle.saves_share) == (500 * US, 0.5)
    json.dumps([finding.to_dict() for finding in found.values()])


def copying(returns_at: float) -> Analysis:
    """Ten steps of 100 µs; each copies for 50 µs, by a call that returns then or before the copy is done."""
    program = Program()
    for step in range(10):
        start = 100 * step
        program.event(f"ProfilerStep#{step}", Kind.STEP, start, start + 100)
        program.event("aten::item", Kind.OP, start, start + returns_at)
        program.launch("Memcpy DtoH", (start, start + returns_at), (start + 10, start + 60), kind=Kind.COPY)
    return program.analysis(1000)


def test_a_copy_that_returns_when_it_is_done_has_waited():
    sync, = (finding for finding in copying(62).advice.findings if finding.kind == "synchronisation")
    assert (sync.saves_ns, "mostly in aten::item" in sync.title) == (620 * US, True)
    assert "synchronisation" not in {finding.kind for finding in copying(5).advice.findings}


def test_what_a_device_waits_for_in_the_warm_up_would_not_be_saved():
    program = Program()
    program.event("ProfilerStep#0", Kind.STEP, 0, 9_000)
    program.launch("gemm", (0, 10), (10, 100))
    for step in range(1, 10):
        start = 9_000 + 100 * step
        program.event(f"ProfilerStep#{step}", Kind.STEP, start, start + 100)
        program.launch("gemm", (start, start + 10), (start + 10, start + 70))
    idle, = (finding for finding in program.analysis(10_010).advice.findings if finding.kind == "device-idle")
    assert (idle.saves_ns, round(idle.saves_share, 9)) == (9 * 40 * US, 0.4)
    assert idle.title.startswith("cuda:0 is idle for 40% of the steps")


def test_no_advice_for_a_device_that_is_kept_busy():
    advice = training(sync=False).advice
    assert advice.findings == []
    verdicts = {check.kind: check.verdict for check in advice.checks}
    assert verdicts["device-idle"] is Verdict.CLEAN
    assert verdicts["synchronisation"] is Verdict.CLEAN
