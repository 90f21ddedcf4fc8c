"""`DataLoader`: batches of a dataset, made in this process or in workers."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic

from ..._random import Generator
from ._iterator import _BaseDataLoaderIter, _SingleProcessDataLoaderIter
from ._multiprocess import _MultiProcessingDataLoaderIter
from ._streams import is_stream, set_shuffling
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset, T  # noqa: F401 (libraries take both from here)
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

_collate_fn_t = Callable[[list[Any]], Any]  # how libraries annotate an argument
FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


class _InfiniteConstantSampler(Sampler[Any]):
    """Indices for datasets that have none."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)


class DataLoader(Generic[T]):
    """Iterate over a dataset in batches.

    >>> import mindtorch_v2 as torch
    >>> [batch.tolist() for batch in DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    _initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        _check_order(dataset, shuffle, sampler, batch_sampler, batch_size, drop_last)
        set_shuffling(dataset, shuffle)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._iterator: _BaseDataLoaderIter | None = None
        # What len() said about an iterable dataset; iterating warns when there turns out to be more.
        self._IterableDataset_len_called: int | None = None
        self._initialized = True
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """How workers are started."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            if not self.num_workers:
                raise ValueError("multiprocessing_context can only be used with multi-process loading "
                                 f"(num_workers > 0), but got num_workers={self.num_workers}")
            if isinstance(value, str):
                methods = multiprocessing.get_all_start_methods()
                if value not in methods:
                    raise ValueError("multiprocessing_context option should specify a valid start method in "
                                     f"{methods!r}, but got multiprocessing_context={value!r}")
                value = multiprocessing.get_context(value)
            if not isinstance(value, BaseContext):
                raise TypeError("multiprocessing_context option should be a valid context object or a string "
                                f"specifying the start method, but got multiprocessing_context={value}")
        self._context = value

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None:
                self._iterator = self._get_iterator()
            else:
                self._iterator._reset(self)
            return self._iterator
        return self._get_iterator()

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is not None:
            return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)
        return length

    def check_worker_number_rationality(self) -> None:
        """Warn about more workers than processors."""
        affinity = getattr(os, "sched_getaffinity", None)
        limit = len(affinity(0)) if affinity is not None else os.cpu_count()
        if not self.num_workers or (limit is not None and self.num_workers <= limit):
            return
        known = "how many processors there are is not known" if limit is None else f"there are {limit} processors"
        unsure = "" if affinity is not None else " (the process may be allowed fewer of them)"
        warnings.warn(f"{self.num_workers} worker processes are asked for, and {known}{unsure}: excessive worker "
                      "creation might get DataLoader running slow or even freeze", stacklevel=2)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError(f"num_workers option should be non-negative, but is {num_workers}; 0 loads in this process")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing: without workers "
                         "(num_workers=0) leave it out")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_order(dataset: Any, shuffle: bool | None, sampler: Any, batch_sampler: Any, batch_size: int | None,
                 drop_last: bool) -> None:
    if isinstance(dataset, IterableDataset):
        given = {"shuffle": None if is_stream(dataset) else shuffle or None, "sampler": sampler,
                 "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                                 f"{name}={value}")
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
