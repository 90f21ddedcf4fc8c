"""Cases of libraries that run on `torch`, whichever it is: what a case is, and the figures it returns.

A case is a function that returns figures: named lists of numbers. The same program runs on PyTorch and on this runtime;
random numbers agree, so the figures can be compared digit by digit.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Figures = dict[str, list[float]]


@dataclass
class Case:
    """One program: which library it uses, its name, what it runs, and whether the quick subset has it."""

    library: str
    name: str
    run: Callable[[], Figures]
    quick: bool


CASES: list[Case] = []


Program = Callable[[], Figures]


def case(library: str, name: str, *, quick: bool = False) -> Callable[[Program], Program]:
    """Register a case."""

    def register(function: Program) -> Program:
        CASES.append(Case(library, name, function, quick))
        return function

    return register


def summary(tensor: Any) -> list[float]:
    """A tensor in a few numbers: sum, sum of absolute values, largest and a weighted sum, per element."""
    flat = tensor.detach().to(torch.float64).reshape(-1)
    weights = torch.cos(torch.arange(flat.numel(), dtype=torch.float64))
    scale = math.sqrt(max(flat.numel(), 1))
    return [float(flat.sum()) / scale, float(flat.abs().sum()) / scale, float(flat.max()),
            float((flat * weights).sum()) / scale]


def learn_exactly(model: Any, run: Callable[[Any], Any]) -> Figures:
    """`learn` in float64 with SGD, and the output in float32 before any step.

    Batch normalisation over two small pictures amplifies rounding from step to step, so that figures of float32 differ
    between any two ways to add numbers up.
    """
    model.eval()
    with torch.no_grad():
        single, _ = run(model)
    return {"single": summary(single), **learn(model.train().double(), run, lr=1e-2, optimizer="SGD")}


def learn(model: Any, run: Callable[[Any], Any], steps: int = 2, lr: float = 1e-3, optimizer: str = "AdamW") -> Figures:
    """Two optimizer steps, a state dict to a file and back: `run(model)` returns the output tensor and the loss.

    Convolutions before batch norm have gradients that are zero but for rounding, which AdamW makes as large as any
    other: such models are compared with SGD.
    """
    figures: Figures = {"parameters": [float(sum(p.numel() for p in model.parameters()))]}
    stepping = getattr(torch.optim, optimizer)(model.parameters(), lr=lr)
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        stepping.zero_grad()
        output, loss = run(model)
        if step == 0:
            figures["output"] = summary(output)
        loss.backward()
        if step == 0:
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            figures["gradient"] = [float(torch.stack([g.to(torch.float64).norm() for g in grads]).norm()),
                                   float(len(grads))]
        stepping.step()
        losses.append(float(loss.detach()))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file, weights_only=True))
    model.eval()
    torch.manual_seed(7)
    with torch.no_grad():
        output, loss = run(model)
    return {**figures, "losses": [*losses, float(loss)], "after": summary(output)}
