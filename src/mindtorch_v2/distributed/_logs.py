"""Where the output of ranks goes: `--log-dir`, `--redirects`, `--tee` and `--local-ranks-filter` of `torchrun`.

The launcher puts the options into the environment, and the process that watches a rank applies them. The files have the
names of PyTorch's launcher: `LOG_DIR/RUN_ID_xxxx/attempt_0/LOCAL_RANK/stdout.log`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from dataclasses import asdict, dataclass

__all__ = ["Logs", "Pumps"]

_VARIABLE = "MINDTORCH_LOGS"
_FILES = {1: "stdout.log", 2: "stderr.log"}  # by file descriptor, which is also the bit of the options
_LAST_WORDS_SECONDS = 5.0  # a process that the rank has started may hold its output open


def _streams(text: str, count: int, option: str) -> dict[str, int]:
    """The meaning of `3`, or `0:1,1:2`: by local rank, 1 for stdout, 2 for stderr, 3 for both.

    >>> _streams("2", 2, "--tee"), _streams("0:1,1:3", 2, "--tee")
    ({'0': 2, '1': 2}, {'0': 1, '1': 3})
    """
    if text in ("0", "1", "2", "3"):
        return {str(rank): int(text) for rank in range(count)}
    chosen = {}
    for part in text.split(","):
        rank, colon, streams = part.partition(":")
        if not (rank.isdecimal() and colon and streams in ("0", "1", "2", "3")):
            raise SystemExit(f"torchrun: {option} should be 0, 1, 2 or 3, or name ranks as 0:1,1:3, but is {text!r}")
        chosen[rank] = int(streams)
    return chosen


@dataclass(frozen=True)
class Logs:
    """The targets of the output of this machine's ranks, by local rank."""

    folder: str | None
    redirects: dict[str, int]
    tees: dict[str, int]
    shown: list[int] | None  # who may write to the terminal; None for all
    role: str

    @classmethod
    def chosen(cls, count: int, run_id: str, log_dir: str | None, redirects: str, tee: str, shown: str | None,
               role: str) -> Logs:
        """From the options of the launcher; makes the folder."""
        to_file, to_both = _streams(redirects, count, "--redirects"), _streams(tee, count, "--tee")
        folder = None
        if log_dir is not None or any(to_file.values()) or any(to_both.values()):
            parent = log_dir or tempfile.mkdtemp(prefix="torchelastic_")
            os.makedirs(parent, exist_ok=True)
            folder = os.path.abspath(os.path.join(tempfile.mkdtemp(prefix=f"{run_id}_", dir=parent), "attempt_0"))
            if log_dir is None:
                print(f"torchrun: log directory set to: {parent}", flush=True)
        try:
            ranks = None if not shown else [int(one) for one in shown.split(",")]
        except ValueError:
            raise SystemExit(f"torchrun: --local-ranks-filter should be numbers as 0,1, but is {shown!r}") from None
        return cls(folder, to_file, to_both, ranks, role)

    def variables(self) -> dict[str, str]:
        """In the form of the ranks' environment."""
        return {_VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def of_environment(cls) -> Logs | None:
        """The launcher's choice, None if this process has another launcher."""
        text = os.environ.pop(_VARIABLE, None)
        return None if text is None else cls(**json.loads(text))


class Pumps:
    """The output of one rank on its way to files and to the terminal."""

    def __init__(self, logs: Logs | None, local_rank: int) -> None:
        self._targets: dict[int, int] = {}  # what the rank gets as stdout and stderr, by file descriptor
        self._pumps: list[tuple[int, int, int | None]] = []
        self._threads: list[threading.Thread] = []
        if logs is None:
            return
        self._prefix = f"[{logs.role}{local_rank}]:".encode()
        is_shown = logs.shown is None or local_rank in logs.shown
        if logs.folder is not None:
            os.makedirs(os.path.join(logs.folder, str(local_rank)), exist_ok=True)
        for stream, name in _FILES.items():
            tee, only = (chosen.get(str(local_rank), 0) & stream for chosen in (logs.tees, logs.redirects))
            if tee or only:
                assert logs.folder is not None
                file = os.open(os.path.join(logs.folder, str(local_rank), name),
                               os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
                if tee:
                    reading, self._targets[stream] = os.pipe()
                    self._pumps.append((reading, file, stream if is_shown else None))
                else:
                    self._targets[stream] = file
            elif not is_shown:
                self._targets[stream] = os.open(os.devnull, os.O_WRONLY)

    def in_rank(self) -> None:
        """In the rank's process: write there from now on."""
        for stream, target in self._targets.items():
            os.dup2(target, stream)
            os.close(target)
        for reading, file, _ in self._pumps:
            os.close(reading)
            os.close(file)

    def start(self) -> None:
        """In the process that watches it: forward the output."""
        for target in self._targets.values():
            os.close(target)
        for reading, file, shown in self._pumps:
            self._threads.append(threading.Thread(target=self._move, args=(reading, file, shown), daemon=True))
            self._threads[-1].start()

    def _move(self, reading: int, file: int, shown: int | None) -> None:
        with open(reading, "rb") as lines:
            for line in lines:
                os.write(file, line)
                if shown is not None:
                    with contextlib.suppress(OSError):  # the terminal is gone; keep writing the file
                        os.write(shown, self._prefix + line)

    def finish(self) -> None:
        """The rank has ended: wait for its last words."""
        for thread in self._threads:
            thread.join(_LAST_WORDS_SECONDS)
