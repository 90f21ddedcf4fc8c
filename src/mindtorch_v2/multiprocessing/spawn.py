"""`torch.multiprocessing.spawn`: a function in several processes."""

from __future__ import annotations

from .._spawning import ProcessContext, ProcessExitedException, ProcessRaisedException
from .._spawning import spawn as spawn
from . import SpawnContext, start_processes

__all__ = ["ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn",
           "start_processes"]
