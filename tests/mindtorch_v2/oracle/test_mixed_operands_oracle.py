"""Ops whose kernels find the operands' common type: the result's type, or the refusal, is PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from both import outcome, same

KINDS = ("bool", "int32", "int64", "float16", "float32")


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("name", ["addcmul", "addcmul_", "addcdiv", "addcdiv_"])
def test_three_operands(name: str, first: str) -> None:
    def program(torch: Any) -> Any:
        made = []
        for kinds in itertools.product(KINDS, KINDS):
            target, *others = (torch.ones(2, dtype=getattr(torch, kind)) for kind in (first, *kinds))
            made.append(outcome(lambda: getattr(target, name)(*others, value=2), 40))  # noqa: B023
        return made

    same(program)


@pytest.mark.parametrize("name", ["clamp_min", "clamp_max", "clamp_min_", "maximum", "rsub"])
def test_two_operands(name: str) -> None:
    def program(torch: Any) -> Any:
        made = []
        for kinds in itertools.product(KINDS, KINDS):
            target, other = (torch.ones(2, dtype=getattr(torch, kind)) for kind in kinds)
            run = getattr(target, name, None) or (lambda other: torch.rsub(target, other, alpha=3))  # noqa: B023
            made.append(outcome(lambda: run(other), 40))  # noqa: B023
        return made

    same(program)


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("number", [1.1, 3, True])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_a_number_first(name: str, number: Any, shape: Any) -> None:
    def program(torch: Any) -> Any:
        made = []
        for kind in ("int8", "int64", "float16", "float32", "float64"):
            other = torch.full(shape, 7, dtype=getattr(torch, kind))
            made.append(outcome(lambda: getattr(torch, name)(number, other), 40))  # noqa: B023
        return [(made, torch.add(1.1, torch.tensor(0.25, dtype=torch.float64)).item())]

    same(program)
