"""A fork while other threads hold locks: the child continues."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import autocast, namespace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def _in_child(work: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _in_autocast() -> None:
    with torch.autocast("cpu"):
        pass


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(("lock", "work"), [
    (lambda: namespace.LOCK, lambda: torch.special.entr(torch.ones(2))),
    (lambda: torch.default_generator._engine._lock, lambda: torch.rand(2)),
    (lambda: autocast._LOCK, _in_autocast),
], ids=["ops", "random numbers", "autocast"])
def test_locks_of_threads_that_the_child_does_not_have(lock: Callable[[], Any], work: Callable[[], Any]) -> None:
    held = threading.Event()

    def hold() -> None:
        with lock():
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    assert _in_child(work) == 0
    thread.join()
    work()
