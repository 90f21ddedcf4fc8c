"""Tensors in shared memory stay shared with other processes; others are sent by value."""

from __future__ import annotations

import pickle
from typing import Any

import mindtorch_v2 as torch
import mindtorch_v2.multiprocessing as processes
from mindtorch_v2 import nn


def _change(inbox: Any, outbox: Any) -> None:
    for tensor in iter(inbox.get, None):
        with torch.no_grad():
            tensor.add_(1)
        outbox.put((tensor.is_shared(), type(tensor).__name__, tensor.requires_grad, tensor.detach().tolist()))


def test_a_process_that_was_there_before_changes_shared_memory_only() -> None:
    context = processes.get_context("fork")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=_change, args=(inbox, outbox))
    child.start()
    shared = torch.arange(4.0).share_memory_()
    parameter = nn.Linear(2, 1, bias=False).share_memory().weight
    with torch.no_grad():
        parameter.zero_()
    alone = torch.zeros(2)
    try:
        for tensor in (shared[1:].reshape(3, 1).t(), parameter, alone):
            inbox.put(tensor)
        answers = [outbox.get() for _ in range(3)]
    finally:
        inbox.put(None)
        child.join()
    assert answers == [(True, "Tensor", False, [[2.0, 3.0, 4.0]]), (True, "Parameter", True, [[1.0, 1.0]]),
                       (False, "Tensor", False, [1.0, 1.0])]
    assert shared.tolist() == [0.0, 2.0, 3.0, 4.0]
    assert parameter.tolist() == [[1.0, 1.0]]
    assert alone.tolist() == [0.0, 0.0]


def test_a_pickle_of_shared_memory_is_a_copy() -> None:
    shared = torch.ones(2).share_memory_()
    copy = pickle.loads(pickle.dumps(shared))
    copy.zero_()
    assert shared.tolist() == [1.0, 1.0]
    assert not copy.is_shared()
