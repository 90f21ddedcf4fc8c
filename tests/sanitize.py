"""The C parts under address and undefined-behaviour sanitizers, and under Python's debugging allocator.

    python tests/sanitize.py             build a copy with sanitizers, run the tests of the C parts twice
    python tests/sanitize.py -k stacks   only tests whose name contains a word

Built with sanitizers are the recorder, the backward pass, the reader of Chrome traces and the launcher of the NPU's
work, in a temporary copy of the sources, so that what is installed stays as it is. The launcher's tests run on the
simulator. The kernels have a test of their own, `make sanitize-kernels`: compiling takes minutes.
"""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy

from npu_device.settings import SIMULATOR

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What runs the C of the recorder, of the backward pass and of the reader.
TESTS = ("tests/mindtorch_v2/test_recorder*.py", "tests/mindtorch_v2/test_profiler.py",
         "tests/mindtorch_v2/test_profiler_stacks.py", "tests/mindtorch_v2/test_profiler_stack_truth.py",
         "tests/mindtorch_v2/test_profiler_memory_rows.py", "tests/mindtorch_v2/test_profiler_modules.py",
         "tests/mindtorch_v2/test_profiler_gc.py", "tests/mindtorch_v2/test_memory_timeline.py",
         "tests/mindtorch_v2/test_walk_twins.py", "tests/mindtorch_v2/test_gradient_ownership.py",
         "tests/mindtorch_v2/test_autograd_api.py", "tests/mtprof/test_kineto_reading.py")
LAUNCHER_TESTS = ("tests/npu_device/test_launcher.py", "tests/npu_device/test_memory.py")
# Interrupts at lines of Python are no matter for C, and memory that a sanitizer holds back looks like a leak.
SKIPPED = "not interrupted and not nothing_leaks"
EXTENSIONS = {"mindtorch_v2/_native/_recorder": "mindtorch_v2/_native/recorder",
              "mindtorch_v2/_autograd/_walk": "mindtorch_v2/_native/engine",
              "mtprof/store/_kineto_scan": "mtprof/store/csrc",
              "mindtorch_v2/_backends/npu/_launch": "mindtorch_v2/_native/launcher"}
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
NO_TESTS = 5  # pytest's exit code
# Python keeps memory until the process ends, which is no leak; reports end the process, so that none is overlooked.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:detect_odr_violation=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


def library(name: str) -> str | None:
    """Where the compiler has a library of its own, or None."""
    compiler = os.environ.get("CC", "gcc")
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if os.path.isabs(found) else None


def build(directory: pathlib.Path, flags: str) -> None:
    """Copy the project and build the extensions there."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, directory / name,
                        ignore=shutil.ignore_patterns("_recorder.*.so", "_walk.*.so", "_kineto_scan.*.so",
                                                      "_launch.*.so", "__pycache__", "findings"))
    shutil.copy(ROOT / "pyproject.toml", directory)
    include = [f"-I{numpy.get_include()}", f"-I{sysconfig.get_path('include')}"]
    for target, sources in EXTENSIONS.items():
        made = directory / "src" / f"{target}{sysconfig.get_config_var('EXT_SUFFIX')}"
        files = sorted(str(path) for path in (directory / "src" / sources).glob("*.c"))
        subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-pthread", *flags.split(), *include, *files,
                        "-o", str(made)], check=True)
        print(f"-- built {made.name}: {flags}", flush=True)


def run(directory: pathlib.Path, title: str, extra: dict[str, str], arguments: list[str]) -> int:
    """Run the tests of the C parts; the number of what is wrong."""
    return (_run(directory, title, TESTS, extra, arguments)
            or _run(directory, f"{title}, launcher", LAUNCHER_TESTS, {**extra, **SIMULATOR}, arguments))


def _run(directory: pathlib.Path, title: str, patterns: tuple[str, ...], extra: dict[str, str],
         arguments: list[str]) -> int:
    tests = sorted(str(path.relative_to(directory)) for pattern in patterns for path in directory.glob(pattern))
    print(f"-- {title}: {len(tests)} files of tests", flush=True)
    began = time.monotonic()
    # The copy's own code, whatever the environment has.
    environment = {**os.environ, **extra, "MINDTORCH_NATIVE": "1", "PYTHONPATH": str(directory / "src")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", "--capture=sys",
                           "-k", SKIPPED, *arguments, *tests], cwd=directory, env=environment)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"-- {title}: exit code {done.returncode} after {time.monotonic() - began:.0f} s; "
          f"{used.ru_utime + used.ru_stime:.0f} s of processor so far", flush=True)
    # With a word of -k that no test of a group has, pytest says so; the other group has some then.
    return 0 if arguments and done.returncode == NO_TESTS else done.returncode


def main() -> int:
    """Both runs; 0 if both are clean."""
    asan, ubsan = library("libasan.so"), library("libubsan.so")
    codes = []
    if asan is None or ubsan is None:
        print("-- the compiler has no libasan or libubsan: sanitizers are skipped")
    else:
        with tempfile.TemporaryDirectory(prefix="sanitize-") as directory:
            build(pathlib.Path(directory), SANITIZERS)
            preload = {"LD_PRELOAD": f"{asan}:{ubsan}", "PYTHONMALLOC": "malloc", **OPTIONS}
            codes.append(run(pathlib.Path(directory), "address and undefined behaviour", preload, sys.argv[1:]))
    with tempfile.TemporaryDirectory(prefix="sanitize-") as directory:
        build(pathlib.Path(directory), "-O1 -g")
        codes.append(run(pathlib.Path(directory), "PYTHONMALLOC=debug", {"PYTHONMALLOC": "debug"}, sys.argv[1:]))
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
