"""Advice: what is beyond a threshold is found, at its place, and what is below it is not.

Thresholds are tested on loops written down by hand, with exact shares. Planted faults are recorded for real, and are
so large that the machine's speed does not matter.
"""

from __future__ import annotations

import json
import sys

import pytest
from command import HERE
from handmade import ADAM, LOADER, MIB, Loop

import mindtorch_v2
import mtprof
from mindtorch_v2 import torch_alias
from mtprof.analysis import Analysis, Verdict
from mtprof.cli.summary import show
from mtprof.report.content import overview
from mtprof.schema import Kind
from mtprof.trace import Frame, TensorInput

LOCK = "<built-in method acquire of _thread.lock object at 0x7f12>"


def waits_for_data(share: float) -> Loop:
    loop = Loop()
    for _ in range(10):
        loop.step(1000)
        loop.event(LOADER, Kind.SCOPE, 0, 1000 * share, line=7)
        loop.event("aten::mm", Kind.OP, 1000 * share, 990)
    return loop


def tiny_ops(count: int = 100, each: float = 16, slow_ones: int = 0) -> Loop:
    """Steps of 10 ms with ops at one line; some of them were interrupted for 0.5 ms, which says nothing of the op."""
    loop = Loop()
    for _ in range(10):
        loop.step(10_000)
        now = 0.0
        for number in range(count):
            took = 500 if number < slow_ones else each
            loop.event("aten::mul", Kind.OP, now, now + took, line=12)
            now += took
        loop.event("aten::mm", Kind.OP, 9_000, 10_000, line=20)
    return loop


def computes_in_python(share: float) -> Loop:
    """Steps of 10 ms; a function of the program takes a share of each, which another of it calls."""
    loop = Loop()
    for _ in range(10):
        loop.step(10_000)
        loop.event("train.py(20): step", Kind.PYTHON, 10, 9_990)
        loop.event("features.py(9): count", Kind.PYTHON, 20, 10_000 * share)
        loop.event("aten::mm", Kind.OP, 10_000 * share + 10, 9_980)
    return loop


def unfused(ops: int = 40, length: float = 150) -> Loop:
    loop = Loop()
    for _ in range(10):
        loop.step(1000)
        loop.event("aten::mm", Kind.OP, 0, 800)
        loop.event(ADAM, Kind.SCOPE, 810, 810 + length, line=30)
        each = length / (ops + 1)
        for number in range(ops):
            loop.event("aten::mul_", Kind.OP, 811 + number * each, 811 + (number + 0.5) * each)
    return loop


def waits_for_a_lock(share: float) -> Loop:
    loop = Loop()
    for _ in range(10):
        loop.step(1000)
        loop.event(LOCK, Kind.PYTHON, 100, 100 + 1000 * share, line=15)
        loop.event("aten::mm", Kind.OP, 400, 990)
    return loop


def collects(pause: float) -> Loop:
    loop = Loop()
    for _ in range(10):
        loop.step(30_000)
        loop.event("aten::mm", Kind.OP, 0, 20_000)
        loop.event("Python GC", Kind.GC, 21_000, 21_000 + pause, line=18)
    return loop


def starts_slowly(first: float) -> Loop:
    loop = Loop()
    for number in range(10):
        more = first if number == 0 else 0.0
        loop.step(10_000 + more)
        loop.event("aten::mm", Kind.OP, 0, 9_000)
        if more:
            loop.event("tables.py(3): build", Kind.PYTHON, 9_000, 9_000 + more)
    return loop


def changes_shapes(different: int, share: float = 0.9) -> Loop:
    loop = Loop()
    for number in range(10):
        loop.step(1000)
        loop.event("aten::sum", Kind.OP, 901, 901 + 90 * (1 - share), inputs=(TensorInput((8,), "float32", (1,)),))
        loop.event("aten::mm", Kind.OP, 0, 90 * share, line=22,
                   inputs=(TensorInput((8, 16 + number % different), "float32", (1, 1)),))
    return loop


def peaks(block: int, others: int) -> Loop:
    loop = Loop()
    for _ in range(3):
        loop.step(1000)
        loop.event("aten::mm", Kind.OP, 0, 100)
        small = [loop.allocate(4 * MIB, 10 + number) for number in range(others)]
        loop.event("aten::sub", Kind.OP, 200, 300, line=41)
        large = loop.allocate(block, 250)
        loop.event("aten::sum", Kind.OP, 400, 500)
        loop.release(large, block, 410)
        for number, one in enumerate(small):
            loop.release(one, 4 * MIB, 420 + number)
    return loop


def grows(by: int) -> Loop:
    loop = Loop()
    for _ in range(10):
        loop.step(1000)
        loop.event("aten::mm", Kind.OP, 0, 100)
        own = loop.allocate(8 * MIB, 50)
        loop.release(own, 8 * MIB, 150)
        loop.event("aten::clone", Kind.OP, 200, 300, line=44)
        if by:
            loop.allocate(by, 250)
    return loop


def makes_buffers(times: int = 20, each: float = 80, sizes: int = 1) -> Loop:
    """A program without steps; it makes buffers at one line, and works in between."""
    loop = Loop()
    loop.start, loop.at = 0, 10_000_000
    for number in range(times):
        shape = (TensorInput((1000 + number % sizes,), "float32", (1,)),)
        loop.event("aten::zeros_like", Kind.OP, number * 450, number * 450 + each, line=51, inputs=shape)
        loop.event("aten::mm", Kind.OP, number * 450 + each, number * 450 + 400)
    return loop


# A loop beyond the threshold of its kind, the line that it names, and loops that are just short of it.
CASES = {
    "input-bound": (waits_for_data(0.16), 7, [waits_for_data(0.14), waits_for_data(0.01)]),
    "tiny-ops": (tiny_ops(), 12, [tiny_ops(each=14), tiny_ops(count=99), tiny_ops(each=51)]),
    "python-bound": (computes_in_python(0.35), 9, [computes_in_python(0.3)]),
    "unfused-optimizer": (unfused(), 30, [unfused(ops=39), unfused(length=90)]),
    "waiting": (waits_for_a_lock(0.11), 15, [waits_for_a_lock(0.09)]),
    "garbage-collector": (collects(1_200), 18, [collects(900), collects(980)]),
    "slow-first-steps": (starts_slowly(150_000), 3, [starts_slowly(90_000), starts_slowly(5_000)]),
    "changing-shapes": (changes_shapes(10), 22, [changes_shapes(2), changes_shapes(3), changes_shapes(10, 0.15)]),
    "memory-peak": (peaks(20 * MIB, 10), 41, [peaks(20 * MIB, 20), peaks(15 * MIB, 4)]),
    "memory-growth": (grows(2 * MIB), 44, [grows(0), grows(MIB // 2)]),
    "memory-churn": (makes_buffers(), 51, [makes_buffers(times=19), makes_buffers(each=70), makes_buffers(sizes=2)]),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_threshold_tells_a_fault_from_what_is_in_order(kind):
    beyond, line, short = CASES[kind]
    finding, = beyond.analysis().advice.findings
    assert finding.kind == kind
    assert finding.figures
    assert finding.change
    assert finding.place is not None
    assert finding.place.line == line
    for loop in short:
        advice = loop.analysis().advice
        assert advice.findings == []
        assert {check.kind: check.verdict for check in advice.checks}[kind] is Verdict.CLEAN


def test_one_very_long_step_does_not_decide_the_headline():
    loop = Loop()
    for number in range(10):
        more = 50_000 if number == 6 else 0
        loop.step(1000 + more)
        loop.event(LOADER, Kind.SCOPE, 0, 600)
        loop.event("aten::mm", Kind.OP, 610, 620)
        loop.event(ADAM, Kind.SCOPE, 700, 700 + more)
    assert loop.analysis().headline == (
        "60% of a step waits for data (600 µs of 1.00 ms on average), apart from step 6, which took 51.0 ms.")


def test_where_steps_differ_the_average_and_the_median_step_are_both_told(capsys):
    loop = Loop()
    for number in range(9):
        more = 7_000 if number % 3 == 2 else 0
        loop.step(1000 + more)
        loop.event("aten::mm", Kind.OP, 0, 900)
        loop.event(LOADER, Kind.SCOPE, 950, 950 + more)
    analysis = loop.analysis()
    breakdown = analysis.breakdown
    assert analysis.headline == "70% of a step waits for data (2.33 ms of 3.33 ms on average)."
    assert breakdown.average.fractions["data"] == pytest.approx(0.7)
    assert breakdown.differ == ("Steps differ: they take from 1.00 ms to 8.00 ms, and 90% of the median one is forward "
                                "(900 µs of 1.00 ms).")
    show(analysis, 1, [])
    shown = capsys.readouterr().out
    assert "the average one takes 3.33 ms" in shown
    assert breakdown.differ in shown
    page = overview(analysis)
    assert (page["average"]["wall"], page["typical"]["wall"], page["differ"]) == (
        pytest.approx(10e6 / 3), 1e6, breakdown.differ)


def test_interrupted_ops_are_still_tiny():
    finding, = tiny_ops(count=110, slow_ones=8).analysis().advice.findings
    assert finding.kind == "tiny-ops"


@pytest.fixture(scope="module")
def faulty_program():
    """The module, whose `import torch` means our runtime."""
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    for name in hidden:
        del sys.modules[name]
    torch_alias.enable(force=True)
    try:
        import faulty_program
    finally:
        torch_alias.disable()
        sys.modules.update(hidden)
    return faulty_program


# What the finding must name: functions of the program.
FAULTS = {
    "input-bound": {"train", "__getitem__"},
    "tiny-ops": {"row_by_row", "<listcomp>"},
    "python-bound": {"features"},
    "unfused-optimizer": {"train"},
    "waiting": {"train"},
    "garbage-collector": {"train"},
    "slow-first-steps": {"build_table"},
    "changing-shapes": {"train", "forward"},
    "memory-peak": {"distances"},
    "memory-growth": {"train"},
}
# What is counted, and not timed: nothing but the fault itself can bring it.
COUNTED = {"changing-shapes", "memory-peak", "memory-growth"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(faulty_program, fault):
    profiler = mindtorch_v2.profiler
    with profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True,
                          experimental_config=profiler._ExperimentalConfig(record_python_gc_info=True)) as profile:
        faulty_program.train(fault)
    advice = Analysis(profile.profiler.recording).advice
    found = {finding.kind: finding for finding in advice.findings}
    assert fault in found, advice.checks
    assert found[fault].place.function in FAULTS[fault], found[fault].place
    assert set(found) & COUNTED <= {fault}


def test_the_command_finds_a_fault_and_says_where(command):
    done = command("run", "--no-report", "--no-summary", "-q", "-o", "run.mtp", HERE / "faulty_program.py",
                   "input-bound")
    assert done.returncode == 0, done.stderr
    result = json.loads(command("advise", "--json", "run.mtp").stdout)
    finding = {finding["kind"]: finding for finding in result["findings"]}["input-bound"]
    assert finding["place"]["function"] in FAULTS["input-bound"]
    assert finding["saves_share"] > 0.5
    assert result["summary"].startswith(result["findings"][0]["title"])


def test_a_healthy_program_is_told_so(command):
    done = command("run", "--no-report", "--no-summary", "-q", "-o", "run.mtp", HERE / "faulty_program.py", "healthy")
    assert done.returncode == 0, done.stderr
    result = json.loads(command("advise", "--json", "run.mtp").stdout)
    verdicts = {check["kind"]: check["verdict"] for check in result["checks"]}
    assert {verdicts[kind] for kind in COUNTED} == {"clean"}
    unknown = {kind for kind, verdict in verdicts.items() if verdict == "cannot tell"}
    assert unknown == {"device-idle", "synchronisation"}


def test_a_loop_in_order_has_no_findings():
    advice = waits_for_data(0.01).analysis().advice
    assert advice.findings == []
    assert advice.summary.startswith("Nothing to report")


def test_pauses_of_the_collector_that_nobody_recorded_are_not_in_order():
    loop = Loop()
    for _ in range(8):
        loop.step(1000)
        loop.event("aten::mm", Kind.OP, 0, 900)
    check, = (check for check in loop.analysis().advice.checks if check.kind == "garbage-collector")
    assert check.verdict is Verdict.UNKNOWN
    assert "record_python_gc_info" in check.why


def test_a_place_is_the_line_of_the_program_also_for_what_libraries_run(command):
    (command.folder / "lines.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "\n"
        "def train(model):\n"
        "    x = torch.randn(8, 4)\n"
        "    loss = nn.functional.cross_entropy(model(x), torch.zeros(8, dtype=torch.long))\n"
        "    loss.backward()\n"
        "\n"
        "train(nn.Linear(4, 3))\n")
    assert command("run", "-q", "--no-report", "lines.py").returncode == 0
    recording = mtprof.load(command.folder / "lines.mtp")
    places = {row.name: str(row.place) for row in Analysis(recording).operators(by=["place"])}
    assert places["aten::randn"] == "lines.py:5 (train)"
    assert places["aten::addmm"] == "lines.py:6 (train)"
    assert places["aten::nll_loss_forward"] == "lines.py:6 (train)"
    assert places["aten::nll_loss_backward"] == "lines.py:7 (train)"
    assert places["aten::uniform_"] == "lines.py:9 (<module>)"
    # A line of the program is none of the runtime's files.
    runtime = {frame.function: frame.line for frame in recording.trace.frames if frame.file.startswith("mindtorch_v2/")}
    assert runtime["cross_entropy"] != 6


def test_a_place_without_a_known_line_is_its_function():
    loop = Loop()
    for _ in range(3):
        loop.step(100)
        loop.event("aten::mm", Kind.OP, 0, 10, stack=[Frame("transformers/model.py", 70, "forward"),
                                                      Frame("train.py", 4, "train")])
        loop.event("aten::add", Kind.OP, 20, 30, stack=[Frame("transformers/model.py", 70, "forward"),
                                                        Frame("train.py", 1, "<module>")])
    places = {row.name: str(row.place) for row in loop.analysis().operators(by=["place"])}
    assert places == {"aten::mm": "train.py:4 (train)", "aten::add": "train.py (<module>)"}
