"""Streams that come from something iterable, or from one other stream."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from ..._utils.collate import default_collate
from ..checks import check_callable, validate_input_col
from ..columns import apply_to_columns, check_columns, columns_of
from ..datapipe import DataChunk, IterDataPipe, functional_datapipe


class IterableWrapperIterDataPipe(IterDataPipe):
    """The samples of something iterable, of a copy of it unless `deepcopy=False`."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                source = self.iterable  # an open file, a generator: it can only be read as it is
        yield from source

    def __len__(self) -> int:
        if not isinstance(self.iterable, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.iterable)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """`fn` of each sample, or of some of its columns."""

    def __init__(self, datapipe: IterDataPipe, fn: Callable[..., Any], input_col: Any = None,
                 output_col: Any = None) -> None:
        check_callable(fn)
        check_columns(input_col, output_col)
        validate_input_col(fn, input_col)
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield apply_to_columns(self.fn, sample, self.input_col, self.output_col)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Each batch as tensors."""

    def __init__(self, datapipe: IterDataPipe, conversion: Any = default_collate,
                 collate_fn: Callable[..., Any] | None = None) -> None:
        if collate_fn is None and not callable(conversion):
            raise NotImplementedError("collate: columns with different conversions need data frames, which this "
                                      "runtime does not have; pass a function")
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which `filter_fn` is True."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable[..., bool], input_col: Any = None) -> None:
        check_callable(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            kept = self.filter_fn(*columns_of(sample, self.input_col))
            if not isinstance(kept, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(kept))
            if kept:
                yield sample


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of `batch_size` samples; the last may be shorter."""

    def __init__(self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False,
                 wrapper_class: Callable[[Any], Any] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches, through `unbatch_level` levels of lists; -1 for all."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for sample in self.datapipe:
            yield from self._within(sample, self.unbatch_level)

    def _within(self, sample: Any, level: int) -> Iterator[Any]:
        nested = isinstance(sample, (list, DataChunk))
        if level == 0 or (level < 0 and not nested):
            yield sample
        elif nested:
            for item in sample:
                yield from self._within(item, level - 1 if level > 0 else level)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
