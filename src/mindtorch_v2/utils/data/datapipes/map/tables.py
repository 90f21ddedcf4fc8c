"""Samples by key: of a sequence, or made from other pipes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..checks import check_callable
from ..datapipe import DataChunk, MapDataPipe, functional_datapipe


def _check_tables(datapipes: tuple[Any, ...]) -> None:
    if not all(isinstance(one, MapDataPipe) for one in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or a mapping, of a copy of it unless `deepcopy=False`."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn` of each sample."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable[[Any], Any]) -> None:
        check_callable(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """One after the other, numbered on."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        _check_tables(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples with the samples of all pipes under a key."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        _check_tables(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from None
        return tuple(found)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of `batch_size` samples; the last may be shorter."""

    def __init__(self, datapipe: MapDataPipe, batch_size: int, drop_last: bool = False,
                 wrapper_class: Callable[[Any], Any] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[place] for place in range(first, last)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
