"""The command as a process, and recordings that several tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import PROGRAM, Command


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)




@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Path:
    """A recording of a small training program, and its Chrome trace beside it."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(PROGRAM)
    done = Command(folder)("run", "--no-report", "--chrome", "-q", "train.py")
    assert done.returncode == 0, done.stderr
    return folder / "train.mtp"
