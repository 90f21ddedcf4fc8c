"""Tables in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ...sampler import draw_seed
from ..datapipe import IterDataPipe, MapDataPipe


class ShufflerIterDataPipe(IterDataPipe):
    """The samples of a table in random order: a stream. The same seed gives PyTorch's order."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices  # type: ignore[arg-type]
        self._enabled = True
        self._seed: int | None = None
        self._order = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Change the order, or leave it."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iteration."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Each iteration takes the seed that was set, else a new one of the default generator."""
        if self._enabled:
            self._order.seed(draw_seed() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        order = self._order.sample(self.indices, len(self.indices))
        while order:
            yield self.datapipe[order.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


MapDataPipe.register_function("shuffle", ShufflerIterDataPipe)
