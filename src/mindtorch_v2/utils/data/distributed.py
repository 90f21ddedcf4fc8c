"""`DistributedSampler`: one of several equal shares of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ..._dispatch.namespace import public
from ..._random import Generator
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, after a shuffle that is the same for all ranks.

    Both numbers are by default those of the process group.
    """

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None or rank is None:
            from ... import distributed as dist

            if not dist.is_available():
                raise RuntimeError("Requires distributed package to be available: install mindtorch-v2[distributed], "
                                   "or "
                                   "give num_replicas and rank")
            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (rest > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = public.randperm(size, generator=generator).tolist()
        else:
            order = list(range(size))
        # Shares are equal: the order starts over where it is too short, and is cut where it is too long.
        padded = list(itertools.islice(itertools.cycle(order), self.total_size))
        share = padded[self.rank::self.num_replicas]
        if len(share) != self.num_samples:
            raise AssertionError(f"Number of subsampled indices ({len(share)}) does not match num_samples "
                                 f"({self.num_samples})")
        return iter(share)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle differently from now on; call it before each epoch."""
        self.epoch = epoch


__all__ = ["DistributedSampler"]
