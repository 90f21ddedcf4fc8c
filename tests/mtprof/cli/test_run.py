"""`mtprof run`: the program runs as under Python, and the recording is kept, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import PROGRAM
from handmade import LOADER, Loop

import mtprof
from mtprof.analysis import Analysis, StepSource
from mtprof.schema import Kind

TRAINS = PROGRAM.partition("print(")[0]
ADDS = "import torch\ntorch.ones(2) + 1\n"


def write(command, text: str, name: str = "program.py"):
    (command.folder / name).write_text(text)
    return name


def recorded_ops(command, name: str = "program.mtp") -> set[str]:
    return ops_of(command.folder / name)


def ops_of(path: Path) -> set[str]:
    trace = mtprof.load(path).trace
    return {trace.names[number] for number in trace.events["name"].tolist()}


def test_a_program_keeps_its_arguments_output_and_exit_code(first_run):
    folder, done = first_run
    assert done.returncode == 0
    assert done.stdout.splitlines()[:-1] == ["torch is mindtorch_v2 arguments ['one', '--two', '-q']"]
    assert done.stderr == ""
    assert {"aten::addmm", "Optimizer.step#SGD.step"} <= ops_of(folder / "train.mtp")


def test_the_result_as_json_is_the_last_line(first_run):
    folder, done = first_run
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["exit_code"] == 0
    assert result["recordings"] == ["train.mtp"]
    assert result["chrome"] == "train.json.gz"
    assert result["summary"]["steps"]["source"] == "steps of the optimizer"
    assert mtprof.load(folder / "train.json.gz")


def test_everything_is_recorded_by_default(recorded):
    full = mtprof.load(recorded).trace
    assert {"memory", "uses", "modules", "stacks"} <= set(full.tables)
    assert (full.events["flops"] > 0).any()
    assert len(full.inputs)


def test_steps_are_found_without_being_stated(recorded):
    steps = Analysis(mtprof.load(recorded)).steps
    assert (steps.source, len(steps)) == (StepSource.OPTIMIZER, 6)


def test_a_light_recording_has_ops_alone_and_no_more_than_asked_for(command):
    write(command, ADDS + "for _ in range(50):\n    torch.ones(2) * 2\n")
    done = command("run", "--no-report", "--light", "--max-events", "50", "program.py")
    assert "advice:" in done.stderr
    assert "mtprof: wrote program.mtp" in done.stderr
    light = mtprof.load(command.folder / "program.mtp").trace
    assert not {"memory", "uses", "modules", "stacks"} & set(light.tables)
    assert not len(light.inputs)
    assert light.dropped > 0
    assert "lost events" in command("doctor", "program.mtp").stdout


def test_chosen_steps_are_recorded(command):
    write(command, PROGRAM)
    done = command("run", "-q", "--no-report", "--steps", "2-4", "program.py")
    assert done.returncode == 0
    steps = Analysis(mtprof.load(command.folder / "program.mtp")).steps
    assert (steps.source, steps.number.tolist()) == (StepSource.EVENTS, [2, 3, 4])


def test_steps_of_a_loop_without_an_optimizer_are_its_batches(command):
    write(command, """
import torch
from torch.utils.data import DataLoader
for batch in DataLoader(torch.arange(12.0), batch_size=2):
    batch.sum()
""")
    command("run", "-q", "--no-report", "--steps", "1-2", "program.py")
    assert Analysis(mtprof.load(command.folder / "program.mtp")).steps.number.tolist() == [1, 2]


def test_batches_are_steps_where_no_optimizer_steps():
    """Six batches, and the call that finds the loader exhausted."""
    loop = Loop()
    for number in range(7):
        loop.start = 1_000_000 * number
        loop.event(LOADER, Kind.SCOPE, 0, 100)
        if number < 6:
            loop.event("aten::sum", Kind.OP, 200, 900)
    loop.at = 7_000_000
    steps = loop.analysis().steps
    assert (steps.source, len(steps)) == (StepSource.LOADER, 6)


def test_each_cycle_of_a_schedule_leaves_a_file(command):
    write(command, PROGRAM)
    done = command("run", "-q", "--no-report", "--json", "--schedule", "wait=1,warmup=1,active=1,repeat=2",
                   "program.py")
    assert json.loads(done.stdout.splitlines()[-1])["recordings"] == ["program.mtp", "program.2.mtp"]
    assert [Analysis(mtprof.load(command.folder / name)).steps.number.tolist()
            for name in ("program.mtp", "program.2.mtp")] == [[2], [5]]


def test_files_of_earlier_runs_are_neither_replaced_nor_taken_for_this_run(command):
    write(command, PROGRAM)
    other = command.folder / "kept.2.mtp"
    other.write_bytes(b"of another run")
    cycles = ("--schedule", "wait=1,warmup=1,active=1,repeat=2")
    done = command("run", "-q", "--no-report", "-o", "kept.mtp", *cycles, "program.py")
    assert (done.returncode, other.read_bytes()) == (2, b"of another run")
    assert "kept.2.mtp: it already exists" in done.stderr
    done = command("run", "-q", "--no-report", "--json", "-o", "kept.mtp", "program.py")
    assert json.loads(done.stdout.splitlines()[-1])["recordings"] == ["kept.mtp"]
    assert other.read_bytes() == b"of another run"
    (command.folder / "program.2.mtp").write_bytes(b"of another run")
    done = command("run", "-q", "--no-report", "--json", *cycles, "program.py")
    assert json.loads(done.stdout.splitlines()[-1])["recordings"] == ["program.3.mtp", "program.2.3.mtp"]


@pytest.mark.long
def test_chosen_steps_are_written_while_the_program_runs(command):
    write(command, PROGRAM)
    done = command("run", "-q", "--no-report", "--json", "--stream", "--schedule", "wait=1,warmup=1,active=1,repeat=2",
                   "program.py")
    assert json.loads(done.stdout.splitlines()[-1])["recordings"] == ["program.mtp", "program.2.mtp"]
    assert [Analysis(mtprof.load(command.folder / name)).steps.number.tolist()
            for name in ("program.mtp", "program.2.mtp")] == [[2], [5]]


def test_a_stretch_of_time_is_recorded(command):
    """The program ends after the recording, so that its end is not in it, however late timers are."""
    write(command, """
import os, time, torch
while not os.path.exists("program.mtp"):
    torch.ones(2) + 1
    time.sleep(0.005)
torch.ones(2) / 2
""")
    before = time.time_ns()
    done = command("run", "-q", "--no-report", "--light", "--after", "0.2", "--for", "0.2", "program.py")
    assert done.returncode == 0
    trace = mtprof.load(command.folder / "program.mtp").trace
    assert trace.epoch_ns + trace.start_ns - before > 0.19e9
    assert trace.end_ns - trace.start_ns > 0.19e9
    ops = recorded_ops(command)
    assert ("aten::add" in ops, "aten::div" in ops) == (True, False)


def test_a_module_and_a_text_can_be_run(command):
    (command.folder / "package").mkdir()
    write(command, "print('package')", "package/__init__.py")
    write(command, "import sys, torch; torch.ones(2) + 1; print(__name__, sys.argv[1:], __spec__.name)",
          "package/train.py")
    done = command("run", "-q", "--no-report", "-m", "package.train", "--lr", "1")
    assert done.stdout == "package\n__main__ ['--lr', '1'] package.train\n"
    assert (command.folder / "train.mtp").exists()
    done = command("run", "-q", "--no-report", "-c", "import sys, torch; torch.ones(2) * 2; print(sys.argv)", "-x")
    assert done.stdout == "['-c', '-x']\n"
    assert "aten::mul" in recorded_ops(command, "code.mtp")


def test_a_program_finds_its_own_modules_and_itself_and_its_input(command):
    (command.folder / "folder").mkdir()
    write(command, "value = 3", "folder/beside.py")
    write(command, """
import pickle, sys, beside, torch
class Mine: pass
assert sys.modules["__main__"].Mine is Mine
assert isinstance(pickle.loads(pickle.dumps(Mine())), Mine)
torch.ones(beside.value)
print(__file__, "mtprof" in sys.argv[0], input().upper())
""", "folder/program.py")
    done = command("run", "-q", "--no-report", "folder/program.py", stdin="hello\n")
    assert done.stdout == f"{command.folder}/folder/program.py False HELLO\n", done.stderr


ENDINGS = {
    "raises": ("raise ValueError('mine')", 1, "ValueError: mine"),
    "exits with a text": ("sys.exit('sorry')", 1, "sorry"),
    "leaves by os._exit": ("os._exit(9)", 9, ""),
    "is interrupted": ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt"),
    "is terminated": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
    "becomes another program": ("os.execv('/bin/sh', ['sh', '-c', 'exit 5'])", 5, ""),
}


RARE = {"exits with a text", "becomes another program"}


@pytest.mark.parametrize("ending", [pytest.param(ending, marks=pytest.mark.long) if ending in RARE else ending
                                    for ending in ENDINGS])
def test_whatever_ends_a_program_leaves_what_was_recorded(command, process, ending):
    text, code, said = ENDINGS[ending]
    write(command, f"import os, signal, sys\n{ADDS}\n{text}\n")
    # A signal that ended the program ends the command too.
    done = (process if code < 0 else command)("run", "--no-report", "--no-summary", "-q", "program.py")
    assert done.returncode == code
    assert said in done.stderr
    assert "aten::add" in recorded_ops(command)


ENDLESS = TRAINS + """
print("trained", flush=True)
while True:
    model(torch.ones(1, 16))
    time.sleep(0.01)
"""


def test_a_killed_program_leaves_what_was_written_while_it_ran(process):
    write(process, "import time\n" + ENDLESS)
    running = subprocess.Popen(process.line("run", "--stream", "-q", "--no-report", "program.py"), cwd=process.folder,
                               text=True, stdout=subprocess.PIPE, env=process.environment(), start_new_session=True)
    assert running.stdout.readline() == "trained\n"
    watching = subprocess.Popen(process.line("top", "--live", "--every", "0.1", "--rows", "200", "program.mtp"),
                                cwd=process.folder, text=True, stdout=subprocess.PIPE, env=process.environment())
    try:
        shown = ""
        while " events, 6 steps, " not in shown:  # a table as soon as there is something, and then again and again
            shown = watching.stdout.readline()
            assert shown, "ended before it had seen the steps"
        while not shown.startswith("aten::addmm"):
            shown = watching.stdout.readline()
            assert shown, "ended before it had shown the op"
    finally:
        watching.kill()
        watching.communicate()
    child, = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    running.stdout.close()
    assert running.wait(60) == -signal.SIGKILL
    with pytest.warns(RuntimeWarning, match="cut short"):
        trace = mtprof.load(process.folder / "program.mtp").trace
    assert "Optimizer.step#SGD.step" in trace.names
    assert 0 < trace.start_ns <= trace.events["start_ns"].min()
    assert trace.end_ns == trace.events["end_ns"].max()
    assert {"memory", "modules", "stacks"} <= set(trace.tables)


def test_the_traceback_is_the_programs_own(command):
    write(command, "def broken():\n    raise ValueError('mine')\nbroken()\n")
    own = subprocess.run([sys.executable, "program.py"], cwd=command.folder, capture_output=True, text=True,
                         env=command.environment())
    assert command("run", "-q", "--no-report", "--no-summary", "program.py").stderr == own.stderr


def test_a_program_that_cannot_be_compiled_is_reported_as_by_python(command):
    write(command, "def (:\n")
    done = command("run", "-q", "--no-report", "program.py")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "mtprof/" not in done.stderr


def test_an_interrupt_reaches_the_program(process):
    write(process, ADDS + """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
    raise SystemExit(3)
""")
    running = subprocess.Popen(process.line("run", "-q", "--no-report", "program.py"), cwd=process.folder, text=True,
                               stdout=subprocess.PIPE, env=process.environment(), start_new_session=True)
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert (output, running.returncode) == ("cleaned up\n", 3)
    assert "aten::add" in recorded_ops(process)


def test_children_of_a_program_do_not_disturb_it(command):
    write(command, TRAINS + """
import os
pid = os.fork()
if not pid:
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
for batch in DataLoader(data, batch_size=24, num_workers=1):
    pass
""")
    done = command("run", "-q", "--no-report", "program.py")
    assert (done.stdout, done.returncode) == ("4\n", 0), done.stderr
    assert "Optimizer.step#SGD.step" in recorded_ops(command)


@pytest.mark.long
def test_threads_that_outlive_the_program_are_recorded(command):
    write(command, """
import threading, time, torch
def late():
    time.sleep(0.3)
    torch.ones(2) / 2
threading.Thread(target=late).start()
""")
    command("run", "-q", "--no-report", "program.py")
    assert "aten::div" in recorded_ops(command)


def test_workers_of_executors_and_exit_functions_end_as_under_python(process):
    write(process, ADDS + """
import atexit, concurrent.futures
atexit.register(print, "at exit")
executor = concurrent.futures.ThreadPoolExecutor(1)  # never shut down
executor.submit(lambda: torch.ones(2) / 2).result()
raise KeyboardInterrupt
""")
    done = process("run", "-q", "--no-report", "program.py", timeout=60)
    assert (done.stdout, done.returncode) == ("at exit\n", -signal.SIGINT)
    assert done.stderr.count("KeyboardInterrupt") == 2  # the line and the error
    assert "aten::div" in recorded_ops(process)


def test_what_to_do_about_a_killed_program_is_said(process):
    done = process("run", "--no-report", "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.returncode == -signal.SIGKILL
    assert done.stderr == "mtprof: no recording: SIGKILL ended the program; --stream writes while it runs\n"


def test_a_name_that_is_taken_is_kept(command):
    write(command, "import torch; torch.ones(2)")
    for taken in ("program.mtp", "program.2.mtp"):
        write(command, "mine", taken)
    done = command("run", "--no-summary", "--no-report", "program.py")
    assert "wrote program.3.mtp" in done.stderr
    assert (command.folder / "program.mtp").read_text() == "mine"
    done = command("run", "-o", "program.mtp", "program.py")
    assert (done.returncode, done.stderr) == (
        2, "mtprof: cannot write program.mtp: it already exists (--force replaces it)\n")


def test_no_alias_leaves_torch_as_it_is(command):
    write(command, "import mindtorch_v2, sys\nmindtorch_v2.ones(2) + 1\nprint('torch' in sys.modules)")
    assert command("run", "-q", "--no-report", "--no-alias", "program.py").stdout == "False\n"
    assert "aten::add" in recorded_ops(command)


WRONG = {
    ("run",): "no program: use",
    ("run", "missing.py"): "cannot run missing.py: there is no such file",
    ("run", "--steps", "5-3", "x.py"): "'5-3' has no steps",
    ("run", "--schedule", "wait=1", "x.py"): "it needs active=N",
    ("run", "--schedule", "wat=1", "x.py"): "'wat=1' is not one of",
    ("run", "--for", "soon", "x.py"): "'soon' is not a number of seconds",
    ("run", "--max-events", "-1", "x.py"): "--max-events",
    ("run", "-o", "no/such/place.mtp", "-c", "1"): "does not exist",
    ("run", "-o", "x.json", "-c", "1"): "a recording is an .mtp file; --chrome=FILE",
    ("run", "-o", "x.csv", "-c", "1"): "'mtprof convert' writes other formats",
    ("run", "--chrome=x.txt", "-c", "1"): "ends with .json or .json.gz",
    ("run", "--steps", "2", "--schedule", "active=1", "-c", "1"): "use either --steps or --schedule",
    ("run", "--unknown", "x.py"): "--unknown",
    ("run", "--stream", "--torch", "-c", "1"): "PyTorch writes its trace at the end",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_use_is_one_line(command, arguments):
    done = command(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("mtprof: ")
    assert done.stderr.count("\n") == 1
    assert WRONG[arguments] in done.stderr
    assert os.listdir(command.folder) == []
