"""DCGAN: a generator of transposed convolutions against a discriminator of strided ones, each with its own Adam."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.profiler import profile

NOISE, FEATURES, BATCH = 16, 8, 16


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NOISE, FEATURES * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(FEATURES * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(FEATURES * 4, FEATURES * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(FEATURES * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(FEATURES * 2, FEATURES, 4, 2, 1, bias=False),
            nn.BatchNorm2d(FEATURES),
            nn.ReLU(True),
            nn.ConvTranspose2d(FEATURES, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, FEATURES, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(FEATURES, FEATURES * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(FEATURES * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(FEATURES * 2, FEATURES * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(FEATURES * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(FEATURES * 4, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.main(images).view(-1, 1).squeeze(1)


def initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def make_images(count: int) -> torch.Tensor:
    """Stripes of random direction and phase, in -1..1."""
    axis = torch.linspace(-3, 3, 32)
    across, down = torch.randn(2, count, 1, 1, 1).unbind(0)
    return torch.sin(across * axis + down * axis[:, None] + 6 * torch.rand(count, 1, 1, 1))


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    """The losses are those of both networks added up."""
    torch.manual_seed(seed)
    generator, discriminator = Generator().apply(initialise), Discriminator().apply(initialise)
    criterion = nn.BCELoss()
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    losses = []
    for step in range(steps):
        # The discriminator learns to say 1 to real images and 0 to those of the generator,
        discriminator.zero_grad()
        label = torch.full((BATCH,), 1.0)
        loss_real = criterion(discriminator(make_images(BATCH)), label)
        loss_real.backward()
        fake = generator(torch.randn(BATCH, NOISE, 1, 1))
        label.fill_(0.0)
        loss_fake = criterion(discriminator(fake.detach()), label)
        loss_fake.backward()
        optimizer_d.step()
        # then the generator learns to make it say 1.
        generator.zero_grad()
        label.fill_(1.0)
        loss_g = criterion(discriminator(fake), label)
        loss_g.backward()
        optimizer_g.step()
        losses.append((loss_real + loss_fake).item() + loss_g.item())
        if on_step:
            on_step(step, losses[-1])
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
