"""Building the simulator on first use: only once, and with a clear error if it fails."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2._backends.npu.sim import build


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources of one function, and a cache of their own."""
    try:
        build.compiler()
    except build.SimulatorBuildError as error:
        pytest.skip(str(error))
    sources = tmp_path / "csrc"
    sources.mkdir()
    (sources / "one.c").write_text('__attribute__((visibility("default"))) int one(void) { return 1; }\n')
    monkeypatch.setattr(build, "SOURCES", sources)
    monkeypatch.setenv("MINDTORCH_CACHE", str(tmp_path / "cache"))
    return sources


def test_built_once_per_state_of_the_sources(small: Path) -> None:
    first = build.library()
    made = first.stat().st_mtime_ns
    assert ctypes.CDLL(str(first)).one() == 1
    assert build.library() == first
    assert first.stat().st_mtime_ns == made
    for name in build.NAMES:
        assert (build.home() / "lib64" / name).resolve() == first.resolve()
    (small / "one.c").write_text('__attribute__((visibility("default"))) int one(void) { return 2; }\n')
    second = build.library()
    assert second != first
    assert ctypes.CDLL(str(second)).one() == 2


def test_builders_at_the_same_time(small: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from mindtorch_v2._backends.npu.sim import build\n"
        "build.SOURCES = Path(sys.argv[1]); print(build.library())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(small)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    paths = {process.communicate(timeout=120)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 2
    assert len(paths) == 1
    assert not list(build.cache_directory().glob("build-*"))


def test_no_compiler(small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.SimulatorBuildError, match="needs a C compiler"):
        build.library()
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(build.SimulatorBuildError, match="no-such-compiler"):
        build.library()


def test_compiler_refuses(small: Path) -> None:
    (small / "one.c").write_text("this is not C\n")
    with pytest.raises(build.SimulatorBuildError, match=r"one\.c"):
        build.library()


def test_cache_cannot_be_written(small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINDTORCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(build.SimulatorBuildError, match="MINDTORCH_CACHE"):
        build.library()
