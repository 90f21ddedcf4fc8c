"""Training on the NPU gives the CPU's results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn

F = nn.functional


class Block(nn.Module):
    """Attention and a small network, as in GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.mixed(self.first(x)).split(width, 2))
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class Gpt(nn.Module):
    """Tokens to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList([Block(16, 2), Block(16, 2)])
        self.head = nn.Linear(16, 20, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(0, 1)


class Recurrent(nn.Module):
    """The last state of an LSTM, classified."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = nn.LSTM(8, 12, num_layers=2, batch_first=True), nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(x)[0][:, -1])


def perceptron() -> tuple[Any, Any, Any]:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)), torch.randn(5, 8), torch.randint(4, (5,))


def convolutional() -> tuple[Any, Any, Any]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2, bias=False), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    return model, torch.randn(4, 3, 16, 16), torch.randint(4, (4,))


def gpt() -> tuple[Any, Any, Any]:
    tokens = torch.randint(20, (2, 8))
    return Gpt(), tokens, tokens.flatten()


def recurrent() -> tuple[Any, Any, Any]:
    return Recurrent(), torch.randn(3, 5, 8), torch.randint(4, (3,))


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "SGD nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, foreach=True),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
}


def losses(model: Any, x: Any, y: Any, optimizer: Any) -> list[float]:
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


def same(make: Callable[[], tuple[Any, Any, Any]], optimizer: Callable[[Any], Any]) -> None:
    torch.npu.conv.allow_hf32 = False
    model, x, y = make()
    there = copy.deepcopy(model).npu()
    want = losses(model, x, y, optimizer(list(model.parameters())))
    got = losses(there, x.npu(), y.npu(), optimizer(list(there.parameters())))
    assert got == pytest.approx(want, rel=2e-4)
    for (name, a), b in zip(model.state_dict().items(), there.state_dict().values(), strict=True):
        assert b.device.type == "npu"
        assert torch.allclose(b.cpu(), a, rtol=2e-3, atol=2e-4), name


@pytest.mark.parametrize("make", [perceptron, convolutional, gpt, recurrent])
def test_models(make: Any) -> None:
    # Adam divides by the size of gradients, some of which are nothing but rounding here.
    same(make, OPTIMIZERS["SGD nesterov"])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str) -> None:
    same(perceptron, OPTIMIZERS[optimizer])


def test_mixed_precision_with_a_scaler() -> None:
    model = nn.Linear(8, 4).npu()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.npu.amp.GradScaler()
    x, y = torch.randn(16, 8, device="npu"), torch.randint(4, (16,), device="npu")
    first = last = 0.0
    for step in range(10):
        optimizer.zero_grad()
        with torch.npu.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        last = loss.item()
        first = first if step else last
    assert last < first
