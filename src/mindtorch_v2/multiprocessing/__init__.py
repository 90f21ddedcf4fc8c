"""`torch.multiprocessing`: Python's `multiprocessing`.

Tensors that `share_memory_` has moved to shared memory are sent as what they are; others by value.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing import connection
from typing import Any

from .._spawning import ProcessContext, ProcessExitedException, ProcessRaisedException
from ._threads import get_thread_name as _get_thread_name
from ._threads import set_pdeathsig as _prctl_pr_set_pdeathsig
from ._threads import set_thread_name as _set_thread_name
from .reductions import init_reductions

__all__ = [*_multiprocessing.__all__, "ProcessContext",
           "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "_get_thread_name",
           "_prctl_pr_set_pdeathsig", "_set_thread_name", "connection",
           "get_all_sharing_strategies", "get_sharing_strategy", "init_reductions", "set_sharing_strategy",
           "spawn", "start_processes"]

SpawnContext = ProcessContext
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"  # in PyTorch; here processes are started one after the other
_STRATEGIES = frozenset({"file_descriptor", "file_system"})
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What was set last. It has no effect."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember a strategy. It has no effect: shared memory is sent as a file descriptor."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"unknown sharing strategy: {new_strategy}")
    _strategy = new_strategy


def start_processes(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> Any:
    """`spawn`, by whatever method."""
    return spawn(fn, args, nprocs, join, daemon, start_method)


init_reductions()


from .spawn import spawn as spawn  # noqa: E402  (the module takes names from here; the function hides it)
