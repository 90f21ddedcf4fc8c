"""One target in a process of its own: `python -m tests.fuzz.worker TARGET SECONDS SEED FINDINGS`.

With 0 seconds it tries as many inputs as the target has for a quick run, from the corpus alone: with the same seed, the
same inputs each time, however busy the machine is.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import json
import pathlib
import random
import resource
import signal
import sys
import time
import traceback
from types import FrameType
from typing import Any

from .targets import TARGETS, Target, corpus

MEMORY_BYTES = 4 << 30
INPUT_SECONDS = 10  # of processor
MOST_KEPT = 2000


class TooLong(BaseException):
    """An input took more than its time."""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


class Lines:
    """Which lines have run, of the files that a target watches."""

    def __init__(self, watched: tuple[str, ...]) -> None:
        self.watched = watched
        self.known: set[tuple[str, int]] = set()
        self.new = 0
        self._files: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The trace function."""
        name = frame.f_code.co_filename
        if name not in self._files:
            self._files[name] = any(part in name for part in self.watched)
        return self._line if self._files[name] else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            if place not in self.known:
                self.known.add(place)
                self.new += 1
        return self._line


def try_one(target: Target, data: bytes, lines: Lines | None = None) -> str | None:
    """What is wrong with how the target takes an input, or None."""
    signal.setitimer(signal.ITIMER_PROF, INPUT_SECONDS)
    before = sys.gettrace()
    sys.settrace(lines)
    try:
        target.run(data)
    except TooLong:
        return f"it takes more than {INPUT_SECONDS} s"
    except Exception as error:
        if target.allowed(error):
            return None
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {pathlib.Path(place.filename).name}:{place.lineno}: {str(error)[:200]}"
    finally:
        sys.settrace(before)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def main(name: str, seconds: float, seed: int, findings: pathlib.Path) -> int:
    """Fuzz a target for so long; prints a line of JSON with the counts."""
    faulthandler.enable()
    target = TARGETS[name]
    signal.signal(signal.SIGPROF, _too_long)
    chance = random.Random(seed)
    kept = [*corpus(name), *(target.seeds() if seconds else ())]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    current = findings / f"{name}-current"
    lines, found, count = Lines(target.watched), {}, 0
    end = time.monotonic() + seconds
    waiting = list(kept)
    while waiting or (time.monotonic() < end if seconds else count < target.quick):
        if waiting:
            data = waiting.pop()
        else:
            data = chance.choice(kept)
            for _ in range(chance.choice((1, 1, 2, 3))):
                data = chance.choice(target.mutators)(chance, data)
        current.write_bytes(data)  # what is left if the process dies
        lines.new = 0
        wrong = try_one(target, data, lines)
        count += 1
        if lines.new and len(kept) < MOST_KEPT and len(data) < 1 << 17:
            kept.append(data)
        if wrong is not None and wrong.partition(": ")[0] not in found:
            found[wrong.partition(": ")[0]] = wrong
            digest = hashlib.sha256(data).hexdigest()[:12]
            (findings / f"{name}-{digest}").write_bytes(data)
            print(f"{name}: {wrong}\n    python -m tests.fuzz -t {name} --replay {findings / f'{name}-{digest}'}",
                  flush=True)
    with contextlib.suppress(FileNotFoundError):
        current.unlink()
    print(json.dumps({"inputs": count, "kept": len(kept), "lines": len(lines.known), "findings": len(found)}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4])))
