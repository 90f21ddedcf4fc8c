"""Answers about ranks whose times are all known."""

from __future__ import annotations

import numpy as np
import pytest
from job import Rank, job

import mtprof
from mtprof.ranks.meetings import Meetings


def test_nothing_is_read_before_the_first_question(tmp_path):
    job(tmp_path)
    ranks = mtprof.load(tmp_path)
    (tmp_path / "rank1.mtp").write_bytes(b"")
    assert len(ranks) == 2


def test_time_by_rank_and_step(tmp_path):
    job(tmp_path)
    rows = mtprof.load(tmp_path).steps()
    assert [(row.rank, row.step) for row in rows] == [(rank, step) for rank in range(3) for step in range(4)]
    assert {(row.duration_us, row.compute_us, row.input_us, row.communication_us, row.exposed_us, row.overlap)
            for row in rows if row.rank == 0} == {(16_000, 9_000, 1_000, 6_000, 6_000, 0)}
    assert {(row.duration_us, row.compute_us) for row in rows if row.rank == 2} == {(16_000, 13_000)}


def test_the_rank_that_others_wait_for_and_why(tmp_path):
    job(tmp_path)
    ranks = mtprof.load(tmp_path)
    first, *others = ranks.by_rank()
    assert (first.rank, first.last, first.why, first.why_us) == (2, 4, "compute", 16_000)
    assert first.waited_for_us == 4 * 2 * 4_000
    assert first.waited_us == 0
    assert [(row.waited_us, row.waited_for_us, row.why) for row in others] == [(16_000, 0, "")] * 2
    assert ranks.problems == []


@pytest.mark.parametrize(("what", "why"), [("load", "input"), ("compute", "compute"), ("idle", "other"),
                                           ("message", "communication")])
def test_each_reason_is_told(tmp_path, what, why):
    ranks = [Rank(rank, 3) for rank in range(3)]
    for one in ranks:
        one.load(1).compute(2)
        if one.rank == 1:
            one.do("c10d::send", 5) if what == "message" else getattr(one, what)(5)
            if what == "message":  # a message of this rank alone: it has no number that others know
                one.talks.append((len(one.rows) - 1, -1, "send", "0"))
    over = max(one.now for one in ranks) + 1
    for one in ranks:
        one.meet(0, over)
        one.save(tmp_path)
    found = mtprof.load(tmp_path)
    assert (found.by_rank()[0].rank, found.by_rank()[0].why) == (1, why)
    wait, = found.waits()
    assert (wait.last_rank, wait.why, wait.ranks, wait.spread_us, wait.waited_us, wait.transfer_us) == (
        1, why, 3, 5_000, 10_000, 1_000)


def test_imbalance_by_module(tmp_path):
    job(tmp_path)
    ranks = mtprof.load(tmp_path)
    first, second = ranks.modules()
    assert (first.module, first.slowest_rank, first.slowest_us) == ("net.big", 2, 4 * 7_000)
    assert first.imbalance == pytest.approx(7 / (13 / 3))
    assert (second.module, second.imbalance) == ("net.small", 1)
    assert ranks.imbalance() == pytest.approx(13 / (31 / 3))


def test_what_if_the_slowest_were_as_fast_as_the_median(tmp_path):
    job(tmp_path)
    assert mtprof.load(tmp_path).gain_if_slowest_were_median_us() == 4 * 4_000


def test_overlap(tmp_path):
    for rank in range(2):
        one = Rank(rank, 2)
        one.compute(4)
        one.meet(0, 10)
        one.now = 6
        one.compute(3).idle(1)
        one.save(tmp_path)
    ranks = mtprof.load(tmp_path)
    assert ranks.overlap() == pytest.approx(0.5)
    assert {(row.communication_us, row.exposed_us, row.compute_us) for row in ranks.steps()} == {(6_000, 3_000, 7_000)}


def test_groups_are_matched_apart(tmp_path):
    for rank in range(4):
        one = Rank(rank, 2)
        one.compute(1 + rank % 2).meet(0, 5, group=str(1 + rank // 2))
        one.compute(1 + rank).meet(1, 12, group=str(1 + rank // 2))
        one.save(tmp_path)
    waits = mtprof.load(tmp_path).waits()
    assert {(row.group, row.number, row.last_rank, row.waited_us) for row in waits} == {
        ("1", 0, 1, 1_000), ("1", 1, 1, 1_000), ("2", 0, 3, 1_000), ("2", 1, 3, 1_000)}


def test_chrome_traces_give_the_same_answers(tmp_path):
    for kind in ("save", "save_chrome"):
        (tmp_path / kind).mkdir()
        job(tmp_path / kind, save=kind)
    own, chrome = mtprof.load(tmp_path / "save"), mtprof.load(tmp_path / "save_chrome")
    assert chrome.waits().to_dict() == own.waits().to_dict()
    mine, other = own.by_rank().to_dict(), chrome.by_rank().to_dict()
    for row in (*mine, *other):
        del row["clock_error_us"], row["steps"], row["duration_us"]  # these files do not say the steps
    assert other == mine


def test_a_pool_gives_the_same_answers(tmp_path):
    job(tmp_path)
    (tmp_path / "rank1.mtp").write_bytes((tmp_path / "rank1.mtp").read_bytes()[:400])
    alone, pool = mtprof.Ranks(tmp_path), mtprof.Ranks(tmp_path, workers=2)
    assert pool.by_rank().to_dict() == alone.by_rank().to_dict()
    assert pool.problems == alone.problems


def test_dask_gives_the_same_answers(tmp_path):
    distributed = pytest.importorskip("dask.distributed")
    job(tmp_path)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                  host="127.0.0.1") as cluster:
        on_dask = mtprof.Ranks(tmp_path, dask=cluster.scheduler_address)
        assert on_dask.by_rank().to_dict() == mtprof.load(tmp_path).by_rank().to_dict()
        assert on_dask.waits().to_dict() == mtprof.load(tmp_path).waits().to_dict()


def test_no_dask_scheduler_is_said(tmp_path):
    pytest.importorskip("dask.distributed")
    job(tmp_path)
    with pytest.raises(mtprof.BadFile, match="no Dask scheduler answers at nonsense"):
        len(mtprof.Ranks(tmp_path, dask="nonsense"))


def test_one_recording_of_them(tmp_path):
    job(tmp_path)
    ranks = mtprof.load(tmp_path)
    assert len(ranks.recording(1).trace) == 16
    with pytest.raises(KeyError, match="no file of rank 7"):
        ranks.recording(7)


def test_a_rank_that_is_still_late_is_late_for_the_same_reason():
    """Two buckets of gradients at the same time, then a collective that all begin together."""
    ms = 1_000_000
    columns = ms * np.array([(10, 40, 10, 0, 0, 0), (35, 40, 10, 25, 0, 0),  # rank 1 has waited for input
                             (12, 42, 2, 0, 0, 0), (38, 42, 3, 0, 0, 0),     # and is as late; it computed a bit longer
                             (50, 55, 8, 0, 0, 0), (50, 55, 8, 0, 0, 0)])    # nobody did anything longer
    met = Meetings(np.zeros(3, np.int64), np.arange(3), np.zeros(3, np.int64), np.array([0, 2, 4]),
                   np.array([0, 1] * 3), columns[:, 0], columns[:, 1], columns[:, 2:], ["0"])
    assert met.reason.tolist() == [1, 1, -1]
    assert met.excess[1].tolist() == [0.5 * ms, 0, 0, 0]
