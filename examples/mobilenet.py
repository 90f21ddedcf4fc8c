"""A small MobileNetV3: inverted residuals, depthwise convolutions, squeeze and excitation, RMSprop."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.profiler import profile

CLASSES = 10


class ConvBNActivation(nn.Sequential):
    def __init__(self, channels_in: int, channels: int, kernel: int = 3, stride: int = 1, groups: int = 1,
                 activation: type[nn.Module] = nn.ReLU6) -> None:
        super().__init__(
            nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(channels),
            activation() if activation is nn.Identity else activation(inplace=True),
        )


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), nn.ReLU(),
                                  nn.Conv2d(channels // 4, channels, 1), nn.Hardsigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class InvertedResidual(nn.Module):
    """Widen, filter each channel on its own, weigh the channels, narrow again."""

    def __init__(self, channels_in: int, channels: int, expand: int, stride: int, squeeze: bool,
                 activation: type[nn.Module]) -> None:
        super().__init__()
        self.residual = stride == 1 and channels_in == channels
        hidden = channels_in * expand
        parts: list[nn.Module] = [ConvBNActivation(channels_in, hidden, 1, activation=activation),
                                  ConvBNActivation(hidden, hidden, 3, stride, groups=hidden, activation=activation)]
        if squeeze:
            parts.append(SqueezeExcitation(hidden))
        parts.append(ConvBNActivation(hidden, channels, 1, activation=nn.Identity))
        self.conv = nn.Sequential(*parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNet(nn.Module):
    # channels, expansion, stride, squeeze and excitation, activation
    BLOCKS = ((8, 2, 1, False, nn.ReLU6), (16, 3, 2, False, nn.ReLU6), (16, 3, 1, True, nn.ReLU6),
              (24, 3, 2, True, nn.Hardswish), (24, 3, 1, True, nn.Hardswish))

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvBNActivation(3, 8, stride=2, activation=nn.Hardswish)]
        channels_in = 8
        for channels, expand, stride, squeeze, activation in self.BLOCKS:
            layers.append(InvertedResidual(channels_in, channels, expand, stride, squeeze, activation))
            channels_in = channels
        layers.append(ConvBNActivation(channels_in, 64, 1, activation=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(64, 64), nn.Hardswish(), nn.Dropout(p=0.2), nn.Linear(64, CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean([2, 3]))


@torch.no_grad()
def update_average(average: dict[str, torch.Tensor], model: nn.Module, decay: float = 0.9) -> None:
    """Let the averaged weights follow the trained ones."""
    for name, parameter in model.named_parameters():
        average[name].lerp_(parameter, 1 - decay)


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    patterns = torch.randn(CLASSES, 3, 32, 32)
    model = MobileNet()
    average = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, momentum=0.9, eps=1e-3, weight_decay=1e-5)
    scheduler = ExponentialLR(optimizer, gamma=0.98)
    losses = []
    for step in range(steps):
        labels = torch.randint(0, CLASSES, (16,))
        images = patterns[labels] + 0.5 * torch.randn(16, 3, 32, 32)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        update_average(average, model)
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
