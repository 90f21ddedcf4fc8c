"""`%%mtprof`: profile a cell of a notebook. `%load_ext mtprof` adds it."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..loading import load
from ..recording import Recording

FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
NAME = "mtprof_recording"  # the variable with the last recording


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"%%mtprof: {message}")


def options(line: str) -> argparse.Namespace:
    """The options after `%%mtprof`, on its line."""
    parser = _Parser(prog="%%mtprof", add_help=False)
    parser.add_argument("-o", "--output", metavar="FILE")  # keep the recording
    parser.add_argument("--light", action="store_true")  # times of ops only
    parser.add_argument("--torch", action="store_true")  # PyTorch's profiler
    return parser.parse_args(shlex.split(line))


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext mtprof`."""
    shell.register_magic_function(lambda line, cell: profile_cell(shell, line, cell), "cell", "mtprof")


def profile_cell(shell: Any, line: str, cell: str) -> Recording | None:
    """Run a cell under a profiler; its recording is the result and is also in `mtprof_recording`."""
    given = options(line)
    runtime = _runtime(given.torch)
    flags = dict.fromkeys(FLAGS, not given.light)
    with runtime.profiler.profile(**flags) as profile:
        outcome = shell.run_cell(cell, store_history=False)
    found = _recording(profile, given.output)
    shell.user_ns[NAME] = found
    # The cell has shown its own error; a result after it would look like success.
    return found if outcome.success else None


def _runtime(torch_wanted: bool) -> Any:
    """The runtime of the notebook: mindtorch_v2, also under PyTorch's name, or PyTorch if `torch` means that."""
    if torch_wanted:
        return importlib.import_module("torch")
    loaded = sys.modules.get("torch")
    if loaded is not None and "mindtorch_v2" not in sys.modules:
        return loaded
    return importlib.import_module("mindtorch_v2")


def _recording(profile: Any, output: str | None) -> Recording:
    own = getattr(profile, "trace", None)
    if own is not None:
        found = Recording(own, source="cell")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "cell.json"
            profile.export_chrome_trace(str(path))
            found = load(path)
    if output:
        found.save(output)
    return found
