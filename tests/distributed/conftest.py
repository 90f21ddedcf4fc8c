"""Programs on both runtimes."""

from __future__ import annotations

import pytest
from ranks_helper import on_pytorch, results_of, torchrun


@pytest.fixture
def run_both(tmp_path):
    """The results of a program on both, as lists by rank."""
    pytest.importorskip("mpi4py")
    pytest.importorskip("torch", reason="real PyTorch is not installed")

    def run(ranks: int, *program: str) -> tuple[list[dict], list[dict]]:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        ours.mkdir()
        theirs.mkdir()
        ended = torchrun(ranks, *program, results=ours)
        assert ended.returncode == 0, ended.stderr
        on_pytorch(ranks, *program, results=theirs)
        return results_of(ours, ranks), results_of(theirs, ranks)

    return run
