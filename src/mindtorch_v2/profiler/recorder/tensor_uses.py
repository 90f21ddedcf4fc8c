"""Which memory ops read and write, and whose it is: what an analysis of memory over time needs besides allocations.

Memory is known by its address, as in `memory`. A use is noted when an op starts; what
modules and optimizers hold is noted when they run, so that parameters, gradients and optimizer state are known for what
they are and need not be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import numpy as np

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK
from ..._tensor import Tensor
from ..trace.columns import Role

clock = HOOK["clock"]
USE_FIELDS = 6  # time, thread, position of the argument, address, bytes, identity of the tensor
PLACES = max(Role) + 1


def owner(array: Any) -> Any:
    """The array that owns this one's memory, as far as NumPy knows; None on other devices."""
    if type(array) is not np.ndarray:
        return None
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def address_of(array: np.ndarray) -> int:
    """Where an array's memory is; 0 if it has none."""
    return int(array.__array_interface__["data"][0]) if array.nbytes else 0


def arrays_in(value: Any) -> Iterator[tuple[Any, int]]:
    """The arrays of a tensor argument, with the identities of the tensors, which a bare array has not."""
    if type(value) is np.ndarray:
        yield value, 0
    elif isinstance(value, Tensor):
        yield value._a, id(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_in(item)


class UseLog:
    """Appends `(time, thread, position, address, bytes, tensor)` for every tensor argument of an op."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def used(self, *values: Any) -> None:
        """Note the arguments of an op that is about to start."""
        time, thread = clock(), get_ident()
        for position, value in enumerate(values):
            for array, tensor in arrays_in(value):
                owned = owner(array)
                if owned is not None:
                    self.rows.extend((time, thread, position, address_of(owned), owned.nbytes, tensor))

    def __len__(self) -> int:
        return len(self.rows) // USE_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of the uses from this one on, as int64 arrays."""
        return tuple(np.array(self.rows[begin * USE_FIELDS:], np.int64).reshape(-1, USE_FIELDS).T)


new_use_log: Callable[[], Any] = UseLog if NATIVE is None else NATIVE.UseLog


class MoveLog:
    """Notes `(time, tensor, address, new address)` for tensors that go to other memory, as `resize_` and `set_` do."""

    def __init__(self) -> None:
        self.moves: list[tuple[int, int, int, int]] = []

    def moved(self, tensor: Tensor, array: Any) -> None:
        """Note that a tensor is about to take this array in place of its own."""
        before, after = owner(tensor._a), owner(array)
        if before is not None and after is not None and before is not after:
            self.moves.append((clock(), id(tensor), address_of(before), address_of(after)))


class Owners:
    """Notes `(time, address, bytes, role)` for the tensors that modules and optimizers hold."""

    def __init__(self) -> None:
        self.log = new_use_log()  # a role stands in an argument's position

    def module(self, module: Any) -> None:
        """Note a module's own parameters and their gradients."""
        self._hold(list(module.parameters(recurse=False)), None)

    def stepped(self, optimizer: Any) -> None:
        """Note what an optimizer works on, at the end of its step."""
        state = optimizer.state
        for group in optimizer.param_groups:
            parameters = group["params"]
            self._hold(parameters, [list(state[p].values()) for p in parameters if p in state])

    def _hold(self, parameters: list[Any], state: list[Any] | None) -> None:
        values: list[Any] = [None] * PLACES
        values[Role.PARAMETER], values[Role.OPTIMIZER_STATE] = parameters, state
        values[Role.GRADIENT] = [p.grad for p in parameters]
        self.log.used(*values)

    def __len__(self) -> int:
        return len(self.log)

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of what was noted from this one on, as int64 arrays."""
        time, _thread, role, address, size_bytes, _tensor = self.log.since(begin)
        return time, address, size_bytes, role
