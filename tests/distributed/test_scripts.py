"""Data-parallel scripts as people write them, unmodified, beside PyTorch's gloo."""

from __future__ import annotations

import re

import pytest
from ranks_helper import SCRIPTS, run

pytest.importorskip("mpi4py")

NUMBER = re.compile(r"-?\d+\.\d+")


def compare(mine: str, other: str, where: object) -> None:
    assert NUMBER.sub("#", mine) == NUMBER.sub("#", other), where
    ours, theirs = ([float(value) for value in NUMBER.findall(text)] for text in (mine, other))
    assert ours == pytest.approx(theirs, rel=1e-3, abs=2e-5), where
    assert len(theirs) > 4


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("script", ["minimal", "classifier", "gpt", "uneven"])
def test_scripts_print_what_they_print_on_pytorch(both, script, ranks):
    ours, theirs = both(script, ranks)
    for rank in range(ranks):
        compare((ours / f"{rank}.txt").read_text(), (theirs / f"{rank}.txt").read_text(), (script, rank))


def test_descent_on_all_rows_is_that_of_one_process(run_all, tmp_path):
    import sys

    alone = run([sys.executable, "-m", "mindtorch_v2", str(SCRIPTS / "minimal.py")], tmp_path, RANK="0", WORLD_SIZE="1")
    assert alone.returncode == 0, alone.stderr
    for ranks in (2, 4):
        folder = run_all(ranks) / "minimal"
        for rank in range(ranks):
            compare((folder / f"{rank}.txt").read_text(), alone.stdout, (ranks, rank))
