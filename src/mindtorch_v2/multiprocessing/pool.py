"""`torch.multiprocessing.pool`: Python's pool of processes, whose queues pickle tensors as `reductions` says."""

from __future__ import annotations

from multiprocessing.pool import Pool as Pool

__all__ = ["Pool"]
