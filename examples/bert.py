"""A small BERT: nn.TransformerEncoder trained to fill in masked tokens of padded sentences."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LinearLR
from torch.profiler import profile

PADDING, MASK, FIRST_WORD, WORDS = 0, 1, 2, 64
LENGTH, WIDTH = 24, 64


class MaskedLanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH, padding_idx=PADDING)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.1, activation="gelu",
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))
        self.register_buffer("position_ids", torch.arange(LENGTH).unsqueeze(0))

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(self.position_ids) + self.segments(segments)
        x = self.encoder(self.dropout(self.norm(x)), src_key_padding_mask=tokens.eq(PADDING))
        return self.head(x)


def make_batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two sentences of words that count upwards, padded to the common length, and where the second one begins."""
    start = torch.randint(0, WORDS - FIRST_WORD, (size, 1))
    words = (start + torch.arange(LENGTH)) % (WORDS - FIRST_WORD) + FIRST_WORD
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (size, 1))
    words = words.masked_fill(torch.arange(LENGTH) >= lengths, PADDING)
    segments = (torch.arange(LENGTH) >= lengths // 2).long()
    return words, segments


def mask_words(words: torch.Tensor, share: float = 0.15) -> tuple[torch.Tensor, torch.Tensor]:
    """What the model sees and what it shall say: of the chosen words 80% are masked, 10% replaced, 10% kept."""
    chosen = (torch.rand(words.shape) < share) & (words != PADDING)
    labels = torch.where(chosen, words, torch.full_like(words, -100))
    dice = torch.rand(words.shape)
    seen = words.clone()
    seen[chosen & (dice < 0.8)] = MASK
    swap = chosen & (dice >= 0.8) & (dice < 0.9)
    seen[swap] = torch.randint(FIRST_WORD, WORDS, words.shape)[swap]
    return seen, labels


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    model = MaskedLanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = LinearLR(optimizer, start_factor=0.1, total_iters=5)
    losses = []
    for step in range(steps):
        words, segments = make_batch(16)
        seen, labels = mask_words(words)
        logits = model(seen, segments)
        loss = F.cross_entropy(logits.view(-1, WORDS), labels.view(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
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
