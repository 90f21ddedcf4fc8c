"""Tables in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..datapipe import MapDataPipe
from ..shuffling import Shuffling


class ShufflerIterDataPipe(Shuffling):
    """The samples of a table in random order: a stream. The same seed gives PyTorch's order."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        order = self._order.sample(self.indices, len(self.indices))
        while order:
            yield self.datapipe[order.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_function("shuffle", ShufflerIterDataPipe)
