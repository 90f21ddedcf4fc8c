"""`torch.autograd.grad` and the rules of `out=`, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from both import outcome, same  # noqa: E402


def test_a_batch_of_gradients() -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(3.0, requires_grad=True)
        unused = torch.ones(2, requires_grad=True)
        jacobian = torch.autograd.grad(x * x, x, torch.eye(3), is_grads_batched=True)
        several = torch.autograd.grad((x * x, x.sum()), (x, unused), (torch.eye(3), torch.ones(3)),
                                      allow_unused=True, is_grads_batched=True)
        second = torch.autograd.grad(x**3, x, torch.eye(3), create_graph=True, is_grads_batched=True)[0]
        return jacobian, several, torch.autograd.grad(second.sum(), x)

    same(program)


def test_a_batch_of_gradients_leaves_the_graph_as_a_single_one_does() -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(3.0, requires_grad=True)
        kept, freed = x * x, x * x
        torch.autograd.grad(kept, x, torch.eye(3), retain_graph=True, is_grads_batched=True)
        torch.autograd.grad(freed, x, torch.eye(3), is_grads_batched=True)
        again = torch.autograd.grad(kept.sum(), x)
        try:
            torch.autograd.grad(freed.sum(), x)
        except RuntimeError as error:
            return again, str(error)[:60]
        return again, None

    same(program)


@pytest.mark.parametrize("call", [
    lambda torch, x, y, out: torch.add(y, y, out=out),
    lambda torch, x, y, out: torch.exp(y, out=out),
    lambda torch, x, y, out: torch.mul(x, y, out=torch.empty(3)),
], ids=["add", "exp", "of a leaf"])
def test_out_and_gradients(call: Any) -> None:
    def program(torch: Any) -> Any:
        x, y = torch.ones(3, requires_grad=True), torch.ones(3)
        with torch.no_grad():
            allowed = call(torch, x, y, torch.empty(3, requires_grad=True))
        return allowed, outcome(lambda: call(torch, x, y, torch.empty(3, requires_grad=True)))

    same(program)


def test_arrays_of_tensors_that_require_gradients() -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad():
            inside = x.numpy().tolist(), x.__array__().tolist()
        with torch.inference_mode():
            inferring = x.numpy().tolist()
        return inside, inferring, outcome(lambda: x.numpy()), outcome(lambda: x.__array__())

    same(program)
