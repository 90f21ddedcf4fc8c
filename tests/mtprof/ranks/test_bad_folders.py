"""Folders and clocks with faults."""

from __future__ import annotations

import pytest
from job import EPOCH_NS, MS, Rank, job

import mtprof


def test_a_missing_file(tmp_path):
    job(tmp_path)
    (tmp_path / "rank1.mtp").unlink()
    ranks = mtprof.load(tmp_path)
    assert len(ranks) == 2
    assert ranks.problems == ["no file of rank 1 (of 3)"]
    assert ranks.by_rank()[0].rank == 2


def test_many_missing_files_are_counted(tmp_path):
    Rank(3, 1000).compute(1).save(tmp_path)
    assert mtprof.load(tmp_path).problems == ["no file of rank 0, 1, 2, 4, 5, 6, 7, 8, 9, 10 and 989 more (of 1000)"]


@pytest.mark.parametrize("kept", [0, 100, 0.5])
def test_a_file_that_was_cut(tmp_path, kept):
    job(tmp_path)
    whole = (tmp_path / "rank1.mtp").read_bytes()
    (tmp_path / "rank1.mtp").write_bytes(whole[:int(kept * len(whole)) if isinstance(kept, float) else kept])
    ranks = mtprof.load(tmp_path)
    assert ranks.by_rank()[0].rank == 2
    assert any("rank1.mtp" in problem for problem in ranks.problems)
    assert any("cannot be read" in problem or "cut short" in problem for problem in ranks.problems)


def test_no_file_that_can_be_read(tmp_path):
    (tmp_path / "rank0.mtp").write_bytes(b"ARROW1\0\0junk")
    with pytest.raises(mtprof.BadFile, match=r"no file in .* can be read"):
        len(mtprof.load(tmp_path))


def test_a_folder_without_traces(tmp_path):
    with pytest.raises(IsADirectoryError, match="without traces"):
        mtprof.load(tmp_path)


def test_two_runs_in_a_folder(tmp_path):
    job(tmp_path, run="first")
    Rank(0, 3, run="second").compute(5).save(tmp_path, "later0.mtp")
    with pytest.raises(mtprof.BadFile, match=r"more than one run \(run second: later0.mtp; run first: rank0.*--run"):
        len(mtprof.load(tmp_path))
    assert len(mtprof.Ranks(tmp_path, run="first")) == 3
    assert mtprof.Ranks(tmp_path, run="second").problems == ["no file of rank 1, 2 (of 3)"]
    with pytest.raises(mtprof.BadFile, match="no run 'third'; it has: first, second"):
        len(mtprof.Ranks(tmp_path, run="third"))


def test_two_runs_that_have_no_names(tmp_path):
    job(tmp_path, offset_ns=None)
    Rank(1, 3, offset_ns=None).compute(5).save(tmp_path, "again.mtp")
    with pytest.raises(mtprof.BadFile, match=r"again.mtp and rank1.mtp are both from rank 1"):
        len(mtprof.load(tmp_path))


def test_runs_of_different_sizes(tmp_path):
    Rank(0, 2, offset_ns=None).compute(5).save(tmp_path)
    Rank(1, 4, offset_ns=None).compute(5).save(tmp_path)
    with pytest.raises(mtprof.BadFile, match=r"runs of \[2, 4\] ranks"):
        len(mtprof.load(tmp_path))


# -- clocks ----------------------------------------------------------------------------------------------------------

def skewed(folder, skew, steps=50, slow=2, **options):
    """A job in which the clock of rank 1 shows something else."""
    ranks = job(folder, steps=steps, slow=slow)
    ranks[1].skew = skew
    for name, value in options.items():
        setattr(ranks[1], name, value)
    ranks[1].save(folder)
    return mtprof.load(folder)


def test_a_clock_whose_offset_is_known(tmp_path):
    ranks = skewed(tmp_path, lambda ms: ms + 5000, offset_ns=-5000 * MS)
    assert ranks.problems == []
    assert (ranks.by_rank()[0].rank, ranks.by_rank()[0].waited_for_us) == (2, 50 * 8_000)
    assert {row.clock_error_us for row in ranks.by_rank()} == {1}


def test_without_offsets_the_time_of_day_holds(tmp_path):
    for one in job(tmp_path, steps=5, offset_ns=None):
        one.epoch_ns, one.skew = EPOCH_NS - one.rank * 70_000 * MS, lambda ms, more=one.rank * 70_000: ms + more
        one.save(tmp_path)
    ranks = mtprof.load(tmp_path)
    assert ranks.problems == []
    assert (ranks.by_rank()[0].rank, ranks.by_rank()[0].waited_for_us) == (2, 5 * 8_000)


def test_a_clock_that_is_off_is_noticed_and_moved(tmp_path):
    ranks = skewed(tmp_path, lambda ms: ms + 30)
    assert ranks.problems == ["the clock of rank 1 differs from that of rank 0 by 24.000 ms or more; its times were "
                              "shifted"]
    # Rank 1 is moved as little as can be, so that it now comes just before the meetings are over.
    assert max(row.spread_us for row in ranks.waits()) <= 6_000


def test_a_clock_that_drifts(tmp_path):
    ranks = skewed(tmp_path, lambda ms: ms * 1.05)
    problem, = ranks.problems
    assert "rank 1 differs from that of rank 0" in problem
    assert "it drifts by" in problem
    assert max(row.spread_us for row in ranks.waits()) <= 7_000


def test_a_clock_that_jumps(tmp_path):
    ranks = skewed(tmp_path, lambda ms: ms + 100 * (ms > 400))
    problem, = ranks.problems
    assert "it jumped by 94.000 ms" in problem
    assert max(row.spread_us for row in ranks.waits()) <= 7_000


def test_recordings_that_do_not_overlap(tmp_path):
    for rank in range(2):
        Rank(rank, 2, skew=lambda ms, rank=rank: ms + 1000 * rank).compute(5).save(tmp_path)
    assert mtprof.load(tmp_path).problems == ["the recordings do not overlap in time: the clocks of their machines "
                                              "differ, or they are from different runs"]


def test_files_that_do_not_say_when(tmp_path):
    job(tmp_path, offset_ns=None, epoch_ns=0)
    assert mtprof.load(tmp_path).problems == ["some files do not say when they were recorded, so waits between ranks "
                                              "are unknown"]
