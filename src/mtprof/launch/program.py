"""Runs a program as Python would: as `__main__`, with its own arguments, path, traceback and exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from typing import Any

from .settings import Settings


def prepare(settings: Settings) -> tuple[types.CodeType, types.ModuleType]:
    """The program's code and an empty `__main__` for it; `sys.argv` and `sys.path` as it expects them."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __annotations__={})
    if settings.how == "code":
        sys.argv = ["-c", *settings.arguments]
        sys.path[0:0] = [""]
        return compile(settings.program, "<string>", "exec"), module
    if settings.how == "module":
        sys.path[0:0] = [os.getcwd()]
        return _module_code(settings, module)
    path = settings.program
    sys.argv = [path, *settings.arguments]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy

        sys.path[0:0] = [path]
        _, spec, code = runpy._get_main_module_details()  # type: ignore[attr-defined]
        module.__dict__.update(__spec__=spec, __loader__=spec.loader, __file__=spec.origin, __package__=spec.parent)
        return code, module
    sys.path[0:0] = [os.path.dirname(os.path.realpath(path))]
    path = os.path.abspath(path)
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module.__dict__.update(__file__=path, __cached__=None, __spec__=None, __package__=None,
                           __loader__=SourceFileLoader("__main__", path))
    return code, module


def _module_code(settings: Settings, module: types.ModuleType) -> tuple[types.CodeType, types.ModuleType]:
    import runpy

    sys.argv = ["-m", *settings.arguments]
    try:
        _, spec, code = runpy._get_module_details(settings.program)  # type: ignore[attr-defined]
    except ImportError as error:
        raise SystemExit(f"{sys.executable}: {error}") from None
    sys.argv[0] = spec.origin
    module.__dict__.update(__spec__=spec, __loader__=spec.loader, __file__=spec.origin, __package__=spec.parent,
                           __cached__=spec.cached)
    return code, module


def run(code: types.CodeType, module: types.ModuleType, finish: Callable[[], None]) -> int:
    """Run it to its end and call `finish`, however it ends. Returns the exit code, unless it left another way."""
    sys.modules["__main__"] = module
    guard(finish)
    status, interrupted = 0, False
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        status = _exit_status(error)
    except BaseException as error:
        _report(error)
        status, interrupted = 1, isinstance(error, KeyboardInterrupt)
    _join_threads()
    finish()
    if interrupted:
        # Raised to the top, it makes Python end in the usual way: after the atexit functions, and by SIGINT. The
        # traceback was already printed.
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
    return status


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> None:
    """The traceback as Python prints it, from the program's first frame on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(("mtprof.launch",
                                                                                         "mtprof_child")):
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def _join_threads() -> None:
    """Wait for the program's threads, as Python does at its end. Workers of executors are first told that no more work
    comes; otherwise they would wait forever. Python's whole shutdown of threads would refuse imports that saving needs.
    """
    try:
        for tell in reversed(threading._threading_atexits):  # type: ignore[attr-defined]
            tell()
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and not thread.daemon:
                thread.join()
    except KeyboardInterrupt as error:
        _report(error)


def guard(finish: Callable[[], None]) -> None:
    """Call `finish` before the process ends in another way: `os._exit`, `os.exec…`, SIGTERM, SIGHUP."""
    for name in ("_exit", "execv", "execve", "abort"):
        _before(name, finish)

    def leave(number: int, frame: types.FrameType | None) -> None:
        finish()
        _die_of(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)


def _before(name: str, finish: Callable[[], None]) -> None:
    original = getattr(os, name)

    def leave(*args: Any, **kwargs: Any) -> Any:
        finish()
        return original(*args, **kwargs)

    leave.__name__ = leave.__qualname__ = name
    leave.__doc__ = original.__doc__
    setattr(os, name, leave)


def _die_of(number: int) -> None:
    """End the process by a signal, so that its parent sees what happened."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
