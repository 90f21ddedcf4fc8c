"""Gradients of random programs, requested in every way, and of formulas that few programs reach."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as ours

pytestmark = pytest.mark.usefixtures("walk")

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

OPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda torch, a, b: a + b,
    "mul": lambda torch, a, b: a * b,
    "sub": lambda torch, a, b: a - b * 2,
    "sin": lambda torch, a, b: a.sin(),
    "exp": lambda torch, a, b: (a * 0.1).exp(),
    "sum": lambda torch, a, b: a.sum(-1) if a.dim() else a * 1,
    "flat": lambda torch, a, b: a.reshape(-1),
    "transpose": lambda torch, a, b: a.transpose(0, -1) if a.dim() > 1 else a.view(a.shape),
    "cat": lambda torch, a, b: torch.cat([a.reshape(-1), b.reshape(-1)]),
    "stack": lambda torch, a, b: torch.stack([a, a]),
    "expand": lambda torch, a, b: a.expand(2, *a.shape),
    "where": lambda torch, a, b: torch.where(a > 0, a, a * 0.5),
    "index": lambda torch, a, b: a.reshape(-1)[torch.tensor([0, 0])],
    "real": lambda torch, a, b: torch.complex(a, a * 0.3).real * 1.5,
    "detach": lambda torch, a, b: a.detach() + b,
    "add_": lambda torch, a, b: (a.clone() if a.is_leaf else a).add_(0.5),
    "slice_": lambda torch, a, b: _scaled_in_place(a.clone()),
}
if os.environ.get("MINDTORCH_TEST_DEVICE") == "npu":
    del OPS["real"]  # the NPU has no complex numbers
WAYS = ("grad", "grad again", "grad with hooks", "backward", "backward to inputs", "retained")


def _scaled_in_place(x: Any) -> Any:
    x.view(-1)[:1].mul_(3)
    return x


def gradients(torch: Any, seed: int) -> list[Any] | None:
    """The gradients of the program of this seed; None if it fails.

    A program may change what a node has kept, and what nodes keep differs.
    """
    draw, numbers = random.Random(seed), np.random.RandomState(seed)
    shapes = [draw.choice([(3,), (2, 3), (1,), (2, 1), ()]) for _ in range(draw.randint(2, 4))]
    leaves = [torch.tensor(np.asarray(numbers.randn(*shape))).requires_grad_() for shape in shapes]
    values = list(leaves)
    for _ in range(draw.randint(3, 12)):
        name, a, b = draw.choice(list(OPS)), draw.choice(values), draw.choice(values)
        try:
            values.append(OPS[name](torch, a, b))
        except RuntimeError:  # shapes that do not fit
            values.append(a * 1.0)
    total = sum((value * (k + 1)).sum() for k, value in enumerate(values[-3:]))
    wanted: list[Any] = []
    for _ in range(draw.randint(1, 4)):
        found = draw.choice([value for value in values if value.requires_grad])
        if not any(found is one for one in wanted):
            wanted.append(found)
    way = draw.choice(WAYS)
    try:
        if way.startswith("grad"):
            if way == "grad with hooks":
                for one in wanted:
                    one.register_hook(lambda grad: grad * 2)
            made = torch.autograd.grad(total, wanted, allow_unused=True, create_graph=way == "grad again")
            squares = [(one * one).sum() for one in made if one is not None and one.requires_grad]
            if squares:
                made += torch.autograd.grad(sum(squares), leaves, allow_unused=True)
        else:
            for one in wanted if way != "backward" else ():
                if not one.is_leaf:
                    one.retain_grad()
            total.backward(inputs=wanted if way == "backward to inputs" else None)
            made = [one.grad for one in (wanted if way != "backward" else leaves)]
    except RuntimeError:
        return None
    return [None if one is None else one.detach().cpu().numpy() for one in made]


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_gradients_of_random_programs(start: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(start, start + 50):
            mine, other = gradients(ours, seed), gradients(theirs, seed)
            if mine is None or other is None:
                continue
            assert len(mine) == len(other), seed
            for one, two in zip(mine, other, strict=True):
                assert (one is None) == (two is None), seed
                if one is not None:
                    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12, err_msg=str(seed))


COMPLEX = {
    "tanh": lambda x, w: ours.tanh(x),
    "sigmoid": lambda x, w: ours.sigmoid(x),
    "logcumsumexp": lambda x, w: ours.logcumsumexp(x, 2),
    "conv2d": lambda x, w: ours.nn.functional.conv2d(x, w),
    "conv_transpose2d": lambda x, w: ours.nn.functional.conv_transpose2d(x, w, stride=2),
    "svdvals": lambda x, w: ours.linalg.svdvals(x[0, 0]),
    "eigvalsh": lambda x, w: ours.linalg.eigvalsh(x[0, 0] @ x[0, 0].mH),
    "renorm": lambda x, w: ours.renorm(x.real, float("inf"), 2, 0.5),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_second_gradients_of_complex_tensors(name: str) -> None:
    ours.manual_seed(1)
    x, w = (ours.randn(*shape, dtype=ours.complex128, requires_grad=True) for shape in ((1, 1, 3, 3), (1, 1, 2, 2)))
    assert ours.autograd.gradcheck(COMPLEX[name], (x, w))
    assert ours.autograd.gradgradcheck(COMPLEX[name], (x, w))


@pytest.mark.parametrize("function", [
    lambda torch, x: torch.linalg.norm(x * 0, "nuc"),
    lambda torch, x: torch.linalg.svdvals(x).sum(),
    lambda torch, x: torch.linalg.eigvalsh(x).sum(),
    lambda torch, x: torch.nextafter(x, x.detach()).sum(),
    lambda torch, x: torch.nextafter(x.detach(), x).sum(),
    lambda torch, x: (x.bfloat16() * 1.01).double().sum(),
])
def test_gradients_where_values_are_equal(function: Callable[[Any, Any], Any]) -> None:
    found = []
    for torch in (ours, theirs):
        x = torch.eye(3, dtype=torch.float64, requires_grad=True)
        found.append(torch.autograd.grad(function(torch, x), x)[0].tolist())
    np.testing.assert_allclose(*found)


def test_a_given_gradient_takes_the_dtype_of_its_output() -> None:
    found = []
    for torch in (ours, theirs):
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        found.append(torch.autograd.grad(x.bfloat16(), x, torch.tensor([1.7886284, 1.0, 1.0]))[0].tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["float32", "complex128"])
def test_forward_mode_of_logcumsumexp(kind: str) -> None:
    found = []
    for torch in (ours, theirs):
        forward = torch.autograd.forward_ad
        x = torch.tensor([-5.0, 6.0, 3.0, 6.1], dtype=getattr(torch, kind))
        with warnings.catch_warnings(), forward.dual_level():
            warnings.simplefilter("ignore")  # PyTorch's first use of forward mode warns of its own parts
            dual = forward.make_dual(x, torch.tensor([1.0, 0.0, 2.0, -1.0], dtype=x.dtype))
            found.append(forward.unpack_dual(torch.logcumsumexp(dual, 0))[1].cpu().numpy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)
