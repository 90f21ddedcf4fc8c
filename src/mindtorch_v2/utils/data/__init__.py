"""`torch.utils.data`: datasets, samplers and the loader that brings them together."""

from __future__ import annotations

import importlib
from typing import Any

from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

# Loaded when first asked for: few programs chain pipes.
_FROM_DATAPIPES = ("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation",
                   "functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic",
                   "runtime_validation", "runtime_validation_disabled")


def __getattr__(name: str) -> Any:
    if name in ("datapipes", "graph", "graph_settings"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FROM_DATAPIPES:
        return getattr(importlib.import_module(f"{__name__}.datapipes"), name)
    raise AttributeError(f"module 'torch.utils.data' has no attribute '{name}'")
