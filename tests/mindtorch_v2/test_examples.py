"""The programs of examples/ run on this runtime, from the command line and as modules."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from example_runner import EXAMPLES, PROGRAMS, ROOT, finish, start


def command_line(*arguments: str) -> str:
    """The output of `python -m mindtorch_v2 ...`, which must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-m", "mindtorch_v2", *arguments], env=environment, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["gpt", "vae"])
def test_command_line(program: str) -> None:
    losses = re.findall(r"^step +(\d+)  loss (\S+)$", command_line(str(EXAMPLES / f"{program}.py"), "--steps", "2"),
                        re.MULTILINE)
    assert [step for step, _ in losses] == ["0", "1"]
    assert all(math.isfinite(float(loss)) for _, loss in losses)


def test_profile_option(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    output = command_line(str(EXAMPLES / "mnist.py"), "--steps", "2", "--profile", str(trace))
    assert "aten::convolution" in output
    names = [event.get("name") for event in json.loads(trace.read_text())["traceEvents"]]
    assert names.count("Optimizer.step#Adadelta.step") == 2


def test_all_programs(tmp_path: Path) -> None:
    """Every program as a module: two steps, finite losses, and the same ones for the same seed."""
    found = []
    for output in (tmp_path / "first.json", tmp_path / "second.json"):
        found.append(finish(start("ours", 2, output, PROGRAMS), output))
    assert found[0] == found[1]
    assert list(found[0]) == PROGRAMS
    for program, result in found[0].items():
        assert len(result["losses"]) == 2, program
        assert all(math.isfinite(loss) for loss in result["losses"]), program


def test_every_program_is_listed() -> None:
    text = (EXAMPLES / "README.md").read_text()
    assert [program for program in PROGRAMS if f"`{program}.py`" not in text] == []
