"""Measures how far the clock of each rank is from that of rank 0, over MPI.

A rank asks another for its time and assumes that the answer is from the middle of the wait. The error is at most half
of the wait, and the question with the shortest wait counts. Ranks ask in rounds: in each round, the ranks whose clock
is known answer one whose clock is not, so a thousand ranks take ten rounds. A rank's bound is half of its own wait plus
the bound of the rank that it asked.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._dispatch.observer import HOOK

__all__ = ["Alignment", "align"]

_QUESTIONS = 16
# A busy machine answers late, and in time only sometimes. It is asked more often, until a wait was this short, but not
# for longer than that.
_MOST_QUESTIONS, _SHORT_NS, _LONG_NS = 128, 20_000, 200_000_000
_TAG = 7


@dataclass(frozen=True)
class Alignment:
    """`offset_ns` is what to add to this rank's clock to get that of rank 0; the error is at most `error_ns`."""

    run: str            # the same on all ranks of a job, and on no others
    reference_rank: int
    time_ns: int        # this rank's clock at the comparison
    offset_ns: int
    error_ns: int

    def to_dict(self) -> dict[str, Any]:
        """In the form of a trace's metadata."""
        return asdict(self)


def align(world: Any) -> Alignment:
    """Compare the clocks of all ranks of a communicator; all of them must call this."""
    clock = HOOK["clock"]
    rank, size = world.Get_rank(), world.Get_size()
    run = world.bcast(uuid.uuid4().hex[:12] if rank == 0 else None)
    offset, error, known = 0, 0, 1
    while known < size:
        if rank < known and rank + known < size:
            _answer(world, rank + known, clock, offset, error)
        elif known <= rank < 2 * known:
            offset, error = _ask(world, rank - known, clock)
        known *= 2
    return Alignment(run, 0, clock(), offset, error)


def _answer(world: Any, who: int, clock: Any, offset: int, error: int) -> None:
    more = np.ones(1, np.int64)
    while more[0]:
        world.Recv(more, who, _TAG)
        world.Send(np.array([clock() + offset, error], np.int64), who, _TAG)


def _ask(world: Any, whom: int, clock: Any) -> tuple[int, int]:
    more, answer = np.ones(1, np.int64), np.empty(2, np.int64)
    shortest, found = 0, (0, 0)
    end = clock() + _LONG_NS
    for number in range(1, _MOST_QUESTIONS + 1):
        asked = clock()
        more[0] = number < _QUESTIONS or (number < _MOST_QUESTIONS and shortest > _SHORT_NS and asked < end)
        world.Send(more, whom, _TAG)
        world.Recv(answer, whom, _TAG)
        waited = clock() - asked
        if number == 1 or waited < shortest:
            shortest, found = waited, (int(answer[0]) - asked - waited // 2, waited // 2 + 1 + int(answer[1]))
        if not more[0]:
            break
    return found
