"""A pipe that continues at a later place."""

from __future__ import annotations

from typing import Any

from ...graph_settings import apply_random_seed
from ..iterator import _SnapshotState


def _simple_graph_snapshot_restoration(datapipe: Any, n_iterations: int, rng: Any = None) -> None:
    """Read and forget the first samples: the next iteration begins after them. The generator seeds the pipes."""
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError("Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph "
                           "if your graph has not been restored.")
    apply_random_seed(datapipe, rng)
    ahead = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(ahead)
        except StopIteration:
            raise RuntimeError(f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples "
                               "available.") from None
    datapipe._fast_forward_iterator = ahead
    datapipe._snapshot_state = _SnapshotState.Restored
