"""Gets the samples of one batch from a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any


class MapFetcher:
    """Samples by index."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn

    def fetch(self, index: Any) -> Any:
        """The batch for a list of indices, or the sample for one index."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(many(index) if many else [self.dataset[i] for i in index])


class IterableFetcher:
    """The next samples of a stream; only the number of indices counts."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.stream = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next batch or sample; StopIteration at the end of the stream."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.stream))
        samples = list(itertools.islice(self.stream, len(index)))
        self.ended = len(samples) < len(index)
        if not samples or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(samples)


def make_fetcher(iterable: bool, *args: Any) -> MapFetcher | IterableFetcher:
    """The fetcher for a kind of dataset."""
    return IterableFetcher(*args) if iterable else MapFetcher(*args)


class _DatasetKind:
    """The kinds of dataset; libraries with loaders of their own, such as fastai, name one of them."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any],
                       drop_last: bool) -> MapFetcher | IterableFetcher:
        """The fetcher for a kind of dataset."""
        return make_fetcher(kind == _DatasetKind.Iterable, dataset, auto_collation, collate_fn, drop_last)
