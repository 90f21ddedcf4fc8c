"""Unusable input: one clear line, exit code 2, no traceback, no incomplete file."""

from __future__ import annotations

import gzip
import json
import os
import shutil

import pytest

READERS = {
    "summary": ["summary"], "advise": ["advise"], "top": ["top"], "diff": ["diff", "good.mtp"], "analyse": ["analyse"],
    "dump": ["dump"], "doctor": ["doctor"], "convert": ["convert"], "trim": ["trim", "--steps", "0", "-o", "out.mtp"],
    "merge": ["merge", "good.mtp", "-o", "out.mtp"], "report": ["report"],
    "view": ["view", "--no-browser", "--port", "0", "--once"],
}

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}


def chrome(*events: object, **more: object) -> bytes:
    return json.dumps({"traceEvents": list(events), **more}).encode()


# The content of a file, and a word of the error.
BAD = {
    "not-json": (b"this is a letter, not a trace", "is not a trace"),
    "cut-json": (b'{"traceEvents": [{"ph": "X", "na', "cut"),
    "wrong-json": (b'{"rows": [1, 2, 3]}', "no list traceEvents"),
    "list": (b"[1, 2, 3]", "should be an object"),
    "empty": (b"", "bad.json is empty"),
    "spaces": (b"  \n ", "not JSON"),
    "binary": (bytes(range(256)) * 8, "is not a trace"),
    "cut-gzip": (gzip.compress(chrome(*[EVENT] * 500))[:60], "ends before"),
    "false-gzip": (b"\x1f\x8b" + b"nonsense" * 20, "damaged"),
    "deep": (b'{"traceEvents": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", ""),
    "deep-arguments": (chrome({**EVENT, "args": "HERE"}).replace(
        b'"HERE"', b'{"a":' * 50_000 + b"1" + b"}" * 50_000), "nested too deeply"),
    "nan": (chrome(EVENT).replace(b'"dur": 2.0', b'"dur": NaN'), "dur should be a number"),
    "text-duration": (chrome({**EVENT, "dur": "long"}), "dur should be a number"),
    "huge-time": (chrome({**EVENT, "ts": 1e300}), "too large"),
    "events-of-text": (chrome("one", "two"), "should be an object"),
    "name-of-numbers": (chrome({**EVENT, "name": 7}), "should be a string"),
    "cut-arrow": (b"ARROW1\0\0" + b"\0" * 10, "cut short"),
    "cut-parquet": (b"PAR1" + b"\0" * 100, "Parquet"),
}


@pytest.fixture
def stage(command, recorded):
    """A directory with a good trace in it."""
    shutil.copy(recorded, command.folder / "good.mtp")
    return command


def check(done, word: str) -> None:
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("mtprof: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert word in done.stderr


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_no_trace(stage, kind):
    content, word = BAD[kind]
    (stage.folder / "bad.json").write_bytes(content)
    done = stage("convert", "bad.json", "out.mtp")
    check(done, word)
    assert "bad.json" in done.stderr
    assert sorted(os.listdir(stage.folder)) == ["bad.json", "good.mtp"]


@pytest.mark.parametrize("reader", READERS)
def test_every_command_says_so_in_one_line(stage, reader):
    (stage.folder / "bad.json").write_bytes(b'{"traceEvents": 3}')
    more = ["out.json"] if reader == "convert" else []
    check(stage(*READERS[reader], "bad.json", *more), "no list traceEvents")
    check(stage(*READERS[reader], "missing.json", *more), "no such file")
    assert sorted(os.listdir(stage.folder)) == ["bad.json", "good.mtp"]


def test_what_is_no_file(stage):
    (stage.folder / "folder").mkdir()
    check(stage("summary", "folder"), "it is a directory")
    (stage.folder / "loop").symlink_to(stage.folder / "loop")
    check(stage("summary", "loop"), "symbolic links")
    check(stage("summary", "good.mtp/inside"), "good.mtp/inside")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written(stage):
    os.chmod(stage.folder / "good.mtp", 0)
    check(stage("summary", "good.mtp"), "Permission denied")


def test_an_output_that_is_taken_or_cannot_be(stage):
    (stage.folder / "taken.json").write_text("mine")
    (stage.folder / "folder").mkdir()
    check(stage("convert", "good.mtp", "taken.json"), "it already exists (--force replaces it)")
    check(stage("convert", "good.mtp", "folder"), "it is a directory")
    check(stage("convert", "good.mtp", "no/such/folder.json"), "does not exist")
    check(stage("convert", "good.mtp", "good.mtp"), "it is the input file")
    check(stage("convert", "--force", "good.mtp", "good.mtp"), "it is the input file")
    check(stage("convert", "good.mtp", "name.unknown"), "cannot tell the format")
    (stage.folder / "loop.json").symlink_to(stage.folder / "loop.json")
    check(stage("convert", "good.mtp", "loop.json"), "cannot write loop.json")
    assert (stage.folder / "taken.json").read_text() == "mine"
    assert stage("convert", "--force", "good.mtp", "taken.json").returncode == 0
    assert json.loads((stage.folder / "taken.json").read_text())["traceEvents"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_disk_that_is_full(stage):
    check(stage("convert", "--to", "chrome", "good.mtp", "/dev/full"), "No space left")


@pytest.mark.parametrize("name", ["cut.json", "cut.json.gz"])
def test_a_chrome_trace_cut_in_half_is_refused_and_can_be_salvaged(stage, name):
    whole = chrome(*({**EVENT, "ts": float(number * 3)} for number in range(20_000)))
    content = gzip.compress(whole) if name.endswith("gz") else whole
    (stage.folder / name).write_bytes(content[: len(content) // 2])
    for arguments in (["summary", name], ["convert", name, "out.mtp"]):
        check(stage(*arguments), "cut")
    assert sorted(os.listdir(stage.folder)) == [name, "good.mtp"]
    assert stage("doctor", "--strict", name).stdout.startswith("cut short: ")
    done = stage("doctor", "--repair", "whole.mtp", name)
    assert done.returncode == 0, done.stderr
    assert json.loads(stage("summary", "--json", "whole.mtp").stdout)["events"] > 5000


def test_a_recording_that_was_cut_short_is_read_with_a_warning(stage):
    whole = (stage.folder / "good.mtp").read_bytes()
    (stage.folder / "cut.mtp").write_bytes(whole[: len(whole) * 9 // 10])
    done = stage("summary", "cut.mtp")
    assert done.returncode == 0
    assert done.stderr == "mtprof: warning: cut.mtp is cut short; its last rows are missing\n"


GOOD = {
    "negative-times": chrome({**EVENT, "ts": -500.0}, {**EVENT, "ts": -400.5}),
    "negative-duration": chrome({**EVENT, "dur": -3.0}),
    "no-events": chrome(),
    "names-not-utf8": chrome({**EVENT, "name": "caf"}).replace(b"caf", b"caf\xe9\xff"),
    "names-that-obey": chrome({**EVENT, "name": "\x1b[31mred\x1b]0;title\x07\n<script>"}),
    "crossing": chrome({**EVENT, "ts": 0, "dur": 10}, {**EVENT, "ts": 5, "dur": 10}),
}


@pytest.mark.parametrize("kind", GOOD)
def test_odd_traces_are_read(stage, kind):
    (stage.folder / "odd.json").write_bytes(GOOD[kind])
    for arguments in (["summary"], ["advise"], ["top"], ["analyse"], ["doctor"], ["dump", "--table", "events"],
                      ["summary", "--json"], ["diff", "good.mtp"]):
        done = stage(*arguments, "odd.json")
        assert done.returncode == 0, (arguments, done.stderr)
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout
    done = stage("convert", "odd.json", "odd.mtp")
    assert done.returncode == 0, done.stderr


def test_the_doctor_finds_and_mends(stage):
    (stage.folder / "odd.json").write_bytes(chrome(
        {**EVENT, "ts": 0, "dur": 10}, {**EVENT, "ts": 5, "dur": 10}, {**EVENT, "ts": 30, "dur": -4},
        {**EVENT, "ts": -7, "dur": 1}, {"ph": "s", "cat": "ac2g", "id": 3, "pid": 1, "tid": 1, "ts": 1}))
    done = stage("doctor", "odd.json")
    assert done.returncode == 0
    for word in ("nesting: 1 event starting inside", "negative duration", "negative timestamp", "unbalanced flow"):
        assert word in done.stdout
    assert stage("doctor", "--strict", "odd.json").returncode == 1
    done = stage("doctor", "--repair", "mended.mtp", "odd.json")
    assert "now end with it" in done.stdout
    assert stage("doctor", "--strict", "mended.mtp").stdout == "no faults\n"


def test_a_report_of_three_traces_is_refused_before_they_are_read(stage):
    check(stage("report", "good.mtp", "good.mtp", "none.mtp"), "takes one trace, or two to compare, not 3")


@pytest.mark.parametrize("content", ["not-json", "nan", "cut-gzip"])
def test_what_can_never_be_a_recording_is_not_waited_for(stage, content):
    (stage.folder / "bad.json").write_bytes(BAD[content][0])
    check(stage("top", "--live", "bad.json"), BAD[content][1])


def test_a_link_to_itself_is_not_waited_for(stage):
    (stage.folder / "loop.mtp").symlink_to("loop.mtp")
    check(stage("top", "--live", "loop.mtp"), "symbolic links")


def test_a_stretch_after_the_end_is_refused(stage):
    check(stage("trim", "--time", "900-901", "good.mtp", "-o", "out.mtp"), "before --time 900-901")
    assert not (stage.folder / "out.mtp").exists()
