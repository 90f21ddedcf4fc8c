"""Process groups: some of the ranks, with communicators of their own.

Every collective of a group starts with a short exchange on a communicator beside that of the data: do all ranks call
the same collective with the same dtype and size? If not, all of them raise an error that says which rank called what;
MPI alone would hang or mix up data. The exchange is part of the asynchronous work, so it delays nothing.
`MINDTORCH_DISTRIBUTED_CHECK=0` turns it off.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

import numpy as np

from ._clock import Alignment
from ._errors import DistBackendError
from ._mpi import LOCK, mpi
from ._observed import begin
from ._peers import board
from ._work import Steps, Work

__all__ = ["WORLD", "Backend", "GroupMember", "ProcessGroup", "backend_name", "default_group", "group", "resolve"]


class Backend(str):
    """The name of a way to communicate, in lower case."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]  # noqa: RUF012
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        """The name, after a check of its type."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, but got {type(name).__name__}")
        return super().__new__(cls, name.lower())


_REFUSED = {
    "nccl": "NCCL moves data between CUDA devices, which this runtime does not have; use 'mpi' or 'gloo'",
    "hccl": "HCCL, for Ascend devices, is not bound yet; 'mpi' and 'gloo' take NPU tensors through the host's memory "
            "on "
            "the simulator",
    "ucc": "UCC is not bound; use 'mpi' or 'gloo'",
    "xccl": "XCCL moves data between XPU devices, which this runtime does not have; use 'mpi' or 'gloo'",
}


def backend_name(backend: str | None) -> Backend:
    """The backend for a program's request: 'mpi', or 'gloo', which is MPI here too."""
    names = (backend or "gloo").lower()
    if ":" in names:
        pairs = dict(pair.split(":", 1) for pair in names.split(","))
        names = pairs.get("cpu", next(iter(pairs.values())))
    if names in _REFUSED:
        raise RuntimeError(f"init_process_group: backend {backend!r} is not available: {_REFUSED[names]}")
    if names not in ("mpi", "gloo"):
        raise ValueError(f"Invalid backend: {backend!r}; this runtime has 'mpi', and 'gloo', which is MPI here as well")
    return Backend(names)


class ProcessGroup:
    """Ranks that communicate with each other."""

    def __init__(self, data: Any, ranks: list[int], backend: Backend, timeout: timedelta, name: str,
                 description: str) -> None:
        self._data, self._control = data, data.Dup()
        self.ranks = ranks
        self.backend = backend
        self.timeout = timeout
        self.group_name = name
        self.group_desc = description
        self._rank, self._size = data.Get_rank(), data.Get_size()
        self._begun = 0    # number of collectives that this rank has called
        self._started = 0  # collectives whose data are being sent: they start in the order of the calls
        self._unstarted: dict[int, Work] = {}
        self.expected: list[Any] = []  # messages that calls wait for, in the order of the calls
        self.checks = self._size > 1 and os.environ.get("MINDTORCH_DISTRIBUTED_CHECK", "1") != "0"
        self.bound_device_id = None

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name} of ranks {self.ranks} over MPI>"

    def rank(self) -> int:
        """This process's place in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks it has."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        return str(self.backend)

    def get_group_store(self) -> Any:
        """There is none."""
        raise NotImplementedError("process groups have no stores in this runtime: MPI brings the ranks together")

    # -- collectives ----------------------------------------------------------------------------------------------

    def collective(self, name: str, facts: str, start: Callable[[], Any], result: list[Any],
                   finish: Callable[[], None] | None = None, timeout: timedelta | None = None,
                   dtype: Any = None, elements: tuple[int, int] = (0, 0), is_observed: bool = True) -> Work:
        """Begin a collective: `start` returns MPI's request, `finish` is called when it is complete.

        A `start` of several rounds is a generator: it yields the requests of all but the last, which it returns.
        Collectives that were called later wait until this one has started. `facts` is what must be the same on all
        ranks; dtype and elements, sent and received, are for a profiler.
        """
        with LOCK:
            number = self._begun
            self._begun += 1
            board().begin()
            observed = begin(self, name, number, dtype, elements) if is_observed else None
            work = Work(name, self._steps(name, facts, number, start, finish), self.ranks, timeout or self.timeout,
                        result, observed)
            if self._started <= number:
                self._unstarted[number] = work
            return work

    def meet(self, name: str, facts: str) -> None:
        """Return when all ranks are here and agree, before calls of MPI that would wait forever."""
        if self.checks:
            self.collective(name, facts, self._data.Ibarrier, [], is_observed=False).finish()

    def _steps(self, name: str, facts: str, number: int, start: Callable[[], Any],
               finish: Callable[[], None] | None) -> Steps:
        try:
            if self.checks:
                # The largest of a number and of its negative: equal numbers are their own largest and smallest.
                mark = zlib.crc32(f"{name} {facts}".encode())
                marks = np.array([mark, -mark], np.int64)
                MPI = mpi()
                yield self._control.Iallreduce(MPI.IN_PLACE, marks, MPI.MAX)
            if self._started != number:
                yield lambda: self._is_turn_of(number)
            if self.checks and marks[0] != -marks[1]:
                yield from self.disagree(f"collective number {number}", f"{name}({facts})")
            request = start()
            if isinstance(request, Generator):
                request = yield from request
        finally:
            self._started = max(self._started, number + 1)
            self._unstarted.pop(number, None)
        yield request
        if finish is not None:
            finish()

    def _is_turn_of(self, number: int) -> bool:
        """Whether all collectives before this one have started. Waiting for it moves them on."""
        before = self._unstarted.get(self._started)
        if self._started < number and before is not None:
            before.poll()
        return self._started == number

    def disagree(self, on: str, call: str) -> Steps:
        """All ranks tell each other what they called, and raise an error that says which rank called what."""
        text = np.zeros(256, np.uint8)
        said = call.encode()[:256]
        text[:len(said)] = np.frombuffer(said, np.uint8)
        texts = np.empty((self._size, 256), np.uint8)
        yield self._data.Iallgather(text, texts)
        calls: dict[str, list[int]] = {}
        for rank, row in zip(self.ranks, texts):
            calls.setdefault(row.tobytes().rstrip(b"\0").decode(errors="replace"), []).append(rank)
        listed = "; ".join(f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}: {call}"
                           for call, ranks in calls.items())
        raise DistBackendError(f"the ranks of group {self.group_name} disagree on {on}: {listed}")

    def global_rank(self, group_rank: int) -> int:
        """The rank in the world of a place in this group."""
        return self.ranks[group_rank]

    def group_rank(self, global_rank: int, what: str) -> int:
        """The place in this group of a rank in the world."""
        try:
            return self.ranks.index(global_rank)
        except ValueError:
            raise ValueError(f"{what}: Global rank {global_rank} is not part of group {self}") from None

    def free(self) -> None:
        """Free the communicators."""
        with LOCK:
            if not board().broken:
                self._control.Free()
                self._data.Free()


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks, None before `init_process_group`."""
        return WORLD.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        WORLD.default = value


class group(metaclass=_WorldMeta):
    """`group.WORLD`: the group of all ranks."""


class GroupMember(metaclass=_WorldMeta):
    """The group of all ranks, and the value for a group that this process is not in."""

    NON_GROUP_MEMBER = -100


class _World:
    """The state that `init_process_group` makes and `destroy_process_group` ends."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.made = 0  # number of groups made so far, for names that are equal on all ranks
        self.alignment: Alignment | None = None  # of this rank's clock; stays when the group is gone
        self.described: dict[str, Any] = {}  # the description of the groups in traces when they ended


WORLD = _World()


def default_group() -> ProcessGroup:
    """The group of all ranks."""
    if WORLD.default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return WORLD.default


def resolve(group: Any) -> ProcessGroup | None:
    """The group that a call names; None if this process is not in it."""
    if group is None:
        return default_group()
    if group == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"group should be a ProcessGroup of torch.distributed.new_group, but got "
                        f"{type(group).__name__} {group!r}")
    if group not in WORLD.groups:
        raise ValueError(f"Invalid process group specified: {group!r} was destroyed")
    return group


def new_communicator(ranks: list[int], tag: int) -> Any:
    """A communicator of these ranks; all of them must call this."""
    MPI = mpi()
    with LOCK:
        world = default_group()._data
        return world.Create_group(world.Get_group().Incl(ranks), tag % MPI.COMM_WORLD.Get_attr(MPI.TAG_UB))
