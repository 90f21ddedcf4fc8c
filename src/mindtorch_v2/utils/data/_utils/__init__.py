"""Parts of the loader: collating samples, fetching batches, worker processes and the errors that come from them."""

from __future__ import annotations

from . import collate, error, fetch, worker

__all__ = ["collate", "error", "fetch", "worker"]
