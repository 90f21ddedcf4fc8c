"""Gradients of several ranks become one while the backward still runs.

Parameters are put into buckets, the last ones first, because their gradients come first. A bucket whose gradients are
all there is reduced at once, asynchronously; buckets start in the same order on all ranks. When the backward ends, the
gradients are written back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import distributed as dist
from ..._autograd.engine import at_end_of_backward
from ..._autograd.grad_mode import no_grad
from ..._tensor import Tensor, wrap
from ...distributed._bucket import GradBucket, SparseBucket
from ...distributed._collectives import begin_all_reduce
from ...futures import Future

__all__ = ["FIRST_BUCKET_BYTES", "Reducer", "megabytes"]

FIRST_BUCKET_BYTES = 1024 * 1024  # small, so that communication begins early


def _buckets(parameters: list[Tensor], limits: list[int], sparse: set[int]) -> list[GradBucket]:
    """Parameters from the last to the first, by kind, up to a number of bytes per bucket; sparse ones have one each."""
    open_ones: dict[Any, list[Tensor]] = {}
    taken: dict[Any, int] = {}
    closed: list[list[Tensor]] = []
    used: dict[Any, int] = {}
    for parameter in reversed(parameters):
        if id(parameter) in sparse:
            closed.append([parameter])
            continue
        kind = parameter.dtype, parameter.device
        open_ones.setdefault(kind, []).append(parameter)
        taken[kind] = taken.get(kind, 0) + parameter.numel() * parameter.element_size()
        if taken[kind] >= limits[min(used.get(kind, 0), len(limits) - 1)]:
            closed.append(open_ones.pop(kind))
            used[kind] = used.get(kind, 0) + 1
            taken[kind] = 0
    closed += open_ones.values()
    place = {id(parameter): number for number, parameter in enumerate(parameters)}
    closed.sort(key=lambda group: -max(place[id(parameter)] for parameter in group))
    buckets = [(SparseBucket if id(group[0]) in sparse else GradBucket)(number, group)
               for number, group in enumerate(closed)]
    buckets[-1]._is_last = True
    return buckets


class Reducer:
    """Reduces the gradients of one module."""

    def __init__(self, named: list[tuple[str, Tensor]], group: Any, limits: list[int], find_unused: bool,
                 as_views: bool, static: bool, sparse: set[int]) -> None:
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.group, self.find_unused, self.as_views, self.static = group, find_unused, as_views, static
        self.size = self.divisor = dist.get_world_size(group)
        self.buckets = _buckets(self.parameters, limits, sparse)
        self.number = {id(parameter): number for number, parameter in enumerate(self.parameters)}
        self.place = {id(parameter): (bucket, position) for bucket in self.buckets
                      for position, parameter in enumerate(bucket._parameters)}
        self.hook: Callable[[GradBucket], Future[Any]] | None = None
        self.static_used: list[bool] | None = None
        self.calls_expected: list[int] | None = None  # of a static graph, known after its first backward
        self.unused: list[int] = []
        self.is_active = False    # a backward is expected or under way
        self.is_queued = False    # the end of the backward will be noticed
        self._reset()
        self.handles = [parameter.register_post_accumulate_grad_hook(self._arrived) for parameter in self.parameters]

    def _reset(self) -> None:
        self.ready = [False] * len(self.parameters)
        self.used = [False] * len(self.parameters)
        self.calls = [0] * len(self.parameters)
        self.next = 0
        for bucket in self.buckets:
            bucket.missing = len(bucket._parameters)
            bucket.waited = None

    # -- around a forward ------------------------------------------------------------------------------------------

    def check_finished(self) -> None:
        """Raise if gradients of the last backward are still missing."""
        if not self.is_active or not any(self.used):
            return
        missing = [name for name, ready in zip(self.names, self.ready) if not ready]
        if missing:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one: the loss did "
                "not "
                f"depend on the parameters {', '.join(missing)} (rank {dist.get_rank()}). Pass "
                "`find_unused_parameters=True` to DistributedDataParallel, and make sure that all outputs of `forward` "
                "take part in the loss.")

    def expect(self, outputs: Iterable[Tensor]) -> None:
        """Expect a backward through these outputs."""
        self._reset()
        self.is_active, self.is_queued = True, False
        if self.find_unused and not self.static:
            reached = _leaves(outputs)
            self.unused = [number for number, parameter in enumerate(self.parameters) if id(parameter) not in reached]
        else:
            self.unused = []

    # -- inside a backward -----------------------------------------------------------------------------------------

    def _arrived(self, parameter: Tensor) -> None:
        if not self.is_active:
            return
        number = self.number[id(parameter)]
        if not self.is_queued:
            self.is_queued = True
            at_end_of_backward(self._finish)
            for one in self.unused:
                self._mark(one)
        self.used[number] = True
        self.calls[number] += 1
        if self.static:
            # In the first backward, nobody knows how often a parameter's gradient comes.
            if self.calls_expected is None or self.calls[number] < self.calls_expected[number]:
                return
        elif self.ready[number]:
            raise RuntimeError(f"Expected to mark a variable ready only once: the gradient of parameter "
                               f"{self.names[number]} came twice in one backward, as with a forward that was run twice "
                               "or with checkpointing; pass static_graph=True if the graph is always the same")
        self._mark(number)

    def _mark(self, number: int) -> None:
        if self.ready[number]:
            return
        self.ready[number] = True
        bucket, position = self.place[id(self.parameters[number])]
        with no_grad():
            bucket.take(position, self.parameters[number].grad, 1.0 if self.hook is not None else 1.0 / self.divisor)
        bucket.missing -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            self._start(self.buckets[self.next])
            self.next += 1

    def _start(self, bucket: GradBucket) -> None:
        if self.hook is not None:
            bucket.waited = self.hook(bucket)
            if not isinstance(bucket.waited, Future):
                raise TypeError(f"a communication hook should return a torch.futures.Future, but returned "
                                f"{type(bucket.waited).__name__}")
        else:
            work = begin_all_reduce(bucket.buffer(), group=self.group)
            assert work is not None, "the group of a module has this process in it"
            bucket.waited = work.detach(moved=not bucket.is_last())  # the backward ends with the last: it waits then

    def _finish(self) -> None:
        """The backward has ended: write the gradients back."""
        if self.static and self.calls_expected is None:
            self.calls_expected = list(self.calls)
        if self.static or self.find_unused:
            # What is left belongs to outputs that are not in the loss.
            for number in range(len(self.parameters)):
                self._mark(number)
        if self.next < len(self.buckets):
            return  # named at the next forward
        self.is_active = False
        used_somewhere = self._used_somewhere()
        for bucket in self.buckets:
            self._write_back(bucket, used_somewhere)

    def _used_somewhere(self) -> list[bool]:
        """Which parameters some rank has a gradient for. All ranks ask at the same time, or none does."""
        if self.static and self.static_used is not None:
            return self.static_used
        if not (self.find_unused or self.static):
            return [True] * len(self.parameters)
        flags = wrap(np.array(self.used, np.int32))
        dist.all_reduce(flags, group=self.group)
        found = [bool(flag) for flag in flags._a]
        if self.static:
            self.static_used = found
        return found

    def _write_back(self, bucket: GradBucket, used: list[bool]) -> None:
        waited: Any = bucket.waited
        result = waited.wait()
        with no_grad():
            if self.hook is not None:
                reduced = result[0] if isinstance(result, (list, tuple)) else result
                if reduced is not bucket.buffer():
                    bucket.put(reduced)
            for parameter, view in zip(bucket._parameters, bucket.views):
                if not used[self.number[id(parameter)]]:
                    continue
                if self.as_views or isinstance(bucket, SparseBucket):
                    if parameter.grad is not view:
                        parameter.grad = view
                elif parameter.grad is None:
                    parameter.grad = view.clone()
                else:
                    parameter.grad.copy_(view)

    def remove(self) -> None:
        """Take the hooks off the parameters."""
        for handle in self.handles:
            handle.remove()


def _leaves(outputs: Iterable[Tensor]) -> set[int]:
    """The leaves that the outputs depend on."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting = []
    for output in outputs:
        if output.grad_fn is not None:
            waiting.append(output.grad_fn)
        elif output.requires_grad:
            found.add(id(output))
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        variable = getattr(node, "variable", None)
        if isinstance(variable, Tensor):
            found.add(id(variable))
        waiting += [below for below, _ in node.next_functions if below is not None]
    return found


def megabytes(value: float) -> int:
    """A bucket's limit in bytes."""
    return math.ceil(value * 1024 * 1024)
