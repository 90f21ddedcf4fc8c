"""Starts the tests beside this file in a process that has an NPU from the beginning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2._backends.npu.sim import build
from npu_device.settings import SIMULATOR


def test_npu() -> None:
    try:
        build.library()
    except build.SimulatorBuildError as error:
        pytest.skip(str(error))
    here = Path(__file__).parent
    environment = {**os.environ, **SIMULATOR}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run([sys.executable, "-m", "pytest", str(here), "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
                           "-x"],
                          env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
