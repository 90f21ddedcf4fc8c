"""`torch.utils.data.backward_compatibility`: a name that older programs give their loaders."""

from __future__ import annotations

import warnings


def worker_init_fn(worker_id: int) -> None:
    """Nothing: workers divide streams by themselves."""
    warnings.warn("Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically applies "
                  "sharding in every worker", stacklevel=2)
