"""The C kernels under the compiler's sanitizers of addresses and undefined behaviour, and of races.

The extension is built anew with them, and the tests of `test_native_kernels.py`, `test_native_moves.py`,
`test_native_counting.py` and `test_direct_kernels.py` run in a Python that has their runtime loaded. It takes minutes,
so it runs where `MINDTORCH_SANITIZE=1` asks for it, as the other sanitizers do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "mindtorch_v2" / "_native" / "kernels"
pytestmark = pytest.mark.skipif(os.environ.get("MINDTORCH_SANITIZE") != "1" or shutil.which("gcc") is None,
                                reason="MINDTORCH_SANITIZE=1 runs it, with gcc")
RUNTIMES = {"address,undefined": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
# Threads in Python programs are the races' part; the rest of it takes too long under that sanitizer.
SELECTED = {"address,undefined": "not forked and not chosen", "thread": "threads_at_once or same_on_every_run"}


@pytest.mark.parametrize("sanitize", RUNTIMES)
def test_kernels(tmp_path: Path, sanitize: str) -> None:
    # A copy of the package with the instrumented extension in the other one's place.
    package = tmp_path / "src"
    shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("_kernels.*.so", "__pycache__"))
    target = package / "mindtorch_v2" / "_backends" / "cpu" / f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-g", "-O1", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-pthread",
         "-Wno-psabi", f"-fsanitize={sanitize}", "-fno-sanitize-recover=undefined", "-I", numpy.get_include(), "-I",
         sysconfig.get_path("include"), *map(str, sorted(SOURCES.glob("*.c"))), "-lm", "-o", str(target)], check=True)
    found = [subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
             for name in RUNTIMES[sanitize]]
    done = subprocess.run(
        # A sanitizer's report ends the process: pytest would keep it.
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--capture=sys", "-o",
         f"pythonpath={package} tests/mindtorch_v2", "tests/mindtorch_v2/test_native_kernels.py",
         "tests/mindtorch_v2/test_native_moves.py", "tests/mindtorch_v2/test_native_counting.py",
         "tests/mindtorch_v2/test_direct_kernels.py", "-k",
         SELECTED[sanitize]],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "LD_PRELOAD": ":".join(found), "MINDTORCH_KERNELS": "native", "PYTHONPATH": str(package),
             "MINDTORCH_ONEDNN": "0", "OPENBLAS_NUM_THREADS": "1", "PYTHONMALLOC": "malloc",
             # Python itself frees little at its end, and its threads are not built for the race sanitizer.
             "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1",
             "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1"})
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    # Without the sanitizer's runtime the extension cannot be loaded.
    assert str(package) in subprocess.run(
        [sys.executable, "-c", "import mindtorch_v2; print(mindtorch_v2.__file__)"], capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONPATH": str(package), "MINDTORCH_KERNELS": "numpy"}).stdout
