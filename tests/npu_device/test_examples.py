"""The programs of examples/ on the NPU: the losses that they have on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_runner import EXAMPLES, PROGRAMS

# Its program divides by lengths that PyTorch keeps on the host, whatever the device.
PROGRAMS = [program for program in PROGRAMS if program != "name_classifier"]
pytestmark = pytest.mark.long

RUN = """
import importlib, json, sys
sys.path[:0] = {path!r}
importlib.import_module("mindtorch_v2.torch_alias").enable(force=True)
import torch
from torch.utils.data import RandomSampler
from npu_in_tests import draw_from_one_stream

draw_from_one_stream()
shuffled = RandomSampler.__iter__


def on_the_host(self):
    with torch.device("cpu"):  # numbers of examples, as in PyTorch, where a default device would be in the way
        return iter(list(shuffled(self)))


RandomSampler.__iter__ = on_the_host
found = {{}}
for program in {programs!r}:
    for device in ("cpu", "npu"):
        torch.set_default_device(device)
        losses = importlib.import_module(program).train(3, seed=0, on_step=lambda *ignored: None)
        found.setdefault(program, []).append(losses)
print("\\n" + json.dumps(found))
"""


def test_losses(program) -> None:  # type: ignore[no-untyped-def]
    path = [str(Path(__file__).parents[1] / "mindtorch_v2"), str(EXAMPLES)]
    done = program(RUN.format(path=path, programs=PROGRAMS), MINDTORCH_NPU_SIM_MODEL="zero")
    assert done.returncode == 0, done.stderr[-3000:]
    for name, (on_cpu, on_npu) in json.loads(done.stdout.splitlines()[-1]).items():
        assert on_npu == pytest.approx(on_cpu, rel=1e-4), name
