"""What a case's process runs: `python -m tests.faults.child NAME DIRECTORY RECORDER`."""

from __future__ import annotations

import faulthandler
import pathlib
import resource
import sys

SKIPPED = 77


def main(name: str, directory: str, recorder: str) -> int:
    """Run a case; 0 if it holds."""
    from .registry import load_one

    faulthandler.enable()
    chosen = load_one(name)
    limit = int(chosen.memory_gb * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if recorder == "c":
        import mindtorch_v2.profiler  # noqa: F401
        from mindtorch_v2._dispatch.native import NATIVE

        if NATIVE is None:
            print("the C recorder is not built: make native")
            return SKIPPED
    chosen.body(pathlib.Path(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
