"""Events and statistics of a program beside PyTorch's."""

from __future__ import annotations

import importlib
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from harness import ours, theirs

BOTH = pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])


def of(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.monitor")


@BOTH
def test_a_full_window_is_reported(torch: Any) -> None:
    monitor = of(torch)
    seen: list[Any] = []
    handle = monitor.register_event_handler(seen.append)
    kinds = monitor.Aggregation
    stat = monitor.Stat("a", (kinds.SUM, kinds.COUNT, kinds.MEAN, kinds.MAX, kinds.MIN), timedelta(hours=100), 3)
    for value in (1, 2, 3.5, 9):  # the last comes too late
        stat.add(value)
    monitor.unregister_event_handler(handle)
    assert [event.name for event in seen] == ["torch.monitor.Stat"]
    assert seen[0].data == {"a.sum": 6.5, "a.count": 3, "a.mean": 6.5 / 3, "a.max": 3.5, "a.min": 1}
    assert (stat.name, stat.count, stat.get()[kinds.SUM]) == ("a", 0, 6.5)


@BOTH
def test_windows_of_time(torch: Any) -> None:
    monitor = of(torch)
    seen: list[Any] = []
    handle = monitor.register_event_handler(seen.append)
    stat = monitor.Stat("b", [monitor.Aggregation.SUM], timedelta(milliseconds=1))
    stat.add(1)
    time.sleep(0.01)
    stat.add(5)
    del stat
    monitor.unregister_event_handler(handle)
    assert sum(event.data["b.sum"] for event in seen) == 6
    assert len(seen) == 2


@BOTH
def test_handlers(torch: Any) -> None:
    monitor = of(torch)

    def refuse(event: Any) -> None:
        raise RuntimeError(f"not {event.name}")

    event = monitor.Event("thing", datetime.now(), {"text": "a", "number": 1.5})
    handle = monitor.register_event_handler(refuse)
    with pytest.raises(RuntimeError, match="not thing"):
        monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    for wrong in (lambda: monitor.Event("a", 3, {}), lambda: monitor.Event("a", datetime.now(), {"a": [1]}),
                  lambda: monitor.log_event(3), lambda: monitor.register_event_handler(3)):
        with pytest.raises(TypeError, match="incompatible"):
            wrong()
