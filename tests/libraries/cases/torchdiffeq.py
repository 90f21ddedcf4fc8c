"""torchdiffeq: differential equations whose right-hand side learns."""

from __future__ import annotations

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

from ..harness import Figures, case, summary


class Field(nn.Module):
    """The right-hand side."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y**3)


@case("torchdiffeq", "learn", quick=True)
def learn() -> Figures:
    torch.manual_seed(0)
    field = Field().double()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-2)
    start, times = torch.tensor([[2.0, 0.0]], dtype=torch.float64), torch.linspace(0, 1, 10, dtype=torch.float64)
    losses = []
    for solve in (odeint_adjoint, odeint, odeint_adjoint):
        optimizer.zero_grad()
        loss = solve(field, start, times, method="dopri5").abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return {"losses": losses, "weights": summary(field.net[0].weight),
            "fixed_steps": summary(odeint(field, start, times, method="rk4"))}
