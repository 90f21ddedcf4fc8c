"""The process of a profiled program: `python child.py SETTINGS`. Only `mtprof run` starts it."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Import the runtime, start the profiler, run the program."""
    from importlib import import_module

    from mtprof.launch import program
    from mtprof.launch.profiling import Profiling
    from mtprof.launch.settings import Settings

    settings = Settings.parse(sys.argv[1]).of_this_rank()
    if settings.alias:
        import_module(f"{settings.runtime}.torch_alias").enable(force=True)
    torch = import_module(settings.runtime)
    for part in ("profiler", "optim", "utils.data"):
        import_module(f"{settings.runtime}.{part}")
    profiling = Profiling(settings, torch)
    try:
        code, module = program.prepare(settings)
    except SyntaxError as error:
        error.__traceback__ = None
        sys.excepthook(type(error), error, None)
        return 1
    profiling.begin()
    return program.run(code, module, profiling.finish)


if __name__ == "__main__":
    # Python has put this folder first. The program's own folder goes there instead; this package is found from its
    # root.
    sys.path.pop(0)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if root not in sys.path:
        sys.path.append(root)
    __name__ = "mtprof_child"
    sys.exit(main())
