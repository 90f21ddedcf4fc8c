"""The simulator under the compiler's sanitizers: addresses, undefined behaviour, leaks, races.

`make sanitize-npu-sim` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2._backends.npu.sim import build

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    "MINDTORCH_SANITIZE" not in os.environ, reason="takes minutes to compile; set MINDTORCH_SANITIZE=1"
)


def compile_or_skip(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and ("cannot find" in done.stderr or "unrecognized" in done.stderr):
        pytest.skip(f"the compiler has no such sanitizer: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("sanitize", ["address,undefined", "thread"])
def test_stress(tmp_path: Path, sanitize: str) -> None:
    program = tmp_path / "stress"
    sources = [str(HERE / "stress.c"), *sorted(map(str, build.SOURCES.glob("*.c")))]
    flags = [flag for flag in build.FLAGS if flag != "-fvisibility=hidden" and not flag.startswith("-O")]
    compile_or_skip(
        [
            *build.compiler(),
            *flags,
            "-g",
            "-O1",
            f"-fsanitize={sanitize}",
            "-fno-sanitize-recover=undefined",
            *sources,
            "-lm",
            "-o",
            str(program),
        ]
    )
    done = subprocess.run(
        [str(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={
            **os.environ,
            "MINDTORCH_NPU_SIM_MEMORY": "1G",
            "ASAN_OPTIONS": "detect_leaks=1",
            "TSAN_OPTIONS": "halt_on_error=1",
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_operators_and_rules() -> None:
    """All other tests of this folder, with the library that checks addresses and undefined behaviour."""
    found = subprocess.run(
        [*build.compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not os.path.isabs(found):
        pytest.skip("the compiler has no libasan")
    build.library("address,undefined")
    children = ("fork", "host_cannot_read", "aborts", "visible", "bad_settings", "model_from", "log_file")
    skipped = " and ".join(f"not {name}" for name in children)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-k",
            skipped,
            str(HERE / "test_operators.py"),
            str(HERE / "test_runtime.py"),
            str(HERE / "test_mspti.py"),
        ],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={
            **os.environ,
            "LD_PRELOAD": os.path.realpath(found),
            "MINDTORCH_NPU_SIM_SANITIZE": "address,undefined",
            "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        },
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
