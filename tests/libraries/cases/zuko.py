"""Zuko: normalizing flows."""

from __future__ import annotations

import torch
import zuko

from ..harness import Figures, case, summary


@case("zuko", "spline_flow", quick=True)
def spline_flow() -> Figures:
    torch.manual_seed(0)
    flow = zuko.flows.NSF(3, context=2, transforms=2, hidden_features=[16, 16])
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    x, context = torch.randn(16, 3), torch.randn(16, 2)
    losses = []
    for _ in range(3):
        loss = -flow(context).log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return {"losses": losses, "sample": summary(flow(context[0]).sample((4,)))}
