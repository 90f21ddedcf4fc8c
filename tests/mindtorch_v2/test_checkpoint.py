"""Recomputing activations gives the gradients that keeping them gives."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def block(x, weight, scale=1.0):
    return torch.tanh(torch.nn.functional.dropout(x @ weight, 0.5) * scale) @ weight


def leaves():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_(),
            torch.randn(4, 4, generator=generator, dtype=torch.float64).requires_grad_()]


def gradients(call):
    """Gradients of both leaves, and the random number after."""
    torch.manual_seed(1)
    x, weight = leaves()
    call(x, weight).pow(2).sum().backward()
    return x.grad, weight.grad, torch.rand(1)


def assert_equal(got, want):
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("reentrant", [False, True])
def test_same_gradients_and_random_numbers(reentrant):
    want = gradients(lambda x, w: block(block(x, w), w))
    got = gradients(lambda x, w: checkpoint(block, checkpoint(block, x, w, use_reentrant=reentrant), w,
                                            use_reentrant=reentrant))
    assert_equal(got, want)


def test_nested_checkpoints():
    def two(x, w):
        return checkpoint(block, checkpoint(block, x * 2, w, use_reentrant=False).exp(), w, use_reentrant=False)

    want = gradients(lambda x, w: block(block(x * 2, w).exp(), w).sigmoid())
    assert_equal(gradients(lambda x, w: checkpoint(two, x, w, use_reentrant=False).sigmoid()), want)


def test_second_gradients_and_keywords():
    def run(call):
        torch.manual_seed(1)
        x, weight = leaves()
        (first,) = torch.autograd.grad(call(x * 1.5, weight).pow(2).sum(), x, create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), [x, weight])

    want = run(lambda x, w: block(x, w, scale=2.0))
    assert want[0].abs().sum().item() > 0
    assert_equal(run(lambda x, w: checkpoint(block, x, w, scale=2.0, use_reentrant=False)), want)


def test_backward_twice_computes_twice():
    x, weight = leaves()
    calls = []

    def counted(x):
        calls.append(1)
        return (x @ weight).exp().sum()

    result = checkpoint(counted, x, use_reentrant=False)
    result.backward(retain_graph=True)
    once = x.grad.clone()
    result.backward()
    torch.testing.assert_close(x.grad, 2 * once)
    assert len(calls) == 3


def test_activations_are_not_kept():
    kept = []
    x, weight = leaves()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        result = checkpoint(lambda x: (x @ weight).exp().sin().sum(), x, use_reentrant=False)
    # Only the argument went through the hooks outside.
    assert len(kept) == 1
    result.backward()
    assert x.grad is not None


@pytest.mark.parametrize(("early", "calls"), [(True, 1), (False, 2)])
def test_early_stop(early, calls):
    x, _ = leaves()
    reached = []

    def function(x):
        y = x.exp()
        reached.append(1)
        return y.sum()

    with set_checkpoint_early_stop(early):
        result = checkpoint(function, x, use_reentrant=False)
    result.backward()
    assert len(reached) == calls


def test_a_function_that_changes_is_noticed():
    x, _ = leaves()
    for later, words in ((lambda x: x[:2].exp().sum(), "different metadata"), (lambda x: x.sum(), "different number")):
        calls = []

        def function(x, calls=calls, later=later):
            calls.append(1)
            return x.exp().sum() if len(calls) == 1 else later(x)

        with pytest.raises(CheckpointError, match=words):
            checkpoint(function, x, use_reentrant=False).backward()


def test_random_numbers_are_drawn_anew_when_not_preserved():
    x, _ = leaves()
    seen = []

    def function(x):
        seen.append(torch.rand(1).item())
        return (x * seen[-1]).exp().sum()

    checkpoint(function, x, use_reentrant=False, preserve_rng_state=False).backward()
    assert seen[0] != seen[1]
    seen.clear()
    checkpoint(function, x, use_reentrant=False).backward()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("reentrant", [False, True])
def test_sequential(reentrant):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(5)])
    x = torch.randn(2, 4, requires_grad=True)
    layers(x).pow(2).sum().backward()
    want = [p.grad.clone() for p in layers.parameters()]
    layers.zero_grad()
    checkpoint_sequential(layers, 2, x, use_reentrant=reentrant).pow(2).sum().backward()
    assert_equal([p.grad for p in layers.parameters()], want)


def test_without_recording_and_bad_arguments():
    x, weight = leaves()
    with torch.no_grad():
        assert not checkpoint(block, x, weight, use_reentrant=False).requires_grad
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(block, x, weight)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(block, x, weight, use_reentrant=True, scale=2.0)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint(block, x.detach(), weight.detach(), use_reentrant=True)


def test_contexts_surround_both_runs():
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exc):
            return None

    x, weight = leaves()
    checkpoint(block, x, weight, use_reentrant=False,
               context_fn=lambda: (Context("forward"), Context("again"))).sum().backward()
    assert entered == ["forward", "again"]


def test_the_log_of_both_runs():
    runs = []

    def changing(x):
        runs.append(1)
        return x.exp() if len(runs) == 1 else x.sum().exp()

    y = checkpoint(changing, torch.ones(3, requires_grad=True), use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match="because you passed `debug=True`") as caught:
        y.sum().backward()
    text = str(caught.value)
    forward, again = text.partition("Operations executed during recomputation")[::2]
    assert "aten.exp.default" in forward.partition("Operations executed during the original forward")[2]
    assert "aten.sum.default" in again
    assert "in changing" in text  # where ops were called
    assert "different metadata" in str(caught.value.__cause__)
    x = torch.ones(3, requires_grad=True)
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
        with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
            checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: (nullcontext(), nullcontext()))
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward()
    assert torch.equal(x.grad, first * 2)
