"""`addcmul` and `addcdiv` of operands of different types: the result's type, or the refusal, is PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from both import outcome, same

KINDS = ("bool", "int32", "int64", "float16", "float32")


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("name", ["addcmul", "addcmul_", "addcdiv", "addcdiv_"])
def test_types(name: str, first: str) -> None:
    def program(torch: Any) -> Any:
        made = []
        for kinds in itertools.product(KINDS, KINDS):
            target, *others = (torch.ones(2, dtype=getattr(torch, kind)) for kind in (first, *kinds))
            made.append(outcome(lambda: getattr(target, name)(*others, value=2), 40))  # noqa: B023
        return made

    same(program)
