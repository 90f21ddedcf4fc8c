"""Trains a small classifier. It knows nothing of profilers: `mtprof run examples/demo.py` profiles it as it is."""

from __future__ import annotations

import math
import random

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.utils.data import DataLoader, Dataset


class Spirals(Dataset):
    """Points on two interleaved spirals, and which of the two each belongs to."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        drawn = random.Random(index)
        radius, label = math.sqrt(drawn.random()) * 2 * math.pi, index % 2
        angle = radius + label * math.pi
        point = torch.tensor([radius * math.cos(angle), radius * math.sin(angle)])
        return point + 0.1 * torch.tensor([drawn.gauss(0, 1), drawn.gauss(0, 1)]), label


def main() -> None:
    torch.manual_seed(0)
    batches = DataLoader(Spirals(3200), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    loss_function = nn.CrossEntropyLoss()
    print(f"-- training {sum(p.numel() for p in model.parameters())} parameters on {len(batches.dataset)} points")
    for epoch in range(4):
        for points, labels in batches:
            output = model(points)
            loss = loss_function(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = (output.argmax(1) == labels).float().mean().item()
        print(f"epoch {epoch}  loss {loss.item():.4f}  accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
