"""A training program with one fault, which its argument names; `healthy` has none.

Each fault is large by construction: what waits waits for three times as long as the rest of the step took, whatever
the machine does meanwhile.
"""

import gc
import queue
import sys
import threading
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH, WIDTH = 12, 64, 16


class Batches(Dataset):
    def __init__(self, slow):
        self.slow, self.given = slow, None
        self.inputs, self.labels = torch.randn(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if self.slow and self.given is not None:
            time.sleep(3 * (time.monotonic() - self.given))
        self.given = time.monotonic()
        return self.inputs, self.labels


class Model(nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        deep = 60 if fault == "unfused-optimizer" else 2
        self.layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(deep)))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        if self.fault == "tiny-ops":
            x = row_by_row(x)
        x = self.layers(x)
        if self.fault == "memory-peak":
            x = x + distances(torch.cat([x] * 50)).mean().item()
        return self.head(x)


def row_by_row(x):
    for _ in range(5):
        rows = [x[number] * 1.5 + 0.5 for number in range(BATCH)]
    return torch.stack(rows)


@torch.no_grad()
def distances(x):
    return x @ x.t()


def features(began):
    """Counts for three times as long as the step took until here."""
    end, found = time.monotonic() + max(0.01, 3 * (time.monotonic() - began)), 0
    while time.monotonic() < end:
        for number in range(2000):
            found += number * number % 7
    return found


def build_table():
    """Half a second of work, however fast the machine is. It calls little: each call is an event of the recording."""
    table, end = {}, time.monotonic() + 0.5
    while time.monotonic() < end:
        for number in range(2000):
            table[number] = number * number % 7
    return table


def answer(questions, answers):
    while (began := questions.get()) is not None:
        time.sleep(3 * (time.monotonic() - began))
        answers.put(began)


def train(fault):
    heap = [[number] for number in range(300_000)] if fault == "garbage-collector" else []
    questions, answers = queue.Queue(), queue.Queue()
    threading.Thread(target=answer, args=(questions, answers), daemon=True).start()
    model = Model(fault)
    optimizer = optim.Adam(model.parameters(), fused=fault != "unfused-optimizer")
    kept, table = [], None
    for step, (x, y) in enumerate(DataLoader(Batches(fault == "input-bound"), batch_size=None)):
        began = time.monotonic()
        if fault == "changing-shapes":
            x, y = x[: BATCH - step], y[: BATCH - step]
        if fault == "slow-first-steps" and table is None:
            table = build_table()
        if fault == "garbage-collector":
            gc.collect()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if fault == "memory-growth":
            kept.append(torch.ones(1 << 19) + step)
        if fault == "waiting":
            questions.put(began)
            answers.get()
        if fault == "python-bound":
            features(began)
        optimizer.step()
    questions.put(None)
    return heap, kept, table


if __name__ == "__main__":
    train(sys.argv[1])
