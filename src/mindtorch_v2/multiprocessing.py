"""`torch.multiprocessing`: Python's `multiprocessing`. Tensors are sent by value, not through shared memory."""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing import connection, get_context
from typing import Any

__all__ = [*_multiprocessing.__all__, "connection", "get_all_sharing_strategies",  # type: ignore[attr-defined]
           "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]

_STRATEGIES = frozenset({"file_descriptor", "file_system"})
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What was set last. It has no effect."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember a strategy. It has no effect: tensors are copied when they are sent."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"unknown sharing strategy: {new_strategy}")
    _strategy = new_strategy


def start_processes(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> Any:
    """`spawn`, by whatever method."""
    return spawn(fn, args, nprocs, join, daemon, start_method)


def spawn(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> Any:
    """Run `fn(i, *args)` in `nprocs` processes; with `join`, wait for them and raise if one fails."""
    context = get_context(start_method)
    processes = [context.Process(target=fn, args=(rank, *args), daemon=daemon)  # type: ignore[attr-defined]
                 for rank in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    try:
        waiting = {process.sentinel: (rank, process) for rank, process in enumerate(processes)}
        while waiting:
            for sentinel in connection.wait(list(waiting)):
                rank, process = waiting.pop(sentinel)  # type: ignore[call-overload]
                process.join()
                if process.exitcode:
                    raise RuntimeError(f"process {rank} terminated with exit code {process.exitcode}")
    finally:
        # After a failure, the others would wait for it for ever.
        for process in processes:
            if process.is_alive():
                process.terminate()
            process.join()
    return None


