"""A word-level language model: a two-layer LSTM whose state is carried from chunk to chunk, with clipped gradients."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.profiler import profile

WORDS, CHUNK, BATCH = 100, 12, 8
State = tuple[torch.Tensor, torch.Tensor]


class WordModel(nn.Module):
    def __init__(self, width: int = 48, layers: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.layers, self.width = layers, width
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.Embedding(WORDS, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=dropout)
        self.decoder = nn.Linear(width, WORDS)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, words: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        embedded = self.dropout(self.encoder(words))
        output, state = self.rnn(embedded, state)
        decoded = self.decoder(self.dropout(output))
        return torch.log_softmax(decoded.view(-1, WORDS), dim=1), state

    def initial_state(self, batch: int) -> State:
        weight = next(self.parameters())
        shape = (self.layers, batch, self.width)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def make_corpus(count: int) -> torch.Tensor:
    """Words that mostly follow from the one before by a fixed rule."""
    steps = torch.where(torch.rand(count) < 0.8, torch.full((count,), 7), torch.randint(0, WORDS, (count,)))
    return steps.cumsum(0) % WORDS


def batchify(corpus: torch.Tensor, batch: int) -> torch.Tensor:
    """Cut the corpus into `batch` columns that are read side by side."""
    rows = corpus.size(0) // batch
    return corpus.narrow(0, 0, rows * batch).view(batch, -1).t().contiguous()


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    columns = batchify(make_corpus(6000), BATCH)
    model = WordModel()
    criterion = nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=20.0)
    losses: list[float] = []
    model.train()
    state = model.initial_state(BATCH)
    for step in range(steps):
        place = step * CHUNK % (len(columns) - CHUNK - 1)
        words, targets = columns[place:place + CHUNK], columns[place + 1:place + 1 + CHUNK].view(-1)
        # The state's values go on, its history ends here; otherwise backward would reach back to the first word.
        state = (state[0].detach(), state[1].detach())
        model.zero_grad()
        output, state = model(words, state)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
    if on_step and losses:
        print(f"perplexity {math.exp(losses[-1]):.1f}")
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
