"""Ops that are formulas of several operators give the CPU's values and gradients, also at the ends of their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch

F = torch.nn.functional
ENDS = [0.0, 1e-8, -1e-8, 1e-4, 0.5, -0.5, 3.0, -3.0, 20.0, 90.0, -90.0, 1e30, -1e30, math.inf, -math.inf, math.nan,
        -1.0, 1.0]
INDEX = torch.tensor([2, 0])


def on_both(function: Callable[..., Any], *tensors: torch.Tensor) -> None:
    """Compare the results, and the gradients of operands that have one."""
    seen = []
    for device in ("cpu", "npu"):
        given = [one.detach().to(device).requires_grad_(one.requires_grad) for one in tensors]
        made = function(*given)
        parts = list(made) if isinstance(made, (list, tuple)) else [made]
        if parts[0].requires_grad:
            (parts[0] * torch.arange(1.0, parts[0].numel() + 1, device=device).view(parts[0].shape)).sum().backward()
        seen.append([part.detach().cpu() for part in parts] + [one.grad.cpu() for one in given if one.requires_grad])
    for mine, expected in zip(seen[1], seen[0], strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("name", ["log1p", "expm1", "sinh", "cosh", "tan", "exp2", "frac", "nan_to_num", "logit",
                                  "sgn"])
def test_functions_of_one_number(name):
    on_both(getattr(torch, name), torch.tensor(ENDS))


@pytest.mark.parametrize("name", ["logaddexp", "hypot"])
def test_functions_of_two_numbers(name):
    ends = torch.tensor(ENDS)
    on_both(getattr(torch, name), ends, ends)
    on_both(getattr(torch, name), ends, ends.flip(0))


@pytest.mark.parametrize("function", [
    F.elu, F.selu, F.celu, F.mish, F.hardshrink, F.softshrink, F.logsigmoid, F.softsign, F.glu, torch.abs, torch.logit,
    lambda x: F.elu(x * 1.0, inplace=True), lambda x: torch.logit(x, eps=0.1),
    lambda x: F.prelu(x, torch.tensor([0.25], device=x.device)), lambda x: x.clamp_min(x.flip(0)),
    lambda x: x.clamp_max(x.flip(0)), lambda x: x.cumprod(1), torch.trace, torch.diag_embed, lambda x: x.nansum(),
    lambda x: x.median(1), lambda x: x.median(), lambda x: x.kthvalue(2, 0), lambda x: torch.addr(x, x[:, 0], x[0]),
    lambda x: torch.addmv(x[:, 0], x, x[0]), lambda x: x.take(INDEX.to(x.device)),
    lambda x: x.index_fill(1, INDEX.to(x.device), 7.0), lambda x: x.index_copy(1, INDEX.to(x.device), x[:, :2] * 2),
    lambda x: F.pixel_shuffle(x.view(1, 4, 2, 2), 2), lambda x: F.pixel_unshuffle(x.view(1, 1, 4, 4), 2),
    lambda x: torch._weight_norm(x, x[:, :1] + 2, 0), lambda x: F.l1_loss(x, x.flip(0), reduction="none"),
    lambda x: F.huber_loss(x, x.flip(0) * 3, delta=0.7), lambda x: F.soft_margin_loss(x, x.flip(1).sign()),
])
def test_functions_with_gradients(function):
    on_both(function, torch.tensor([[-0.5, 0.05, 0.3, 0.95], [1.5, -30.0, 30.0, 0.25], [0.5, -1.5, 2.0, -2.0],
                                    [0.6, 0.7, -0.8, 0.15]], requires_grad=True))


def test_the_median_is_no_number_where_there_is_none():
    on_both(lambda x: x.median(1), torch.tensor([[1.0, math.nan, 0.0], [2.0, 1.0, 3.0]]))
    on_both(torch.median, torch.tensor([1.0, math.nan]))


@pytest.mark.parametrize("optimizer", [
    lambda parameters: torch.optim.ASGD(parameters), lambda parameters: torch.optim.Adamax(parameters),
    lambda parameters: torch.optim.Adam(parameters, amsgrad=True)])
def test_optimizers_whose_state_is_beside_the_parameters(optimizer):
    def trained(start: torch.Tensor) -> torch.Tensor:
        parameter = torch.nn.Parameter(start.detach().clone())
        steps = optimizer([parameter])
        for _ in range(3):
            steps.zero_grad()
            parameter.square().sum().backward()
            steps.step()
        return parameter.detach()

    on_both(trained, torch.tensor([1.0, -2.0, 3.0]))
