"""`mtprof run --ranks N`: run a program in several processes that train together, and record each.

The runtime's own launcher starts them. Each writes `rank0.mtp`, `rank1.mtp`, … to one folder, which `mtprof ranks`
reads as one.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from .errors import CommandError
from .output import SETTINGS, note

if TYPE_CHECKING:
    from ..launch.settings import Settings

_LAUNCHERS = {"mindtorch_v2": ["mindtorch_v2.distributed.run"], "torch": ["torch.distributed.run", "--standalone"]}
_OURS = re.compile(r"(rank\d+\..*|report\.html)")  # what this command writes to the folder


def run_ranks(options: argparse.Namespace, base: str, settings_of: Callable[[str], Settings]) -> int:
    """Start the processes, wait for them, and report what they wrote."""
    from ..launch.settings import RANK_MARK

    folder = _folder(options.output or f"{base}.ranks", options.force)
    settings = replace(settings_of(os.path.join(folder, f"rank{RANK_MARK}.mtp")), by_rank=True)
    code = _wait(settings, options.ranks)
    if options.torch:
        _from_torch(folder)
    kept = sorted(name for name in os.listdir(folder) if name.endswith(".mtp"))
    if not kept:
        note("mtprof: no recording: no process wrote one")
        return code or 2
    if code:
        note(f"mtprof: the program failed (exit code {code}); {len(kept)} of {options.ranks} ranks wrote a recording")
    return code or _show(options, folder)


def _folder(folder: str, force: bool) -> str:
    """The folder, without recordings of an earlier run."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CommandError(f"cannot write into {folder}: it is not a folder, and each rank writes a file")
    os.makedirs(folder, exist_ok=True)
    earlier = [name for name in os.listdir(folder) if _OURS.fullmatch(name)]
    if earlier and not force:
        raise CommandError(f"cannot write into {folder}: it has {earlier[0]} from another run (--force replaces it, "
                           "-o names another folder)")
    for name in earlier:
        os.unlink(os.path.join(folder, name))
    return folder


def _wait(settings: Settings, ranks: int) -> int:
    from .. import launch

    child = os.path.join(os.path.dirname(os.path.abspath(launch.__file__)), "child.py")
    module, *more = _LAUNCHERS[settings.runtime]
    sys.stdout.flush()
    started = subprocess.Popen([sys.executable, "-m", module, *more, "--nproc-per-node", str(ranks), child,
                                settings.text()])

    def forward(number: int, _: FrameType | None) -> None:
        started.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        while True:
            try:
                return started.wait()
            except KeyboardInterrupt:
                continue  # the terminal signals the launcher too, and the launcher ends the ranks
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _from_torch(folder: str) -> None:
    """Convert PyTorch's traces to recordings."""
    from .files import read

    for name in sorted(os.listdir(folder)):
        if name.endswith(".mtp.pt.trace.json"):
            path = os.path.join(folder, name)
            read(path).save(path.removesuffix(".pt.trace.json"))
            os.unlink(path)


def _show(options: argparse.Namespace, folder: str) -> int:
    from contextlib import redirect_stdout

    from . import ranks

    page = None if options.no_report else os.path.join(folder, "report.html")
    if SETTINGS.json:
        return ranks.show(folder, page=page)
    quiet = options.no_summary or SETTINGS.quiet
    with redirect_stdout(sys.stderr):
        return ranks.show(folder, page=page, tables=not quiet)
