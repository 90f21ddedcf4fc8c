"""Streams in another order, in groups, or only a share of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sized
from enum import IntEnum
from typing import Any

from ...sampler import SequentialSampler
from ..checks import check_callable
from ..datapipe import DataChunk, IterDataPipe, functional_datapipe
from ..shuffling import Shuffling


class SHARDING_PRIORITIES(IntEnum):
    """Which division comes first where a stream is divided more than once."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling):
    """The samples in random order, as far as a buffer reaches. The same seed gives PyTorch's order."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        held: list[Any] = []
        for sample in self.datapipe:
            if len(held) < self.buffer_size:
                held.append(sample)
                continue
            place = self._order.randint(0, len(held) - 1)
            leaving, held[place] = held[place], sample
            yield leaving
        while held:
            yield held.pop(self._order.randint(0, len(held) - 1))

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.datapipe)


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler draws from the pipe."""

    def __init__(self, datapipe: IterDataPipe, sampler: Any = SequentialSampler, sampler_args: Any = None,
                 sampler_kwargs: Any = None) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if not isinstance(self.sampler, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.sampler)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Chunks of samples that have one key. A full buffer gives its biggest group away."""

    def __init__(self, datapipe: IterDataPipe, group_key_fn: Callable[[Any], Any], *, keep_key: bool = False,
                 buffer_size: int = 10000, group_size: int | None = None, guaranteed_group_size: int | None = None,
                 drop_remaining: bool = False) -> None:
        check_callable(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn = datapipe, group_key_fn
        self.keep_key, self.max_buffer_size, self.group_size = keep_key, buffer_size, group_size
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk

    def _chunk(self, key: Any, samples: list[Any]) -> Any:
        chunk = self.wrapper_class(samples)
        return (key, chunk) if self.keep_key else chunk

    def _biggest(self, groups: dict[Any, list[Any]]) -> tuple[Any, list[Any]]:
        """The biggest group, taken out: the oldest one of those that are equally big."""
        key = max(groups, key=lambda one: len(groups[one]))
        size = len(groups[key])
        if self.guaranteed_group_size is not None and size < self.guaranteed_group_size and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(groups[key]))
        return key, groups.pop(key)

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        held = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            groups[key].append(sample)
            held += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                held -= self.group_size
                yield self._chunk(key, groups.pop(key))
            if held == self.max_buffer_size:
                key, samples = self._biggest(groups)
                held -= len(samples)
                if self.guaranteed_group_size is None or len(samples) >= self.guaranteed_group_size:
                    yield self._chunk(key, samples)
        for key in list(groups):
            yield self._chunk(key, groups.pop(key))


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Each sample goes to one of several readers; this one's share, once it was told which."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self) -> bool:
        """It can be told which share to take."""
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int,
                       sharding_group: Any = SHARDING_PRIORITIES.DEFAULT) -> None:
        """Take the share of one among so many readers; divisions of other groups come on top."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        whole = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == whole) != (whole in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                count, place = self.groups[group]
                self.instance_id += self.num_of_instances * place
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for place, sample in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        if not isinstance(self.source_datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        whole, rest = divmod(len(self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
