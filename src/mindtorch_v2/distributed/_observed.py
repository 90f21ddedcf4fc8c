"""How a profiler sees a collective: `c10d::…` where it is called, `record_param_comms` for as long as it takes."""

from __future__ import annotations

import itertools
import json
from functools import cache
from threading import get_ident
from typing import Any

from .._dispatch.observer import HOOK, event_id
from .._dispatch.state import THREAD
from ..profiler.recorder.collectives import NOTES, WAITS, Note, Wait
from ._mpi import LOCK

__all__ = ["Observed", "begin"]

# This runtime's names -> PyTorch's name of the op, and of the collective in its arguments.
_NAMES = {
    "all_reduce": ("c10d::allreduce_", "allreduce"),
    "all_reduce_coalesced": ("c10d::allreduce_coalesced_", "allreduce_coalesced"),
    "broadcast": ("c10d::broadcast_", "broadcast"), "reduce": ("c10d::reduce_", "reduce"),
    "gather": ("c10d::gather_", "gather"), "scatter": ("c10d::scatter_", "scatter"),
    "all_gather": ("c10d::allgather_", "all_gather"),
    "all_gather_coalesced": ("c10d::allgather_coalesced_", "allgather_coalesced"),
    "all_gather_into_tensor": ("c10d::_allgather_base_", "_allgather_base"),
    "reduce_scatter": ("c10d::reduce_scatter_", "reduce_scatter"),
    "reduce_scatter_tensor": ("c10d::_reduce_scatter_base_", "_reduce_scatter_base"),
    "all_to_all": ("c10d::alltoall_", "all_to_all"), "all_to_all_single": ("c10d::alltoall_base_", "all_to_allv"),
    "barrier": ("c10d::barrier", "barrier"), "send": ("c10d::send", "send"), "recv": ("c10d::recv_", "recv"),
}
_DTYPES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int8": "Char",
           "uint8": "Byte", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool",
           "complex64": "ComplexFloat", "complex128": "ComplexDouble", "uint16": "UInt16", "uint32": "UInt32",
           "uint64": "UInt64", "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2"}
_SERIALS = itertools.count(1)
_WAIT_SERIALS = itertools.count(1)


@cache
def _listed(ranks: tuple[int, ...]) -> str:
    return json.dumps(ranks)


class Observed:
    """A collective that began while a profiler watches."""

    __slots__ = ("dtype", "elements", "end_ns", "group", "ident", "is_async", "name", "number", "peers", "serial",
                 "start_ns")

    def __init__(self, group: Any, name: str, number: int, dtype: Any, elements: tuple[int, int],
                 peers: tuple[int, int]) -> None:
        self.group, self.name, self.number, self.dtype = group, name, number, dtype
        self.elements, self.peers = elements, peers
        self.ident = get_ident()
        self.is_async: bool | None = None
        self.end_ns = 0
        self.serial = 0
        self.start_ns = HOOK["clock"]()

    def called(self, is_async: bool) -> None:
        """The call returns, with a collective that has ended or will end."""
        with LOCK:
            self.is_async = is_async
            if self.end_ns:
                self._note()
        THREAD.state.extend((event_id(_NAMES[self.name][0], "op"), self.start_ns - 1, HOOK["clock"](), -1, None))

    def ended(self) -> None:
        """The data have arrived, or it failed. Before the call has returned, the thread of its event is unknown."""
        self.end_ns = HOOK["clock"]()
        if self.is_async is not None:
            self._note()

    def _note(self) -> None:
        self.serial = next(_SERIALS)
        group, dtype = self.group, "" if self.dtype is None else str(self.dtype).rpartition(".")[2]
        source, target = self.peers
        NOTES.append(Note(self.start_ns, self.end_ns, self.ident, bool(self.is_async), _NAMES[self.name][1],
                          _DTYPES.get(dtype, dtype), *self.elements, group.group_name, group.group_desc, group.size(),
                          _listed(tuple(group.ranks)), group.global_rank(group.rank()), source, target, self.number,
                          self.serial))

    def waited(self, start_ns: int) -> None:
        """This thread has waited for it since then; the wait has ended."""
        if self.is_async:
            WAITS.append(Wait(start_ns, HOOK["clock"](), get_ident(), self.serial, next(_WAIT_SERIALS)))


def begin(group: Any, name: str, number: int, dtype: Any, elements: tuple[int, int],
          peers: tuple[int, int] = (-1, -1)) -> Observed | None:
    """The observer of this collective, None if no profiler is on."""
    return Observed(group, name, number, dtype, elements, peers) if HOOK["OBSERVING"] else None
