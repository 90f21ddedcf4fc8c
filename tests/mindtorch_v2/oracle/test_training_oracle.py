"""Whole training runs: from the same seed, the same losses as PyTorch, digit by digit."""

from __future__ import annotations

import pytest
from harness import ours, theirs

OPTIMIZERS = {
    "SGD": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD nesterov": lambda t, p: t.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam": lambda t, p: t.optim.Adam(p, lr=1e-2),
    "AdamW": lambda t, p: t.optim.AdamW(p, lr=1e-2),
}


def losses(torch, make_optimizer, steps=20):
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))
    optimizer = make_optimizer(torch, model.parameters())
    x, y = torch.randn(32, 20), torch.randint(0, 5, (32,))
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_mlp(name):
    got, want = losses(ours, OPTIMIZERS[name]), losses(theirs, OPTIMIZERS[name])
    assert got == pytest.approx(want, abs=1e-6)
    assert got[-1] < got[0]


def test_mlp_with_dropout_norm_and_embedding():
    def run(torch):
        torch.manual_seed(1)
        nn = torch.nn
        model = nn.Sequential(nn.Embedding(50, 16), nn.LayerNorm(16), nn.Dropout(0.2), nn.Linear(16, 32), nn.GELU(),
                              nn.Linear(32, 50))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        tokens = torch.randint(0, 50, (8, 12))
        found = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            found.append(loss.item())
        return found

    assert run(ours) == pytest.approx(run(theirs), abs=1e-5)
