"""What a loader does to pipes: one order for all workers, and a share for each.

Pipes and process groups are only looked for among loaded modules, so that a loader without them imports neither.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..._construct import tensor
from ..._random import Generator
from .sampler import draw_seed

__all__ = ["is_stream", "of_worker", "reseeded", "set_shuffling", "shared_seed"]

_WHOLE = __name__.partition(".")[0]


def is_stream(dataset: Any) -> bool:
    """Whether a dataset is a pipe that streams."""
    module = sys.modules.get(f"{__package__}.datapipes.datapipe")
    return module is not None and isinstance(dataset, module.IterDataPipe)


def _settings() -> Any:
    return importlib.import_module(f"{__package__}.graph_settings")


def _place() -> tuple[int, int]:
    """How many processes train together, and which this one is."""
    ranks = sys.modules.get(f"{_WHOLE}.distributed")
    if ranks is None or not ranks.is_available() or not ranks.is_initialized():
        return 1, 0
    return ranks.get_world_size(), ranks.get_rank()


def set_shuffling(dataset: Any, shuffle: bool | None) -> None:
    """Switch the shufflers among pipes on or off. Where there is none, PyTorch warns and does not shuffle either."""
    if is_stream(dataset):
        _settings().apply_shuffle_settings(dataset, shuffle=shuffle)


def shared_seed(dataset: Any, generator: Generator | None) -> int | None:
    """The seed from which all processes seed the same pipes equally; None where there are no pipes."""
    if not is_stream(dataset):
        return None
    seed = draw_seed(generator)
    if _place()[0] > 1:
        sent = tensor(seed)
        sys.modules[f"{_WHOLE}.distributed"].broadcast(sent, src=0)
        seed = int(sent.item())
    return seed


def reseeded(dataset: Any, seed: int | None) -> Any:
    """The dataset, with pipes that begin anew in the order of a seed."""
    return dataset if seed is None else _settings().apply_random_seed(dataset, Generator().manual_seed(seed))


def of_worker(dataset: Any, worker_id: int = 0, num_workers: int = 1) -> Any:
    """The dataset, with pipes that give the share of one worker of this process."""
    if is_stream(dataset):
        count, rank = _place()
        _settings().apply_sharding(dataset, num_workers * count, worker_id * count + rank)
    return dataset
