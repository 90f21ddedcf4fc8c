"""Builds the simulator with the system's C compiler, once per version of its sources, into the user's cache.

`library()` gives the shared object. `home()` gives a directory laid out as `ASCEND_HOME_PATH` is, with the names that
CANN's libraries have in `lib64/`; all of them are that one object.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).parent / "csrc"
NAMES = ("libascendcl.so", "libnnopbase.so", "libopapi.so", "libmspti.so", "libms_tools_ext.so", "libascend_hal.so")
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-pthread",
)
WARNINGS = ("-Wall", "-Wextra")


class SimulatorBuildError(RuntimeError):
    """The simulator could not be built: there is no compiler, or it failed; the message says which."""


def compiler() -> list[str]:
    """The C compiler as a command: `CC`, or the first of cc, gcc, clang that exists."""
    named = os.environ.get("CC")
    if named:
        command = shlex.split(named)
        if shutil.which(command[0]) is None:
            raise SimulatorBuildError(f"the NPU simulator needs a C compiler; CC names {named!r}, which does not exist")
        return command
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name) is not None:
            return [name]
    raise SimulatorBuildError(
        "the NPU simulator is built from C sources on first use and needs a C compiler; "
        "none of cc, gcc and clang was found (install one, or name one in CC)"
    )


def cache_directory() -> Path:
    """Where built libraries are kept: `MINDTORCH_CACHE`, `XDG_CACHE_HOME`, or `~/.cache`."""
    own = os.environ.get("MINDTORCH_CACHE")
    if own:
        return Path(own) / "npu-sim"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mindtorch_v2" / "npu-sim"


def library(sanitize: str = "") -> Path:
    """The path of the built simulator; builds it if there is no build of these sources.

    `sanitize` is what the compiler's -fsanitize takes ("address,undefined" or "thread").
    """
    return home(sanitize) / "lib64" / "libmindtorch_npu_sim.so"


def home(sanitize: str = "") -> Path:
    """A directory with `lib64/`, usable as `ASCEND_HOME_PATH`; builds the library if it is missing."""
    command = compiler()
    flags = [*FLAGS]
    if sanitize:
        flags += [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", "-g", "-O1"]
    target = cache_directory() / _key(command, flags)
    if (target / "complete").exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = open(target.with_suffix(".lock"), "w")  # noqa: SIM115 (held while building)
    except OSError as error:
        raise SimulatorBuildError(
            f"the NPU simulator cannot be built: its cache {target.parent} cannot be written "
            f"({error.strerror}); name another in MINDTORCH_CACHE"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one builder; the others wait and find the result
        if not (target / "complete").exists():
            _build(command, [*flags, *_machine_flags(command)], target)
    return target


def _build(command: Sequence[str], flags: Sequence[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        objects = {source: Path(scratch) / f"{source.stem}.o" for source in sorted(SOURCES.glob("*.c"))}
        jobs = [[*command, *flags, *WARNINGS, "-c", str(source), "-o", str(made)] for source, made in objects.items()]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            list(pool.map(_run, jobs))
        libraries = Path(scratch) / "home" / "lib64"
        libraries.mkdir(parents=True)
        linked = libraries / "libmindtorch_npu_sim.so"
        _run([*command, *flags, "-shared", *map(str, objects.values()), "-o", str(linked), "-lm"])
        for name in NAMES:
            (libraries / name).symlink_to(linked.name)
        (Path(scratch) / "home" / "complete").touch()
        if target.exists():  # left by an interrupted copy
            shutil.rmtree(target)
        (Path(scratch) / "home").rename(target)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SimulatorBuildError(
            f"the NPU simulator cannot be built: {shlex.join(command)} failed\n{done.stderr.strip()[-2000:]}"
        )


def _machine_flags(command: Sequence[str]) -> list[str]:
    """The flag for this very processor, if the compiler has it."""
    flag = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
    tried = subprocess.run([*command, flag, "-E", "-x", "c", os.devnull], capture_output=True, check=False)
    return [flag] if tried.returncode == 0 else []


def _key(command: Sequence[str], flags: Sequence[str]) -> str:
    """What a build depends on, found without running the compiler: every start of a program needs it."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        if source.suffix in (".c", ".h", ".def"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    program = os.path.realpath(shutil.which(command[0]) or command[0])
    state = os.stat(program)
    facts = (list(command), list(flags), program, state.st_size, state.st_mtime_ns, platform.machine(), _processor())
    digest.update(repr(facts).encode())
    return digest.hexdigest()[:20]


def _processor() -> str:
    """The processor's features: a cache shared by several machines keeps one build for each kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


if __name__ == "__main__":
    print(home())
