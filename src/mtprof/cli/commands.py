"""The commands, in the order of the help. Each is a module of this package, imported only when it is used.

A module has a docstring (its first line is the summary below, the rest the description), `EXAMPLES`, `prepare(parser)`
which adds its options, and `run(options)` which returns the exit code.
"""

from __future__ import annotations

from types import ModuleType

COMMANDS: dict[str, tuple[str, str]] = {  # name: (module, summary)
    "run": ("run", "run a program and profile it, without changing it"),
    "report": ("report", "write a page that shows a trace"),
    "summary": ("summary", "print where the time of a trace goes"),
    "advise": ("advise", "print what to change, with evidence"),
    "top": ("top", "print the busiest ops, again and again while a program runs"),
    "diff": ("diff", "compare two traces and separate change from noise"),
    "analyse": ("analyse", "show how devices were used: idle time, overlap, launches, critical path"),
    "view": ("view", "open a trace in Perfetto's timeline"),
    "convert": ("convert", "write a trace in another format"),
    "trim": ("trim", "keep some steps or a stretch of time"),
    "merge": ("merge", "join the traces of several processes or ranks"),
    "ranks": ("ranks", "print which rank is slow and which waits for which, from the traces of all ranks"),
    "doctor": ("doctor", "check a trace, and repair it"),
    "dump": ("dump", "print the raw rows of a trace"),
    "completion": ("completion", "print completion for a shell"),
}


def load_command(name: str) -> ModuleType:
    """The module of a command."""
    import importlib

    return importlib.import_module(f"mtprof.cli.{COMMANDS[name][0]}")
