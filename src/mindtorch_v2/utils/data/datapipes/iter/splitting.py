"""Several streams from one. They share an iterator of it; what one has read and others have not is kept for them."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..checks import check_callable
from ..datapipe import IterDataPipe, functional_datapipe
from ..iterator import described

_END = object()


class _Shared(IterDataPipe):
    """What the streams that were made from one share. It is a pipe only so that graphs of pipes contain it."""

    overflow = ""
    __iter__ = None  # type: ignore[assignment]

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int) -> None:
        self.datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        self.pass_number = 0
        self._forget()

    def _forget(self) -> None:
        self.source: Iterator[Any] | None = None
        self.waiting: list[deque[Any]] = []
        self.ended = False
        self.begun: set[int] = set()
        self.finished: set[int] = set()

    def _state(self) -> Any:
        return {name: value for name, value in self.__dict__.items()
                if name not in ("source", "waiting", "ended", "begun", "finished")}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._forget()

    def begin(self, instance: int) -> int:
        """Begin a stream's iteration; if it has begun before, all begin again. Returns the number of the pass."""
        if self.source is None or instance in self.begun:
            if self.begun - self.finished:
                warnings.warn("Some child DataPipes are not exhausted when __iter__ is called. We are resetting the "
                              "buffer and each child DataPipe will read from the start again.", UserWarning,
                              stacklevel=5)
            self.pass_number += 1
            self.source = iter(self.datapipe)
            self.waiting = [deque() for _ in range(self.num_instances)]
            self.begun, self.finished, self.ended = set(), set(), False
        self.begun.add(instance)
        return self.pass_number

    def samples(self, instance: int, number: int) -> Iterator[Any]:
        """The samples of one stream."""
        while True:
            if number != self.pass_number:
                raise RuntimeError("This iterator has been invalidated, because a new iterator has been created from "
                                   f"one of the ChildDataPipes of {described(self, short=False)}.")
            if self.waiting[instance]:
                yield self.waiting[instance].popleft()
                continue
            sample = self._next()
            if sample is _END:
                self.finished.add(instance)
                return
            for target in self.targets(sample):
                self.waiting[target].append(self.copied(sample))
            if self.buffer_size >= 0 and self.ahead(instance) > self.buffer_size:
                raise BufferError(f"{self.overflow} {self.buffer_size} is insufficient.")

    def _next(self) -> Any:
        """The next sample of the source, which is not asked again after its end."""
        sample = _END if self.ended or self.source is None else next(self.source, _END)
        self.ended = sample is _END
        return sample

    def copied(self, sample: Any) -> Any:
        """What a stream gets of a sample."""
        return sample

    def targets(self, sample: Any) -> Iterator[int]:
        """The streams that a sample belongs to."""
        raise NotImplementedError

    def ahead(self, instance: int) -> int:
        """How many samples are kept for streams other than the one that reads."""
        raise NotImplementedError


class _ChildDataPipe(IterDataPipe):
    """One of the streams."""

    says_where = False

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.samples(self.instance_id, self.main_datapipe.begin(self.instance_id))

    def __len__(self) -> int:
        return len(self.main_datapipe)


_COPIES: dict[str | None, Callable[[Any], Any]] = {
    None: lambda sample: sample, "shallow": copying.copy, "deep": copying.deepcopy}


class _ForkerIterDataPipe(_Shared):
    overflow = "ForkerIterDataPipe buffer overflow,buffer size"

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int, copy: str | None) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy = copy

    def copied(self, sample: Any) -> Any:
        """The sample, or a copy of it."""
        return _COPIES[self.copy](sample)

    def __len__(self) -> int:
        return len(self.datapipe)

    def targets(self, sample: Any) -> Iterator[int]:
        """All of them."""
        yield from range(self.num_instances)

    def ahead(self, instance: int) -> int:
        """The longest queue: the streams wait for the same samples."""
        return max((len(queue) for number, queue in enumerate(self.waiting) if number != instance), default=0)


class _DemultiplexerIterDataPipe(_Shared):
    overflow = "DemultiplexerIterDataPipe buffer overflow, buffer size"

    def __init__(self, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable[[Any], int | None],
                 drop_none: bool, buffer_size: int) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def targets(self, sample: Any) -> Iterator[int]:
        """The one that the function chooses."""
        target = self.classifier_fn(sample)
        if target is None and self.drop_none:
            return
        if target is None or not 0 <= target < self.num_instances:
            raise ValueError(f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                             f"{target} is returned.")
        yield target

    def ahead(self, instance: int) -> int:
        """All queues: each sample is in one of them."""
        return sum(len(queue) for number, queue in enumerate(self.waiting) if number != instance)


def _check(name: str, num_instances: int, buffer_size: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size < 0:
        warnings.warn(f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
                      UserWarning, stacklevel=3)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """A list of streams that have the same samples, or copies of them: `copy` is None, "shallow" or "deep"."""

    def __new__(cls, datapipe: IterDataPipe, num_instances: int,
                buffer_size: int = 1000, copy: str | None = None) -> Any:
        """The streams."""
        if copy not in _COPIES:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        _check("fork", num_instances, buffer_size)
        if num_instances == 1:
            return datapipe
        shared = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(shared, number) for number in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """A list of streams among which a function shares out the samples."""

    def __new__(cls, datapipe: IterDataPipe, num_instances: int,
                classifier_fn: Callable[[Any], int | None], drop_none: bool = False, buffer_size: int = 1000) -> Any:
        """The streams."""
        check_callable(classifier_fn)
        _check("demux", num_instances, buffer_size)
        shared = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(shared, number) for number in range(num_instances)]
