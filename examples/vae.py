"""A variational autoencoder: encodes images as Gaussians, draws from them, and learns to draw the images again."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import profile

SIDE, HIDDEN, CODE = 16, 64, 8


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(SIDE * SIDE, HIDDEN)
        self.fc_mean = nn.Linear(HIDDEN, CODE)
        self.fc_log_variance = nn.Linear(HIDDEN, CODE)
        self.fc2 = nn.Linear(CODE, HIDDEN)
        self.fc3 = nn.Linear(HIDDEN, SIDE * SIDE)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = F.relu(self.fc1(x))
        return self.fc_mean(hidden), self.fc_log_variance(hidden)

    def draw(self, mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
        """A sample that gradients can pass: the noise does not depend on the parameters."""
        deviation = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(deviation) * deviation

    def decode(self, code: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.fc3(F.relu(self.fc2(code))))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, log_variance = self.encode(x.view(-1, SIDE * SIDE))
        return self.decode(self.draw(mean, log_variance)), mean, log_variance


def loss_function(drawn: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """How badly the image was drawn, and how far its Gaussian is from the standard one."""
    reconstruction = F.binary_cross_entropy(drawn, x.view(-1, SIDE * SIDE), reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return (reconstruction + divergence) / x.size(0)


def blobs(count: int) -> torch.Tensor:
    """Images with one bright spot each, in 0..1."""
    axis = torch.arange(SIDE, dtype=torch.float32)
    centre = SIDE / 4 + SIDE / 2 * torch.rand(count, 2, 1)
    radius = 1.5 + torch.rand(count, 1, 1)
    across = (axis - centre) ** 2
    distance = across[:, 0, :, None] + across[:, 1, None, :]
    return torch.exp(-distance / (2 * radius ** 2)).unsqueeze(1)


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    model.train()
    for step in range(steps):
        images = blobs(32)
        optimizer.zero_grad()
        drawn, mean, log_variance = model(images)
        loss = loss_function(drawn, images, mean, log_variance)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
    with torch.no_grad():
        model.eval()
        sample = model.decode(torch.randn(1, CODE)).view(SIDE, SIDE)
    if on_step:
        print("\n".join("".join(" .:-=+*#%@"[int(9 * value)] for value in row) for row in sample.tolist()))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", metavar="PATH", help="write a chrome trace there and print a table")
    args = parser.parse_args()
    with profile(record_shapes=True) if args.profile else nullcontext() as prof:
        train(args.steps, args.seed, on_step=lambda step, loss: print(f"step {step:3d}  loss {loss:.4f}"))
    if prof is not None:
        prof.export_chrome_trace(args.profile)
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))


if __name__ == "__main__":
    main()
