"""A device's stream of random numbers that is first drawn from inside a block, and what the block promises."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._random import DEFAULTS
from mindtorch_v2.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch):
    """The state of a process that has drawn nothing on the device."""
    monkeypatch.delitem(DEFAULTS, torch.device("npu", 0), raising=False)


def test_a_checkpointed_layer_drops_the_same_elements_again():
    x = torch.ones(1000, device="npu", requires_grad=True)
    out = checkpoint(torch.nn.Dropout(0.5), x, use_reentrant=False)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_what_is_drawn_inside_fork_rng_is_drawn_again():
    with torch.random.fork_rng():
        inside = torch.rand(8, device="npu")
    assert torch.equal(torch.rand(8, device="npu"), inside)


def test_vmap_sees_what_is_drawn():
    x = torch.ones(3, 2, device="npu")
    with pytest.raises(RuntimeError, match="called random operation"):
        torch.vmap(lambda row: row + torch.rand(2, device="npu"))(x)


def test_the_same_numbers_for_every_example():
    x = torch.zeros(3, 8, device="npu")
    made = torch.vmap(lambda row: row + torch.rand(8, device="npu"), randomness="same")(x)
    assert torch.equal(made[0], made[1])
    assert torch.equal(made[0], made[2])
