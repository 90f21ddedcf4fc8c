"""The command as a process, and a program for it to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mtprof

PROGRAM = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(48, 16), torch.randint(0, 4, (48,)))
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("torch is", torch.__name__, "arguments", sys.argv[1:])
"""

SOURCE = Path(mtprof.__file__).parent.parent
HERE = Path(__file__).parent


class Command:
    """Runs `mtprof` in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: object, stdin: str | None = None, env: dict[str, str] | None = None,
                 timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.line(*arguments), cwd=self.folder, input=stdin, capture_output=True, text=True,
                              errors="replace", timeout=timeout, env=self.environment(env))

    def line(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "mtprof", *map(str, arguments)]

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "MTPROF_DEBUG")}
        # One thread for products: times on a loaded machine then say something.
        one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return {**kept, **one, "PYTHONPATH": str(SOURCE), **(more or {})}
