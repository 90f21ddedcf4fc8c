"""`safetensors.torch` with this runtime standing in for PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2

pytest.importorskip("safetensors", reason="safetensors is not installed")

PROGRAM = """
import sys
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

assert "mindtorch" in torch.__version__
folder = sys.argv[1]
tensors = {
    "weight": torch.arange(6.0).reshape(2, 3), "half": torch.ones(3, dtype=torch.bfloat16) / 3,
    "mask": torch.tensor([True, False]), "scalar": torch.tensor(3), "empty": torch.zeros(0, 2),
    "wide": torch.arange(4, dtype=torch.float64), "small": torch.arange(3, dtype=torch.uint8),
}
save_file(tensors, folder + "/a.safetensors", metadata={"by": "test"})
for found in (load(save(tensors)), load_file(folder + "/a.safetensors")):
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name
with safe_open(folder + "/a.safetensors", framework="pt") as file:
    assert file.metadata() == {"by": "test"}
    assert torch.equal(file.get_tensor("weight"), tensors["weight"])
    assert torch.equal(file.get_slice("weight")[1:, :2], tensors["weight"][1:, :2])
loaded = load_file(folder + "/a.safetensors")["weight"]
loaded.add_(1)
assert torch.equal(load_file(folder + "/a.safetensors")["weight"], tensors["weight"])
try:
    save_file({"a": tensors["weight"], "b": tensors["weight"][0]}, folder + "/b.safetensors")
except RuntimeError as error:
    assert "share memory" in str(error)
else:
    raise AssertionError("shared memory was not noticed")
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
model.tied = model[0]
save_model(model, folder + "/model.safetensors")
other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
other.tied = other[0]
load_model(other, folder + "/model.safetensors")
assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), other.state_dict().values()))
print("fine")
"""


def test_a_program_saves_and_loads(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-m", "mindtorch_v2", str(script), str(tmp_path)], capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(Path(mindtorch_v2.__file__).parent.parent)},
                          text=True, timeout=120, check=False)
    assert done.stdout.strip() == "fine", done.stderr
    # The file is what others read too.
    numpy_side = pytest.importorskip("safetensors.numpy")
    read = numpy_side.load_file(tmp_path / "a.safetensors")
    assert np.array_equal(read["weight"], np.arange(6.0, dtype=np.float32).reshape(2, 3))
