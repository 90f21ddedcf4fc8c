"""The distribution that makes `import torch` mean this package in every program of an environment."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import mindtorch_v2

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(mindtorch_v2.__file__).parents[1]


@pytest.fixture
def backend(monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "environment"))
    return load(ROOT / "as-torch" / "backend.py")


def load(path):
    spec = importlib.util.spec_from_file_location("as_torch_backend", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed and keeps its name")
def test_the_wheel_answers_to_torch(backend, tmp_path):
    with zipfile.ZipFile(tmp_path / backend.build_wheel(str(tmp_path))) as wheel:
        wheel.extractall(tmp_path / "site")
    program = ("import site, sys; site.addsitedir(sys.argv[1])\n"
               "from importlib.metadata import requires, version\n"
               "print(version('torch'), requires('mindtorch-v2-as-torch'))\n"
               "import torch.nn.functional as F, torch\n"
               "print(torch.__package__, F.relu(torch.tensor([-1.0, 2.0])).tolist())\n")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "site")], text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{mindtorch_v2.__version__} ['mindtorch-v2 (=={backend.version()})']", "mindtorch_v2 [0.0, 2.0]"]


def test_the_source_distribution_builds_the_same_wheel(backend, tmp_path):
    wheel = (tmp_path / backend.build_wheel(str(tmp_path))).read_bytes()
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    folder, = (tmp_path / "unpacked").iterdir()
    (tmp_path / "again").mkdir()
    assert (tmp_path / "again" / load(folder / "backend.py").build_wheel(str(tmp_path / "again"))).read_bytes() == wheel


def test_it_refuses_to_stand_beside_pytorch(backend, tmp_path):
    (tmp_path / "environment" / "torch").mkdir(parents=True)
    (tmp_path / "environment" / "torch" / "__init__.py").touch()
    with pytest.raises(SystemExit, match="PyTorch is installed in"):
        backend.build_wheel(str(tmp_path))
