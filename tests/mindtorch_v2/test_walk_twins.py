"""The backward pass in C and in Python: the same order, the same owners, the same errors."""

from __future__ import annotations

import gc
import random
import weakref
from typing import ClassVar

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

pytestmark = pytest.mark.usefixtures("walk")


class Noted(torch.autograd.Function):
    """Passes its input on, and notes when its backward runs."""

    order: ClassVar[list[int]] = []

    @staticmethod
    def forward(ctx, x, number):
        ctx.number = number
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Noted.order.append(ctx.number)
        return grad, None


def program(seed):
    """A graph with shared values, views, in-place changes, functions of its own; the gradients of its leaves."""
    chosen = random.Random(seed)
    leaves = [torch.full((2, 3), 1.0 + i, requires_grad=True) for i in range(3)]
    values = list(leaves)
    for number in range(25):
        x, y = chosen.choice(values), chosen.choice(values)
        values.append(chosen.choice([
            lambda x=x, y=y: x * y * 0.1, lambda x=x, y=y: x + y, lambda x=x: x.t().t(),
            lambda x=x: x.sum(0).expand(2, 3), lambda x=x, number=number: Noted.apply(x, number),
            lambda x=x: (x * 2).tanh_(), lambda x=x, y=y: torch.cat([x, y])[1:3], lambda x=x: x.unbind(0)[0] + x,
            lambda x=x: -x])())
    Noted.order = []
    sum(v.sum() for v in values[-6:]).backward()
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves], list(Noted.order)


@pytest.fixture(scope="module")
def found():
    return {}


@pytest.mark.parametrize("seed", range(40))
def test_gradients_and_order(found, seed):
    assert found.setdefault(seed, program(seed)) == program(seed)


def test_a_leafs_first_gradient_is_taken_over_and_later_ones_are_added():
    x = torch.ones(3, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda grad: seen.append(grad))
    y.sum().backward()
    first = x.grad
    (x * 2).sum().backward()
    assert x.grad is first
    assert first.tolist() == [4.0, 4.0, 4.0]
    assert seen[0].tolist() == [1.0, 1.0, 1.0]


def test_the_graph_is_released_unless_it_is_kept():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=1)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_intermediate_gradients_die_as_soon_as_they_are_used():
    alive = []

    class Watch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            gc.collect()
            alive.append(sum(reference() is not None for reference in references))
            references.append(weakref.ref(grad))
            return grad * 1

    references = []
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(5):
        y = Watch.apply(y * 1)
    y.sum().backward()
    assert alive == [0] * 5


def test_a_profiler_that_starts_within_a_backward_sees_the_rest():
    x = torch.ones(3, requires_grad=True)
    y = x.sin()
    z = y.cos()
    recording = profile()
    y.register_hook(lambda grad: recording.start())
    z.exp().sum().backward()
    recording.stop()
    names = [event.key for event in recording.key_averages()]
    assert any(name.endswith("AccumulateGrad") for name in names)
    assert not any("ExpBackward0" in name for name in names)


def test_a_profiler_that_stops_within_a_backward_has_seen_the_beginning():
    x = torch.ones(3, requires_grad=True)
    y = x.sin()
    z = y.cos()
    recording = profile()
    y.register_hook(lambda grad: recording.stop())
    recording.start()
    z.exp().sum().backward()
    names = [event.key for event in recording.key_averages()]
    assert any("ExpBackward0" in name for name in names)
    assert not any("SinBackward0" in name for name in names)
    assert x.grad is not None


def test_an_error_in_a_formula_leaves_the_engine_usable():
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no gradient today")

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="no gradient today"):
        (Failing.apply(x * 2) * 3).sum().backward()
    assert torch.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_only_the_paths_to_what_is_asked_for_are_walked():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    Noted.order = []
    z = Noted.apply(x * 2, 0) + Noted.apply(y * 3, 1)
    (found,) = torch.autograd.grad(z.sum(), y)
    assert found.tolist() == [3.0, 3.0, 3.0]
    assert Noted.order == [1]
    assert x.grad is None
    assert y.grad is None


def test_anomalies_are_detected():
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection|Error detected"), torch.autograd.detect_anomaly(), \
            pytest.raises(RuntimeError, match="nan values"):
        (x.sqrt() * x).sum().backward()


def test_a_graph_deeper_than_the_stack():
    x = y = torch.ones(2, requires_grad=True)
    for _ in range(50_000):
        y = y + 0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
