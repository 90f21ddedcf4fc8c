"""Each planted fault is found, at its place; the program without it is told that it is healthy."""

from __future__ import annotations

import json

import pytest
from command import HERE

# What the finding must name: the function of the program, or None where no single function is to blame.
FAULTS = {
    "input-bound": {"train", "__getitem__"},
    "tiny-ops": {"row_by_row", "<listcomp>"},
    "unfused-optimizer": {"train"},
    "waiting": {"train"},
    "garbage-collector": {"train"},
    "slow-first-steps": {"build_table"},
    "changing-shapes": {"train", "forward"},
    "memory-peak": {"distances"},
    "memory-growth": {"train"},
}


def advice(command, fault: str) -> dict:
    done = command("run", "--no-report", "--no-summary", "-q", "-o", "run.mtp", HERE / "faulty_program.py", fault)
    assert done.returncode == 0, done.stderr
    done = command("advise", "--json", "run.mtp")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_healthy_program_is_told_so(command):
    found = advice(command, "healthy")
    assert [finding["title"] for finding in found["findings"]] == []
    assert found["summary"].startswith("Nothing to report")
    assert {check["verdict"] for check in found["checks"]} == {"clean", "cannot tell"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(command, fault):
    found = advice(command, fault)
    kinds = {finding["kind"]: finding for finding in found["findings"]}
    assert fault in kinds, found["checks"]
    finding = kinds[fault]
    assert finding["figures"]
    assert finding["change"]
    assert finding["place"]["function"] in FAULTS[fault], finding["place"]
    assert finding["saves_ns"] or finding["saves_bytes"] or finding["saves_ns"] is None
    # Other findings may follow from the fault, as a peak does from what is kept; but nothing is said without a reason.
    assert set(kinds) - {fault} <= FOLLOWS.get(fault, set()), [finding["title"] for finding in found["findings"]]


# What a fault brings with it.
FOLLOWS = {"waiting": set(), "memory-growth": set()}
