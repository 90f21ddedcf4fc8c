"""`mtprof run --torch` and traces that PyTorch itself wrote; skipped where PyTorch is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest
from command import PROGRAM, Inside

import mtprof
from mtprof.analysis import Analysis, StepSource

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """A directory in which `mtprof run --torch` has run the program that other tests run on our runtime."""
    command = Inside(tmp_path_factory.mktemp("torch"))
    (command.folder / "train.py").write_text(PROGRAM)
    done = command("run", "--torch", "--no-report", "--json", "train.py", "argument", timeout=300)
    assert done.returncode == 0, done.stderr
    command.done = done
    return command


def test_pytorch_is_profiled_by_its_own_profiler(profiled):
    first, last = profiled.done.stdout.splitlines()[-2:]
    assert first == "torch is torch arguments ['argument']"
    assert json.loads(last)["recordings"] == ["train.mtp"]
    assert sorted(path.name for path in profiled.folder.iterdir()) == ["train.mtp", "train.py"]
    recording = mtprof.load(profiled.folder / "train.mtp")
    analysis = Analysis(recording)
    assert (analysis.steps.source, len(analysis.steps)) == (StepSource.OPTIMIZER, 6)
    rows = {row.name: row for row in analysis.operators()}
    assert rows["aten::addmm"].calls == 12
    assert analysis.memory_peaks[0].peak_bytes > 0
    places = {row.place.function for row in analysis.operators(by=["place"]) if row.place
              and row.name == "aten::linear"}
    assert places == {"<module>"}


def test_both_runtimes_do_the_same_and_can_be_compared(profiled, recorded):
    ours, theirs = (Analysis(mtprof.load(path)) for path in (recorded, profiled.folder / "train.mtp"))
    counts = [{row.name: row.calls for row in analysis.operators() if row.name.startswith("aten::addmm")}
              for analysis in (ours, theirs)]
    assert counts[0] == counts[1]
    done = profiled("diff", recorded, "train.mtp")
    assert done.returncode == 0
    assert done.stdout.startswith("A step: ")


def test_a_program_that_fails_under_pytorch(profiled):
    (profiled.folder / "broken.py").write_text("import torch\ntorch.ones(2) + 1\nraise SystemExit(5)\n")
    done = profiled("run", "--torch", "-q", "--no-report", "broken.py", timeout=300)
    assert done.returncode == 5
    (profiled.folder / "broken.py").unlink()
    names = mtprof.load(profiled.folder / "broken.mtp").trace.names
    (profiled.folder / "broken.mtp").unlink()
    assert "aten::add" in names


OWN_PROFILERS = """
import os, threading, time
import torch
from torch.profiler import profile, schedule

torch.ones(2).cos()
with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
             on_trace_ready=lambda p: print([e.key for e in p.key_averages() if e.key.startswith("aten::s")])) as own:
    for _ in range(6):
        torch.ones(2).sin()
        own.step()

def other():
    with profile() as own:
        torch.ones(2).tan()
    print([e.key for e in own.key_averages() if e.key == "aten::tan"], flush=True)

thread = threading.Thread(target=other)
thread.start()
thread.join()
torch.ones(2).exp()
threading.Thread(target=lambda: os._exit(9)).start()
time.sleep(60)
"""


def test_programs_with_profilers_of_their_own_and_an_exit_from_a_thread(profiled, tmp_path):
    (tmp_path / "own.py").write_text(OWN_PROFILERS)
    done = Inside(tmp_path)("run", "--torch", "-q", "--no-report", "--no-stacks", "own.py", timeout=300)
    assert (done.returncode, done.stdout) == (9, "['aten::sin']\n['aten::tan']\n")
    assert done.stderr.count("the program uses PyTorch's profiler itself") == 1
    wanted = {"aten::cos", "aten::sin", "aten::tan", "aten::exp"}
    found = [wanted.intersection(mtprof.load(tmp_path / name).trace.names)
             for name in ("own.mtp", "own.2.mtp", "own.3.mtp")]
    assert found == [{"aten::cos", "aten::sin"}, {"aten::sin"}, {"aten::exp"}]


def test_steps_are_counted_while_the_program_has_a_profiler_of_its_own(profiled, tmp_path):
    (tmp_path / "own.py").write_text("""
import torch
from torch.profiler import profile
optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], 0.1)
for number in range(6):
    if number == 1:
        own = profile()
        own.start()
    torch.ones(number + 1).sin()
    optimizer.step()
    if number == 2:
        own.stop()
""")
    done = Inside(tmp_path)("run", "--torch", "-q", "--no-report", "--steps", "4-4", "own.py", timeout=300)
    assert done.returncode == 0, done.stderr
    rows = Analysis(mtprof.load(tmp_path / "own.mtp")).operators(by=["shape"])
    assert [(row.calls, row.shapes) for row in rows if row.name == "aten::sin"] == [(1, "[[5]]")]


def test_every_command_takes_a_trace_of_pytorch(tmp_path, command):
    program = """
import torch
from torch.profiler import ProfilerAction, profile, schedule
model = torch.nn.Linear(8, 8)
with profile(record_shapes=True, profile_memory=True, with_stack=True, schedule=schedule(wait=0, warmup=1, active=4),
             on_trace_ready=lambda p: p.export_chrome_trace("trace.json")) as prof:
    for _ in range(5):
        model(torch.ones(4, 8)).sum().backward()
        prof.step()
"""
    subprocess.run([sys.executable, "-c", program], cwd=command.folder, check=True, capture_output=True, timeout=300)
    for arguments in (["summary"], ["advise"], ["top"], ["analyse"], ["doctor"], ["dump"], ["diff", "trace.json"],
                      ["trim", "--steps", "2-3", "-o", "part.json"]):
        done = command(*arguments, "trace.json")
        assert done.returncode == 0, (arguments, done.stderr)
    assert "no faults" in command("doctor", "part.json").stdout
    assert Analysis(mtprof.load(command.folder / "part.json")).steps.number.tolist() == [2, 3]
