"""A training program with one fault, which its first argument names; `healthy` has none. Run by the tests of advice."""

import gc
import queue
import sys
import threading
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

FAULT = sys.argv[1]
STEPS, BATCH, WIDTH = 12, 128, 512


class Batches(Dataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if FAULT == "input-bound":
            time.sleep(0.03)
        return self.inputs, self.labels

    inputs = torch.randn(BATCH, WIDTH)
    labels = torch.randint(0, 10, (BATCH,))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4)))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        if FAULT == "tiny-ops":
            x = row_by_row(x)
        x = self.layers(x)
        if FAULT == "memory-peak":
            x = x + distances(x).mean()
        return self.head(x)


def row_by_row(x):
    for _ in range(5):
        rows = [x[number] * 1.5 + 0.5 for number in range(BATCH)]
    return torch.stack(rows)


def distances(x):
    return (x[:, None] - x[None]).pow(2).sum(-1)


def build_table():
    """Half a second of work, however fast the machine is."""
    table = []
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        table.append(len(table) * len(table) % 7)
    return table


def answer():
    while True:
        number = questions.get()
        time.sleep(0.05)
        answers.put(number)


heap = []
if FAULT == "garbage-collector":
    heap = [[number] for number in range(400_000)]
questions, answers = queue.Queue(), queue.Queue()
if FAULT == "waiting":
    threading.Thread(target=answer, daemon=True).start()
kept = []
model = Model()
optimizer = optim.Adam(model.parameters(), fused=FAULT != "unfused-optimizer")
table = None


def train():
    global table
    for step, (x, y) in enumerate(DataLoader(Batches(), batch_size=None)):
        if FAULT == "changing-shapes":
            x, y = x[: BATCH - step], y[: BATCH - step]
        if FAULT == "slow-first-steps" and table is None:
            table = build_table()
        if FAULT == "waiting":
            questions.put(step)
            answers.get()
        if FAULT == "garbage-collector":
            gc.collect()
        optimizer.zero_grad()
        output = model(x)
        loss = nn.functional.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        if FAULT == "memory-growth":
            kept.append(model.layers(model.layers(x)))


train()
