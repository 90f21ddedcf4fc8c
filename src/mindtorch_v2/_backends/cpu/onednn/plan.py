"""A oneDNN primitive, prepared once and run on arrays.

If a primitive wants another layout than an array has, its plan reorders the array into and out of its own memory during
a call. Memory objects belong to a plan and take a lock, because the library's calls let other threads run.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import providers
from .layouts import DESTINATION, SOURCE
from .library import IN_ORDER, ExecutionArgument, Library, OneDnnError, library
from .memory import Array, address, aligned, plain

# The number of cached plans per family; a program with more shapes makes them again.
PLANS = 1024


class Role(NamedTuple):
    """An argument of a primitive: its number, the query for its layout, and whether the primitive writes it.

    Without a query (0) the argument has the array's layout. `which` distinguishes arguments of one query.
    """

    argument: int
    query: int = 0
    which: int = 0
    written: bool = False


class _Slot:
    """One argument of a plan with its memory objects."""

    def __init__(self, found: Library, descriptor: Any, role: Role, outer: Any, held: list[Any]) -> None:
        inner = found.query_descriptor(descriptor, role.query, role.which) if role.query else outer
        self.outer = found.create("dnnl_memory_create", outer, found.engine, None)
        held.append(("dnnl_memory_destroy", self.outer))
        self.inner = self.outer
        self.inner_bytes = 0
        self.reorder: Any = None
        if not found.equal_descriptors(outer, inner):
            self.inner = found.create("dnnl_memory_create", inner, found.engine, None)
            self.inner_bytes = found.descriptor_bytes(inner)
            ends = (inner, outer) if role.written else (outer, inner)
            reorder = found.describe("dnnl_reorder_primitive_desc_create", ends[0], found.engine, ends[1],
                                      found.engine, None)
            self.reorder = found.create("dnnl_primitive_create", reorder)
            held += [("dnnl_memory_destroy", self.inner), ("dnnl_primitive_destroy", self.reorder)]
            memories = (self.inner, self.outer) if role.written else (self.outer, self.inner)
            self.reorder_arguments = (ExecutionArgument * 2)(
                ExecutionArgument(SOURCE, memories[0]), ExecutionArgument(DESTINATION, memories[1]))
        self.written = role.written


class Plan:
    """A primitive with its arguments' shapes."""

    def __init__(self, found: Library, descriptor: Any, roles: Sequence[Role], arrays: Sequence[Any]) -> None:
        """The arrays are given by their descriptors, or contiguous arrays by their shapes."""
        self.held: list[Any] = []
        self.functions = found.functions
        self.call = found.call
        self.lock = threading.Lock()
        self.stream = found.create("dnnl_stream_create", found.engine, IN_ORDER)
        self.held.append(("dnnl_stream_destroy", self.stream))
        outers = [plain(found, a) if isinstance(a, tuple) else a for a in arrays]
        self.slots = [_Slot(found, descriptor, role, outer, self.held) for role, outer in zip(roles, outers)]
        self.primitive = found.create("dnnl_primitive_create", descriptor)
        self.held.append(("dnnl_primitive_destroy", self.primitive))
        self.arguments = (ExecutionArgument * len(self.slots))(
            *(ExecutionArgument(role.argument, slot.inner) for role, slot in zip(roles, self.slots)))

    def run(self, *arrays: Array) -> None:
        """Compute: the arrays in the order of the roles, as they were planned for."""
        place, execute = self.functions["dnnl_memory_set_data_handle"], self.functions["dnnl_primitive_execute"]
        stream = self.stream
        providers.onednn_calls["convolution"] += 1
        keep = []
        with self.lock:
            for slot, array in zip(self.slots, arrays):
                place(slot.outer, address(array))
                if slot.reorder is not None:
                    owner, start = aligned(slot.inner_bytes)
                    keep.append(owner)
                    place(slot.inner, start)
                    if not slot.written:
                        execute(slot.reorder, stream, 2, slot.reorder_arguments)
            status = execute(self.primitive, stream, len(self.arguments), self.arguments)
            for slot in self.slots:
                if slot.written and slot.reorder is not None:
                    execute(slot.reorder, stream, 2, slot.reorder_arguments)
        if status:
            self.call("dnnl_primitive_execute", self.primitive, stream, len(self.arguments), self.arguments)

    def __del__(self) -> None:
        for name, handle in self.held:
            self.functions[name](handle)


def planned(build: Callable[..., Plan]) -> Callable[..., Plan | None]:
    """Decorator: a function that describes a primitive by shapes makes each plan once.

    The result is None if there is no library, or if it has nothing for these shapes.
    """

    @functools.lru_cache(maxsize=PLANS)
    @functools.wraps(build)
    def cached(*key: Any) -> Plan | None:
        found = library()
        if found is None:
            return None
        with found.lock:
            try:
                return build(found, *key)
            except OneDnnError:
                return None
            finally:
                found.forget()

    return cached
