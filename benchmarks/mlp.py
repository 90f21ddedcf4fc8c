"""One training step of an MLP: 784-256-256-10, batch 64, SGD with momentum."""

from __future__ import annotations

from typing import Any

import torch as theirs

import mindtorch_v2 as ours

from .timing import Work, best_of, line


def step_of(torch: Any, features: int = 784, hidden: int = 256, batch: int = 64) -> Work:
    """A closure that runs one step."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                          nn.Linear(hidden, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    x = torch.randn(batch, features)
    y = torch.randint(0, 10, (batch,))

    def step() -> None:
        optimizer.zero_grad()
        loss_function(model(x), y).backward()
        optimizer.step()

    return step


def run() -> None:
    """Print the step's cost."""
    theirs.set_num_threads(theirs.get_num_threads())
    print("\ntraining step: ours, PyTorch, ratio")
    mine, other = best_of([step_of(ours), step_of(theirs)], seconds=0.2)
    print(line("MLP 784-256-256-10, batch 64", mine, other, 1.5, "ms"))
