"""Streams in random order: whether, and from which seed."""

from __future__ import annotations

import random
from typing import TypeVar

from ..sampler import draw_seed
from .datapipe import IterDataPipe

S = TypeVar("S", bound="Shuffling")


class Shuffling(IterDataPipe):
    """A stream whose order is drawn anew for each iteration."""

    def __init__(self) -> None:
        self._enabled = True
        self._seed: int | None = None
        self._order = random.Random()

    def set_shuffle(self: S, shuffle: bool = True) -> S:
        """Change the order, or leave it."""
        self._enabled = shuffle
        return self

    def set_seed(self: S, seed: int) -> S:
        """The seed of the next iteration."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Each iteration takes the seed that was set, else a new one of the default generator."""
        if self._enabled:
            self._order.seed(draw_seed() if self._seed is None else self._seed)
            self._seed = None
