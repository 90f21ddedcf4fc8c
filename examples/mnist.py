"""Digits with a convolutional network: DataLoader, training and test loops, Adadelta, keeping the best model."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.profiler import profile
from torch.utils.data import DataLoader, TensorDataset, random_split

DIGITS = 10


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout2d(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(2304, 32)
        self.fc2 = nn.Linear(32, DIGITS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = torch.flatten(x, 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def make_digits(count: int) -> TensorDataset:
    """Noisy 28x28 images of ten coarse patterns, normalised."""
    patterns = F.interpolate(torch.randn(DIGITS, 1, 7, 7), size=(28, 28), mode="bilinear", align_corners=False)
    labels = torch.randint(0, DIGITS, (count,))
    images = patterns[labels] + 0.3 * torch.randn(count, 1, 28, 28)
    return TensorDataset((images - images.mean()) / images.std(), labels)


@torch.no_grad()
def test(model: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """The mean loss and the share of right answers."""
    model.eval()
    loss, correct, count = 0.0, 0, 0
    for images, labels in loader:
        output = model(images)
        loss += F.nll_loss(output, labels, reduction="sum").item()
        guess = output.argmax(dim=1, keepdim=True)
        correct += int(guess.eq(labels.view_as(guess)).sum().item())
        count += len(labels)
    return loss / count, correct / count


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    train_set, test_set = random_split(make_digits(96), [64, 32])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=32)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses: list[float] = []
    best, best_loss = model.state_dict(), float("inf")
    while len(losses) < steps:
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            output = model(images)
            loss = F.nll_loss(output, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if on_step:
                on_step(len(losses) - 1, losses[-1])
            if len(losses) == steps:
                break
        scheduler.step()
        test_loss, accuracy = test(model, test_loader)
        if on_step:
            print(f"test loss {test_loss:.4f}  accuracy {accuracy:.2f}")
        if test_loss < best_loss:
            best = {name: value.clone() for name, value in model.state_dict().items()}
            best_loss = test_loss
    model.load_state_dict(best)
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
