"""The NPU as a program sees it, on the simulator. The tests need a process in which `MINDTORCH_NPU=sim` was set before
anything asked for a device; in any other, `test_in_a_process_of_its_own.py` starts one and nothing else is collected.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SIMULATED = os.environ.get("MINDTORCH_NPU") == "sim"
if not SIMULATED:
    collect_ignore_glob = [path.name for path in HERE.glob("test_*.py") if "process_of_its_own" not in path.name]
else:
    collect_ignore_glob = ["test_in_a_process_of_its_own.py"]


@pytest.fixture(autouse=SIMULATED)
def fresh() -> Iterator[None]:
    """Each test starts on device 0 with nothing queued, and leaves no tensors behind."""
    import gc

    import mindtorch_v2 as torch

    torch.npu.set_device(0)
    torch.manual_seed(0)
    yield
    gc.collect()
    for index in range(torch.npu.device_count()):
        torch.npu.synchronize(index)


@pytest.fixture
def simulator() -> Any:
    """The simulator's own functions."""
    from mindtorch_v2._backends.npu.library import library

    opened = library()

    class Functions:
        live_handles = staticmethod(opened.symbol("mtsimLiveHandles", ctypes.c_uint64, ctypes.c_int))
        live_blocks = staticmethod(opened.symbol("mtsimLiveBlocks", ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p))
        check_guards = staticmethod(opened.symbol("mtsimCheckGuards", ctypes.c_int, ctypes.c_int))
        _configure = staticmethod(opened.symbol("mtsimConfigure", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p))

        def configure(self, key: str, value: str) -> None:
            assert self._configure(key.encode(), value.encode()) == 0

    return Functions()


Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run a program in a process of its own, with settings of the environment."""

    def run(text: str, **settings: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src"), **settings}
        return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300,
                              env=environment, cwd=tmp_path, check=False)

    return run
