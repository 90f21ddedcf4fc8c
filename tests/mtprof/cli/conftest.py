"""The command, and recordings that several tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import PROGRAM, Done, Inside, Process


@pytest.fixture
def command(tmp_path):
    """The command within this process: what most tests need, and quick."""
    return Inside(tmp_path)


@pytest.fixture
def process(tmp_path):
    """The command as a process: for what a process alone has, as signals, a terminal and what it imports."""
    return Process(tmp_path)


@pytest.fixture(scope="session")
def first_run(tmp_path_factory) -> tuple[Path, Done[str]]:
    """A directory in which a small training program was run, by the command as a process; and how that went."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(PROGRAM)
    return folder, Process(folder)("run", "--no-report", "--chrome", "--json", "train.py", "one", "--two", "-q")


@pytest.fixture(scope="session")
def recorded(first_run) -> Path:
    """The recording of it, which has its Chrome trace beside it."""
    folder, done = first_run
    assert done.returncode == 0, done.stderr
    return folder / "train.mtp"
