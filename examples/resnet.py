"""A narrow ResNet-18 on 32x32 images: basic blocks, batch norm, SGD with momentum, one-cycle learning rate."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR
from torch.profiler import profile

CLASSES = 10


class BasicBlock(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False),
                                            nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, width: int = 8, blocks: tuple[int, ...] = (2, 2, 2, 2)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        stages, channels_in = [], width
        for number, count in enumerate(blocks):
            channels = width * 2 ** number
            strides = [1 if number == 0 else 2] + [1] * (count - 1)
            stage = []
            for stride in strides:
                stage.append(BasicBlock(channels_in, channels, stride))
                channels_in = channels
            stages.append(nn.Sequential(*stage))
        self.layers = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels_in, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        # Every block begins as the identity, which makes deep stacks train from the first step.
        for module in self.modules():
            if isinstance(module, BasicBlock):
                nn.init.constant_(module.bn2.weight, 0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layers(x))
        return self.fc(torch.flatten(x, 1))


def make_images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy copies of one pattern per class."""
    patterns = torch.randn(CLASSES, 3, 32, 32)
    labels = torch.randint(0, CLASSES, (count,))
    return patterns[labels] + 0.5 * torch.randn(count, 3, 32, 32), labels


def augment(images: torch.Tensor) -> torch.Tensor:
    """Flip half of the images, and move all of them by up to two pixels."""
    flipped = torch.rand(len(images), 1, 1, 1) < 0.5
    images = torch.where(flipped, images.flip(3), images)
    top, left = torch.randint(0, 5, (2,)).tolist()
    return F.pad(images, (2, 2, 2, 2), mode="reflect")[:, :, top:top + 32, left:left + 32]


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    images, labels = make_images(128)
    model = ResNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    scheduler = OneCycleLR(optimizer, max_lr=0.05, total_steps=max(steps, 40))
    losses = []
    for step in range(steps):
        batch = torch.randperm(len(images))[:16]
        output = model(augment(images[batch]))
        loss = criterion(output, labels[batch])
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
