"""Cost of a small op, with and without recording a graph. Both libraries run on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch as theirs

import mindtorch_v2 as ours

from .timing import best_of, line

CASES: dict[str, Callable[[Any, Any, Any], object]] = {
    "add": lambda t, x, y: x + y,
    "mul": lambda t, x, y: x * y,
    "mul by a number": lambda t, x, y: x * 2.0,
    "matmul": lambda t, x, y: x @ y,
    "relu": lambda t, x, y: t.relu(x),
    "sum": lambda t, x, y: x.sum(),
    "view": lambda t, x, y: x.view(16),
    "transpose": lambda t, x, y: x.t(),
    "index [0]": lambda t, x, y: x[0],
    "index [1:3]": lambda t, x, y: x[1:3],
}


def run() -> None:
    """Print one row per op."""
    theirs.set_num_threads(1)
    print("\nsmall ops, 4x4 float32: ours, PyTorch, ratio")
    for grad in (False, True):
        for name, call in CASES.items():
            works = []
            for torch in (ours, theirs):
                x = torch.ones(4, 4, requires_grad=grad)
                y = torch.ones(4, 4)
                works.append(lambda call=call, torch=torch, x=x, y=y: call(torch, x, y))
            mine, other = best_of(works)
            print(line(name + (" (grad)" if grad else ""), mine, other, 1.0))
