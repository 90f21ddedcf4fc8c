"""Parts of the loader: collating samples, fetching batches, worker processes and the errors that come from them."""

from __future__ import annotations

from . import collate, error, fetch, pin_memory, worker

MP_STATUS_CHECK_INTERVAL = worker.CHECK_INTERVAL

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "error", "fetch", "pin_memory", "worker"]
