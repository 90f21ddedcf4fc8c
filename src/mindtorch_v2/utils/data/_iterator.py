"""Iterators of the loader: what all have in common, and the one that fetches in this process."""

from __future__ import annotations

import warnings
from typing import Any

from ... import accelerator
from ...profiler.record_function import record_function
from ._streams import of_worker, reseeded, shared_seed
from ._utils.fetch import _DatasetKind, make_fetcher
from ._utils.pin_memory import pin_memory
from .sampler import draw_seed


class _BaseDataLoaderIter:
    """One pass over the data. The order of the draws below is PyTorch's, so that random numbers agree after it."""

    def __init__(self, loader: Any) -> None:
        self._shared_seed = shared_seed(loader.dataset, loader.generator)
        self._dataset = reseeded(loader.dataset, self._shared_seed)
        self._dataset_kind = loader._dataset_kind
        self._iterable = self._dataset_kind == _DatasetKind.Iterable
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._pin_memory = loader.pin_memory and accelerator.is_available()
        self._pin_memory_device = loader.pin_memory_device or None
        if loader.pin_memory and not self._pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned "
                          "memory won't be used.", stacklevel=4)
        self._sampler_iter: Any = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: Any, first: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._shared_seed = shared_seed(loader.dataset, loader.generator)
        self._dataset = reseeded(loader.dataset, self._shared_seed)

    def _next_data(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say where its data comes from")

    def __next__(self) -> Any:
        with record_function(self._profile_name):
            data = self._next_data()
            if self._pin_memory:
                data = pin_memory(data, self._pin_memory_device)
            self._num_yielded += 1
            told = self._IterableDataset_len_called
            if self._iterable and told is not None and self._num_yielded > told:
                self._warn_about_length()
            return data

    next = __next__

    def _warn_about_length(self) -> None:
        text = (f"Length of IterableDataset {self._dataset} was reported to be {self._IterableDataset_len_called}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. ")
        if self._num_workers > 0:
            text += ("For multiprocessing data-loading, this could be caused by not properly configuring the "
                     "IterableDataset replica at each worker. Please see "
                     "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.")
        warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        of_worker(self._dataset)
        self._fetcher = make_fetcher(self._iterable, self._dataset, loader._auto_collation, loader.collate_fn,
                                     loader.drop_last)

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._sampler_iter))
