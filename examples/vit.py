"""A vision transformer: patches from a convolution, a class token, nn.MultiheadAttention, mixup, cosine annealing."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.profiler import profile

CLASSES = 10


class Block(nn.Module):
    """Attention and a two-layer network, each after a layer norm and around a shortcut."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout),
                                 nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        x = x + self.dropout(y)
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, image: int = 32, patch: int = 8, width: int = 64, depth: int = 3, heads: int = 4,
                 dropout: float = 0.1) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        count = (image // patch) ** 2
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, count + 1, width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, CLASSES)
        nn.init.normal_(self.positions, std=0.02)
        nn.init.trunc_normal_(self.patches.weight, std=0.05)
        nn.init.zeros_(self.patches.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        x = self.blocks(self.dropout(x + self.positions))
        return self.head(self.norm(x)[:, 0])


def mixup(images: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Blend each image, and its target, with another one of the batch."""
    share = 0.5 + 0.5 * torch.rand(())
    order = torch.randperm(len(images))
    return torch.lerp(images[order], images, share), torch.lerp(targets[order], targets, share)


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    patterns = torch.randn(CLASSES, 3, 32, 32)
    model = VisionTransformer()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    scheduler = CosineAnnealingLR(optimizer, T_max=100)
    losses = []
    for step in range(steps):
        labels = torch.randint(0, CLASSES, (16,))
        images = patterns[labels] + 0.5 * torch.randn(16, 3, 32, 32)
        images, targets = mixup(images, F.one_hot(labels, CLASSES).float())
        loss = criterion(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
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
