"""Trains a small classifier. It knows nothing of profilers: `mtprof run examples/demo.py` profiles it as it is."""

from __future__ import annotations

import math

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two interleaved spirals, and which of the two each belongs to."""
    radius = torch.rand(count).sqrt() * 2 * math.pi
    label = torch.randint(0, 2, (count,))
    angle = radius + label.float() * math.pi
    points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], 1)
    return points + 0.1 * torch.randn(count, 2), label


def main() -> None:
    torch.manual_seed(0)
    points, labels = spirals(512)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    loss_function = nn.CrossEntropyLoss()
    print(f"-- training {sum(p.numel() for p in model.parameters())} parameters on {len(points)} points")
    for step in range(200):
        output = model(points)
        loss = loss_function(output, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == 199:
            accuracy = (output.argmax(1) == labels).float().mean().item()
            print(f"step {step:3d}  loss {loss.item():.4f}  accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
