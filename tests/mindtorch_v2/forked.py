"""Programs in processes of their own that need not import the package again: they are forked from one that has.

To import the package takes ten times as long as what most programs of the tests do. Run as a script, this file is the
process from which they are forked.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType


class Forks:
    """A process that has imported the package, with an environment of its own. `run` forks it."""

    def __init__(self, environment: dict[str, str]) -> None:
        one = {"OPENBLAS_NUM_THREADS": "1"}  # threads do not survive a fork
        self.parent = subprocess.Popen([sys.executable, "-X", "faulthandler", __file__], env={**environment, **one},
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, program: str, timeout: float, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, in a folder if there is one, and say how it ended."""
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        with tempfile.TemporaryDirectory() as written:
            out, error = Path(written, "out"), Path(written, "error")
            told = [program, str(folder or os.getcwd()), str(out), str(error)]
            print(json.dumps(told), file=self.parent.stdin, flush=True)
            if not select.select([self.parent.stdout], [], [], timeout)[0]:
                self.close()
                raise subprocess.TimeoutExpired(program, timeout, out.read_bytes(), error.read_bytes())
            code = int(self.parent.stdout.readline())
            return subprocess.CompletedProcess([program], code, out.read_text(), error.read_text())

    def close(self) -> None:
        """End the process, and what it has forked."""
        os.killpg(self.parent.pid, signal.SIGKILL)
        self.parent.communicate()


def program_of_a_fork() -> str | None:
    """In each fork, the program that it shall run; in the parent, nothing, when there are no more."""
    for line in sys.stdin:
        program, folder, out, error = json.loads(line)
        fork = os.fork()
        if not fork:
            os.chdir(folder)
            for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY | os.O_CREAT),
                                        (2, error, os.O_WRONLY | os.O_CREAT)):
                os.dup2(os.open(path, flags), number)
            return program
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)
    return None


if __name__ == "__main__":
    import mindtorch_v2  # noqa: F401

    PROGRAM = program_of_a_fork()
    if PROGRAM is not None:
        sys.modules["__main__"] = MAIN = ModuleType("__main__")
        exec(compile(PROGRAM, "<string>", "exec"), vars(MAIN))
