"""What a profiler sees of the communication between ranks."""

from __future__ import annotations

import json

import pytest
from ranks_helper import PROGRAMS, torchrun

pytest.importorskip("mpi4py")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Two ranks of which the second is slow."""
    folder = tmp_path_factory.mktemp("ranks")
    ended = torchrun(2, str(PROGRAMS / "profiled.py"), "1", results=folder)
    assert ended.returncode == 0, ended.stderr
    return folder


def test_collectives_are_events_with_pytorchs_arguments(recordings):
    for rank in range(2):
        written = json.loads((recordings / f"rank{rank}.json").read_text())
        info = written["distributedInfo"]
        assert (info["backend"], info["rank"], info["world_size"], info["pg_count"]) == ("gloo", rank, 2, 1)
        assert info["pg_config"][0]["ranks"] == [0, 1]
        events = [event for event in written["traceEvents"] if event.get("ph") == "X"]
        calls = [event for event in events if event["name"] == "c10d::allreduce_"]
        moved = [event for event in events if event["name"] == "record_param_comms"]
        assert len(calls) == len(moved) == 8
        main = calls[0]["tid"]
        blocking = [event for event in moved if event["tid"] == main]
        beside = [event for event in moved if event["tid"] != main]
        assert [event["args"]["In msg nelems"] for event in blocking] == [1] * 4
        assert [event["args"]["In msg nelems"] for event in beside] == [64 * 256 + 256 + 256 * 8 + 8] * 4
        assert {event["args"]["Collective name"] for event in moved} == {"allreduce"}
        assert {event["args"]["dtype"] for event in moved} == {"Float"}
        assert {event["args"]["Rank"] for event in moved} == {rank}
        # The numbers of collectives are the same on all ranks.
        assert sorted(event["args"]["Seq"] for event in moved) == list(range(1, 9))


def test_asynchronous_collectives_have_arrows_to_their_waits(recordings):
    written = json.loads((recordings / "rank0.json").read_text())["traceEvents"]
    spans = {(event["tid"], event["ts"]): event for event in written if event.get("ph") == "X"}
    ends = {phase: [event for event in written if event.get("ph") == phase and event["cat"] == "collective_wait"]
            for phase in "sf"}
    assert [event["id"] for event in ends["s"]] == [event["id"] for event in ends["f"]] == [1, 2, 3, 4]
    for leaves, arrives in zip(ends["s"], ends["f"]):
        moved, wait = (spans[one["tid"], one["ts"]] for one in (leaves, arrives))
        assert moved["args"]["In msg nelems"] == 64 * 256 + 256 + 256 * 8 + 8
        assert wait["name"] == "mpi:wait"
        # The wait begins after the collective and ends after it.
        assert wait["ts"] >= moved["ts"]
        assert wait["ts"] + wait["dur"] >= moved["ts"] + moved["dur"]


def test_a_recording_lists_its_collectives(recordings):
    import mtprof

    rows = mtprof.load(recordings / "rank0.mtprof").collectives()
    assert {(row.operation, row.group_size, row.dtype) for row in rows} == {("allreduce", 2, "Float")}
    assert sum(row.count for row in rows) == 8
    assert sum(row.size_bytes for row in rows) == 4 * (4 + 4 * (64 * 256 + 256 + 256 * 8 + 8))


def test_the_rank_that_others_wait_for_is_named(recordings):
    import mtprof

    ranks = mtprof.load(recordings)
    assert len(ranks) == 2
    assert ranks.problems == []
    slowest = ranks.by_rank()[0]
    assert slowest.rank == 1
    assert slowest.why in ("compute", "other")  # on a busy machine it may be kept from computing longer still
    assert slowest.waited_for_us > ranks.by_rank()[1].waited_for_us
    assert {(row.rank, row.step) for row in ranks.steps()} == {(rank, step) for rank in range(2) for step in range(4)}
    assert len(ranks.waits()) == 8
    (recordings / "rank0.mtprof").rename(recordings / "rank0.away")
    (recordings / "rank0.away").rename(recordings.parent / "rank0.away")
    try:
        alone = mtprof.load(recordings)
        assert len(alone) == 1
        assert alone.problems == ["no file of rank 0 (of 2)"]
    finally:
        (recordings.parent / "rank0.away").rename(recordings / "rank0.mtprof")
