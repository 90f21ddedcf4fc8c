"""The stack of what runs in a backward function: that of the op that recorded it."""

from __future__ import annotations

import threading
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def functions(event: Any) -> list[str]:
    """Names of the Python functions in an event's stack."""
    return [entry.rpartition(": ")[2] for entry in event.stack if not entry.startswith("<")]


def looks(x: Any) -> Any:
    """Ops with the number of the next node, which record none."""
    return torch.ones(3) + x.detach()


def doubles(x: Any) -> Any:
    return x * 2


def trebles(x: Any) -> Any:
    return x * 3


def test_an_op_that_records_nothing_has_no_backward() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile(with_stack=True) as prof:
        looks(x)
        doubles(x).sum().backward()
    events = prof.events()
    [backward] = [event for event in events if event.name == "MulBackward0"]
    assert functions(backward)[0] == "doubles"
    inside = [event for event in events if event.cpu_parent is backward]
    assert inside
    assert all(functions(event)[0] == "doubles" for event in inside)


def test_each_thread_counts_for_itself() -> None:
    both_there = threading.Barrier(2)

    def train(forward: Any) -> None:
        x = torch.ones(3, requires_grad=True)
        loss = forward(x).sum()
        both_there.wait(10)
        loss.backward()
        both_there.wait(10)

    with profile(with_stack=True) as prof:
        threads = [threading.Thread(target=train, args=(forward,)) for forward in (doubles, trebles)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    forwards = {event.thread: functions(event)[0] for event in prof.events()
                if event.name == "aten::mul" and event.sequence_nr >= 0}
    backwards = {event.thread: functions(event)[0] for event in prof.events() if event.name == "MulBackward0"}
    assert sorted(forwards.values()) == ["doubles", "trebles"]
    assert backwards == forwards
    assert all(event.fwd_thread == event.thread for event in prof.events() if event.name == "MulBackward0")
