"""A character-level GPT: causal self-attention, tied embeddings, AdamW with two groups, warm-up and cosine."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.profiler import profile


@dataclass
class Config:
    characters: int = 27
    context: int = 32
    layers: int = 2
    heads: int = 4
    width: int = 64
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.project = nn.Linear(config.width, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.size()
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        return F.dropout(self.project(y), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.mlp = nn.Sequential(nn.Linear(config.width, 4 * config.width), nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * config.width, config.width), nn.Dropout(config.dropout))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.context = config.context
        self.tokens = nn.Embedding(config.characters, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.characters, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self.initialise)

    @staticmethod
    def initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, text: torch.Tensor,
                targets: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor | None]:
        x = self.dropout(self.tokens(text) + self.positions(torch.arange(text.size(1))))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    @torch.no_grad()
    def generate(self, text: torch.Tensor, count: int, top_k: int = 5) -> torch.Tensor:
        """Append `count` characters, each drawn from the `top_k` likeliest."""
        self.eval()
        for _ in range(count):
            logits = self(text[:, -self.context:])[0][:, -1]
            logits[logits < torch.topk(logits, top_k).values[:, [-1]]] = -float("inf")
            text = torch.cat((text, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return text


def make_optimizer(model: nn.Module) -> torch.optim.AdamW:
    """Weight decay for matrices, none for biases and norms."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))


def warm_up_then_cosine(step: int, warm_up: int = 5, total: int = 100) -> float:
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, (step - warm_up) / (total - warm_up))))


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    config = Config()
    # A text whose every character is one, two or three places after the one before.
    text = torch.randint(1, 4, (5000,)).cumsum(0) % config.characters
    model = GPT(config)
    optimizer = make_optimizer(model)
    scheduler = LambdaLR(optimizer, warm_up_then_cosine)
    losses = []
    for step in range(steps):
        starts = torch.randint(len(text) - config.context - 1, (8,))
        x = torch.stack([text[i:i + config.context] for i in starts])
        y = torch.stack([text[i + 1:i + 1 + config.context] for i in starts])
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
    if on_step:
        sample = model.generate(torch.zeros(1, 1, dtype=torch.long), 20)[0].tolist()
        print("sample:", "".join(chr(ord("a") + i) if i < 26 else " " for i in sample))
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
