"""Sparse tensors pickled, copied and sent to a queue; the modules of `torch.multiprocessing`; beside PyTorch."""

from __future__ import annotations

import copy
import importlib
import pickle

import pytest

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
BOTH = [ours, theirs]
MAKERS = [
    lambda t: t.eye(3).to_sparse(), lambda t: t.eye(3).to_sparse_csr(), lambda t: t.eye(3).to_sparse_csc(),
    lambda t: t.sparse_coo_tensor(t.tensor([[1, 1]]), t.tensor([2.0, 3.0]), (4,)),
]


def through_a_queue(t, value):
    queue = importlib.import_module(f"{t.__name__}.multiprocessing").SimpleQueue()
    queue.put(value)
    return queue.get()


@pytest.mark.parametrize("number", range(len(MAKERS)))
@pytest.mark.parametrize("way", ["pickle", "queue"])
def test_sparse_tensors_travel(number, way):
    found = []
    for t in BOTH:
        made = MAKERS[number](t)
        other = pickle.loads(pickle.dumps(made)) if way == "pickle" else through_a_queue(t, made)
        found.append((str(other.layout), other.to_dense().tolist(), other.is_sparse and other.is_coalesced()))
    assert found[0] == found[1]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_deep_copies_of_sparse_tensors(requires_grad):
    found = []
    for t in BOTH:
        made = MAKERS[0](t).requires_grad_(requires_grad)
        other = copy.deepcopy(made)
        other.detach()._values().fill_(5)
        found.append((str(other.layout), other.requires_grad, made.detach().to_dense().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("module", BOTH)
def test_modules_of_multiprocessing(module):
    queues = importlib.import_module(f"{module.__name__}.multiprocessing.queue")
    pools = importlib.import_module(f"{module.__name__}.multiprocessing.pool")
    processes = importlib.import_module(f"{module.__name__}.multiprocessing")
    assert isinstance(processes.get_context("fork").SimpleQueue(), queues.SimpleQueue.__mro__[-2])
    assert pools.Pool.__name__ == "Pool"
    left, right = map(queues.ConnectionWrapper, processes.Pipe())
    left.send({"a": module.ones(2)})
    assert right.recv()["a"].tolist() == [1, 1]
    left.close()
    right.close()
