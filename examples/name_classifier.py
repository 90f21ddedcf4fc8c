"""Names of different lengths, packed, through a bidirectional GRU that guesses the language they come from."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.optim.lr_scheduler import StepLR
from torch.profiler import profile
from torch.utils.data import DataLoader, Dataset

LETTERS, LANGUAGES = 27, 4
Name = tuple[torch.Tensor, int]


class Names(Dataset):
    """Made-up names: each language prefers letters of its own."""

    def __init__(self, count: int) -> None:
        taste = torch.softmax(2.0 * torch.randn(LANGUAGES, LETTERS - 1), dim=1)
        self.languages = torch.randint(0, LANGUAGES, (count,)).tolist()
        lengths = torch.randint(3, 11, (count,)).tolist()
        # Letter 0 is the padding.
        self.names = [torch.multinomial(taste[language], length, replacement=True) + 1
                      for language, length in zip(self.languages, lengths)]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Name:
        return self.names[index], self.languages[index]


def collate(names: list[Name]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pad the names of a batch to the longest."""
    letters = pad_sequence([name for name, _ in names], batch_first=True)
    lengths = torch.tensor([len(name) for name, _ in names])
    return letters, lengths, torch.tensor([language for _, language in names])


class Classifier(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(4 * width, LANGUAGES)

    def forward(self, letters: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.embedding(letters), lengths, batch_first=True, enforce_sorted=False)
        output, hidden = self.gru(packed)
        padded, lengths = pad_packed_sequence(output, batch_first=True)
        mean = padded.sum(1) / lengths.unsqueeze(1)
        return self.head(torch.cat([hidden[0], hidden[1], mean], dim=1))


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    loader = DataLoader(Names(64), batch_size=16, shuffle=True, collate_fn=collate)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = StepLR(optimizer, step_size=5, gamma=0.8)
    losses: list[float] = []
    while len(losses) < steps:
        for letters, lengths, languages in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(letters, lengths), languages)
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
            if on_step:
                on_step(len(losses) - 1, losses[-1])
            if len(losses) == steps:
                break
        scheduler.step()
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
