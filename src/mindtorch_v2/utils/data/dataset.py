"""Datasets: something with `__getitem__` (map style) or `__iter__` (iterable style), and ways to combine them."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..._dispatch.namespace import aten
from ..._random import Generator
from ..._tensor import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by key. Subclasses define `__getitem__`, usually `__len__`, and may define `__getitems__` for batches."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Samples as a stream. Subclasses define `__iter__`; each worker process iterates over a copy of its own."""

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample `i` is row `i` of each tensor.

    >>> import mindtorch_v2 as torch
    >>> TensorDataset(torch.tensor([1, 2]), torch.tensor([3, 4]))[1]
    (tensor(2), tensor(4))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].shape[0] != tensor.shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Sample `i` is a tuple (or a dictionary, if given by keyword) of the samples `i` of several datasets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like "
                             "input/output, but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        members = list(self._members())
        self._length = len(members[0])
        if any(len(member) != self._length for member in members):
            raise ValueError("Size mismatch between datasets")

    def _members(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Many samples at once, by the members' own `__getitems__` where they have one."""
        columns = [_fetch_many(member, indices) for member in self._members()]
        rows = zip(*columns, strict=True)
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return list(rows)

    def __len__(self) -> int:
        return self._length


def _fetch_many(dataset: Any, indices: list[Any]) -> Sequence[Any]:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError("Nested dataset's output size mismatch. "
                         f"Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[T]):
    """Several map-style datasets, one after the other."""

    datasets: list[Dataset[T]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each of several datasets ends."""
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self) -> list[int]:
        """The sizes under the name they once had."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset[Any]):
    """Several iterable-style datasets, one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T]):
    """Some samples of a dataset, chosen by index."""

    def __init__(self, dataset: Any, indices: Sequence[Any]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        """Many samples at once, by the dataset's own `__getitems__` if it has one."""
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def _split_sizes(total: int, fractions: Sequence[float]) -> list[int]:
    """Whole numbers for fractions: rounded down, the rest dealt out from the front."""
    for position, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1")
    sizes = [math.floor(total * fraction) for fraction in fractions]
    for position in range(total - sum(sizes)):
        sizes[position % len(sizes)] += 1
    for position, size in enumerate(sizes):
        if size == 0:
            warnings.warn(f"Length of split at index {position} is 0. This might result in an empty dataset.",
                          stacklevel=3)
    return sizes


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Disjoint random subsets of the given lengths, or fractions that add up to 1."""
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _split_sizes(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = aten.randperm(sum(lengths), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[int(end - size):int(end)]) for end, size in zip(ends, lengths, strict=True)]
