"""The command, as a process and within this one, and a program for it to run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mtprof
from mtprof.cli.main import main

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
print("torch is", torch.__package__, "arguments", sys.argv[1:])
"""

SOURCE = Path(mtprof.__file__).parent.parent
HERE = Path(__file__).parent
Done = subprocess.CompletedProcess


class Process:
    """Runs `mtprof` as a process, in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: object, stdin: str | None = None, env: dict[str, str] | None = None,
                 timeout: float = 300) -> Done[str]:
        return subprocess.run(self.line(*arguments), cwd=self.folder, input=stdin, capture_output=True, text=True,
                              errors="replace", timeout=timeout, env=self.environment(env))

    def line(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "mtprof", *map(str, arguments)]

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "MTPROF_DEBUG")}
        one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return {**kept, **one, "PYTHONPATH": str(SOURCE), **(more or {})}


class Inside(Process):
    """The same within this process: nothing is imported again. A program that `run` is given has its own process."""

    def __call__(self, *arguments: object, stdin: str | None = None, env: dict[str, str] | None = None,
                 timeout: float = 300) -> Done[str]:
        before, environment = os.getcwd(), dict(os.environ)
        os.environ.clear()
        os.environ.update(self.environment(env))
        os.chdir(self.folder)
        try:
            with streams(stdin or "") as written, warnings.catch_warnings():
                usual_warnings()
                code = call([*map(str, arguments)])
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environment)
        return Done([*map(str, arguments)], code, *written)


def call(arguments: list[str]) -> int:
    """The exit code of a command, as Python makes it of what it returned or raised."""
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)


def usual_warnings() -> None:
    """The filters with which Python starts; pytest has others."""
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)


@contextmanager
def streams(stdin: str) -> Iterator[list[str]]:
    """Files in place of stdin, stdout and stderr, for this process and those that it starts; what was written, in the
    end.
    """
    written: list[str] = []
    python = sys.stdin, sys.stdout, sys.stderr
    for stream in python[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        given.write(stdin.encode())
        given.seek(0)
        for number, file in enumerate((given, out, error)):
            os.dup2(file.fileno(), number)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8",
                                                   line_buffering=True) for number in (1, 2))
        try:
            yield written
        finally:
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                stream.close()
            sys.stdin, sys.stdout, sys.stderr = python
            for number, original in enumerate(kept):
                os.dup2(original, number)
                os.close(original)
            for file in (out, error):
                file.seek(0)
                written.append(file.read().decode(errors="replace"))
