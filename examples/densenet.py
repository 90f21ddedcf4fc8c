"""A small DenseNet: every layer sees the outputs of all before it; pooling between blocks, Adam."""

from __future__ import annotations

import argparse
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import MultiStepLR
from torch.profiler import profile

CLASSES = 10


class DenseLayer(nn.Module):
    def __init__(self, channels_in: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, 4 * growth, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, kernel_size=3, padding=1, bias=False)
        self.dropout = dropout

    def forward(self, features: list[torch.Tensor]) -> torch.Tensor:
        bottleneck = self.conv1(F.relu(self.norm1(torch.cat(features, 1))))
        new = self.conv2(F.relu(self.norm2(bottleneck)))
        return F.dropout(new, p=self.dropout, training=self.training)


class DenseBlock(nn.ModuleDict):
    def __init__(self, layers: int, channels_in: int, growth: int, dropout: float) -> None:
        super().__init__()
        for number in range(layers):
            self.add_module(f"layer{number + 1}", DenseLayer(channels_in + number * growth, growth, dropout))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Sequential):
    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__(nn.BatchNorm2d(channels_in), nn.ReLU(inplace=True),
                         nn.Conv2d(channels_in, channels, kernel_size=1, bias=False), nn.AvgPool2d(2, stride=2))


class DenseNet(nn.Module):
    def __init__(self, growth: int = 8, blocks: tuple[int, ...] = (2, 3, 2), dropout: float = 0.1) -> None:
        super().__init__()
        channels = 2 * growth
        parts: OrderedDict[str, nn.Module] = OrderedDict([
            ("conv0", nn.Conv2d(3, channels, kernel_size=3, stride=2, padding=1, bias=False)),
            ("norm0", nn.BatchNorm2d(channels)),
            ("relu0", nn.ReLU(inplace=True)),
        ])
        for number, layers in enumerate(blocks):
            parts[f"block{number + 1}"] = DenseBlock(layers, channels, growth, dropout)
            channels += layers * growth
            if number + 1 < len(blocks):
                parts[f"transition{number + 1}"] = Transition(channels, channels // 2)
                channels //= 2
        parts["norm_last"] = nn.BatchNorm2d(channels)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(channels, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.features(x), inplace=True)
        out = torch.flatten(F.adaptive_avg_pool2d(out, (1, 1)), 1)
        return self.classifier(out)


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    patterns = torch.randn(CLASSES, 3, 32, 32)
    model = DenseNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    scheduler = MultiStepLR(optimizer, milestones=[20, 40], gamma=0.1)
    losses = []
    for step in range(steps):
        labels = torch.randint(0, CLASSES, (16,))
        images = patterns[labels] + 0.5 * torch.randn(16, 3, 32, 32)
        images = (images - images.mean((0, 2, 3), keepdim=True)) / images.std((0, 2, 3), keepdim=True)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
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
