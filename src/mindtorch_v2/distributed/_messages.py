"""Messages from one rank to another."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from .._dtype import ALL_DTYPES, FLOAT8
from .._tensor import Tensor
from ._buffers import Buffer, check_tensor
from ._collectives import _root
from ._errors import DistBackendError
from ._groups import ProcessGroup, default_group, resolve
from ._mpi import LOCK, mpi
from ._observed import begin
from ._reduction import movement
from ._work import Steps, Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "monitored_barrier", "recv", "send"]


_DTYPES = (*ALL_DTYPES, *FLOAT8)
_NUMBERS = {dtype: number for number, dtype in enumerate(_DTYPES)}


def _not_self(group: ProcessGroup, place: int, kind: str) -> None:
    if place == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


def _begin_send(tensor: Tensor, dst: int | None, group: Any, tag: int, group_dst: int | None) -> Work | None:
    check_tensor(tensor, "tensor", "send")
    members = resolve(group)
    if members is None:
        return None
    place = _root(members, dst, group_dst, "dst", "send")
    _not_self(members, place, "destination")
    buffer = Buffer(tensor)

    def steps() -> Steps:
        # The dtype is sent separately, so that the message stays unchanged, however large. Both begin at once: another
        # message to the same rank must not come in between.
        begun = [members._data.Isend(movement(buffer.array), place, tag)]
        if members.checks:
            begun.append(members._control.Isend([np.array([_NUMBERS[tensor.dtype]], np.uint8), mpi().BYTE], place, tag))
        yield from begun

    peer = members.global_rank(place)
    observed = begin(members, "send", -1, tensor.dtype, (tensor.numel(), 0), (default_group().rank(), peer))
    return Work("send", steps(), [peer], members.timeout, [tensor], observed)


class _Expected:
    """A message that a call waits for. If it could be for several calls, the first one gets it."""

    def __init__(self, members: ProcessGroup, place: int, tag: int) -> None:
        self.place, self.tag = place, tag
        self.message: Any = None
        self.told: Any = None                # the request for the number of its dtype
        self.number = np.empty(1, np.uint8)
        self.status = mpi().Status()
        self._members = members
        self._before = [one for one in members.expected if one._overlaps(self)]
        members.expected.append(self)

    def _overlaps(self, other: _Expected) -> bool:
        anyone = mpi().ANY_SOURCE
        return self.tag == other.tag and (self.place == other.place or anyone in (self.place, other.place))

    def has_come(self) -> bool:
        """Look for it, unless earlier calls still wait for theirs."""
        if self.message is None and all(one.has_come() for one in self._before):
            self._before = []
            self.message = self._members._data.Improbe(self.place, self.tag, self.status)
            if self.message is not None and self._members.checks:
                # Asked for at once: what is told of two messages comes in the order of the messages.
                self.told = self._members._control.Irecv([self.number, mpi().BYTE], self.status.Get_source(), self.tag)
        return self.message is not None

    def forget(self) -> None:
        """It has come, or nothing waits for it any more."""
        self._members.expected.remove(self)
        for one in self._members.expected:
            if self in one._before:
                one._before.remove(self)


def _begin_recv(tensor: Tensor, src: int | None, group: Any, tag: int, group_src: int | None) -> Work | None:
    check_tensor(tensor, "tensor", "recv")
    members = resolve(group)
    if members is None:
        return None
    MPI = mpi()
    anyone = src is None and group_src is None
    place = MPI.ANY_SOURCE if anyone else _root(members, src, group_src, "src", "recv")
    if not anyone:
        _not_self(members, place, "source")
    buffer = Buffer(tensor, read=False)

    def steps() -> Steps:
        # A message is inspected before it is received, so that a wrong size can be reported.
        expected = _Expected(members, place, tag)
        try:
            yield expected.has_come
        finally:
            expected.forget()
        message, told, status = expected.message, expected.told, expected.status
        if told is not None:
            yield told
        sender, size = members.global_rank(status.Get_source()), status.Get_count(MPI.BYTE)
        dtype = tensor.dtype if told is None else _DTYPES[expected.number[0]]
        if size != buffer.array.nbytes or dtype != tensor.dtype:
            taken = np.empty(size, np.uint8)
            yield message.Irecv([taken, MPI.BYTE])
            raise DistBackendError(f"recv: rank {sender} sent {size} bytes"
                                   f"{'' if told is None else f' of {dtype}'} (tag {tag}) to rank "
                                   f"{default_group().rank()}, but the tensor of shape {tuple(tensor.shape)} and "
                                   f"{tensor.dtype} there takes {buffer.array.nbytes} bytes of {tensor.dtype}")
        yield message.Irecv(movement(buffer.array))
        buffer.write_back()
        return sender

    ranks = members.ranks if anyone else [members.global_rank(place)]
    observed = begin(members, "recv", -1, tensor.dtype, (0, tensor.numel()),
                     (-1 if anyone else ranks[0], default_group().rank()))
    return Work("recv", steps(), ranks, members.timeout, [tensor], observed)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Send a tensor; returns when it may be changed."""
    work = _begin_send(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.finish()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive into a tensor, from any rank if none is named; returns the sender's rank."""
    work = _begin_recv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.finish()
    return work.source_rank()


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """Begin to send a tensor, which must not change until the work is done."""
    work = _begin_send(tensor, dst, group, tag, group_dst)
    return None if work is None else work.detach()


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:
    """Begin to receive into a tensor."""
    work = _begin_recv(tensor, src, group, tag, group_src)
    return None if work is None else work.detach()


class P2POp:
    """A message that `batch_isend_irecv` begins: `isend` or `irecv`, a tensor and the other rank."""

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Any = None,
                 tag: int = 0, group_peer: int | None = None) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                             "``torch.distributed.irecv``.")
        self.op = op
        self.tensor = check_tensor(tensor, "tensor", "P2POp")
        self.group = resolve(group)
        if self.group is None:
            raise ValueError("P2POp: this process is not in the group")
        self.group_peer = _root(self.group, peer, group_peer, "peer", "P2POp")
        self.peer = self.group.global_rank(self.group_peer)
        self.tag = tag

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} with peer {self.peer}, tag {self.tag})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages; returns a work for each."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type "
                         "``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("Invalid ``p2p_op_list``: it is empty")
    if any(one.group is not p2p_op_list[0].group for one in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for one in p2p_op_list:
        where = {"group_dst" if one.op is isend else "group_src": one.group_peer}
        works.append(one.op(one.tensor, group=one.group, tag=one.tag, **where))
    return works


def _barrier_tag() -> int:
    """The largest tag that MPI allows. Messages send their dtype under the program's tags."""
    MPI = mpi()
    return int(MPI.COMM_WORLD.Get_attr(MPI.TAG_UB))


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """A barrier in which rank 0 names the ranks that did not come in time: the first, or all of them."""
    members = resolve(group)
    if members is None:
        return
    MPI, control, tag = mpi(), members._control, _barrier_tag()
    limit = timeout or members.timeout
    milliseconds = round(limit.total_seconds() * 1000)

    def meet(place: int, begin: Callable[..., Any], left: float) -> bool:
        message = [None if begin == control.Isend else bytearray(0), 0, MPI.BYTE]

        def steps() -> Steps:
            yield begin(message, place, tag)

        work = Work("monitored_barrier", steps(), [members.global_rank(place)], timedelta(seconds=max(left, 0.001)), [])
        try:
            return work.wait()
        except DistBackendError:
            return False

    if members.rank() != 0:
        with LOCK:
            sent = control.Isend([None, 0, MPI.BYTE], 0, tag)
        # Rank 0 may wait for others as long as this rank would wait for it.
        if not (meet(0, control.Irecv, 2 * limit.total_seconds())
                and sent.Test()):
            raise DistBackendError(f"Rank {members.global_rank(members.rank())} successfully reached monitoredBarrier, "
                                   f"but received errors while waiting for send/recv from rank "
                                   f"{members.global_rank(0)}. Please check rank 0 logs for faulty rank.")
        return
    end = time.monotonic() + limit.total_seconds()
    missing = []
    for place in range(1, members.size()):
        if not meet(place, control.Irecv, end - time.monotonic()):
            missing.append(members.global_rank(place))
            if not wait_all_ranks:
                break
    if missing:
        ranks = ", ".join(map(str, missing))
        raise DistBackendError(f"[Rank {default_group().rank()}]: Rank{'s' if len(missing) > 1 else ''} {ranks} failed "
                               f"to pass monitoredBarrier in {milliseconds} ms")
    for place in range(1, members.size()):
        meet(place, control.Isend, limit.total_seconds())
