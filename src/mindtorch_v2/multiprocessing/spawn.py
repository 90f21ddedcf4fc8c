"""`torch.multiprocessing.spawn`: a function in several processes."""

from __future__ import annotations

from .._spawning import ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException
from .._spawning import run as _wrap
from .._spawning import spawn as spawn
from . import ENV_VAR_PARALLEL_START, SpawnContext, start_processes

__all__ = ["ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessException", "ProcessExitedException",
           "ProcessRaisedException", "SpawnContext", "_wrap", "spawn", "start_processes"]
