"""`torch.distributed.constants`: how long a group of processes waits, for programs that pass it on."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["default_pg_timeout"]

default_pg_timeout = timedelta(minutes=30)
