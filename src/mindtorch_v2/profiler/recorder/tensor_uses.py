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
USE_FIELDS = 5  # time, thread, position of the argument, address, bytes
PLACES = max(Role) + 1


def owner(array: Any) -> Any:
    """The array that owns this one's memory, as far as NumPy knows; None on other devices."""
    if type(array) is not np.ndarray:
        return None
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def address_of(array: np.ndarray) -> int:
    """Where an array's memory is."""
    return int(array.__array_interface__["data"][0])


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays of a tensor argument."""
    if type(value) is np.ndarray:
        yield value
    elif isinstance(value, Tensor):
        yield value._a
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_in(item)


class UseLog:
    """Appends `(time, thread, position, address, bytes)` for every tensor argument of an op."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def used(self, *values: Any) -> None:
        """Note the arguments of an op that is about to start."""
        time, thread = clock(), get_ident()
        for position, value in enumerate(values):
            for array in arrays_in(value):
                owned = owner(array)
                if owned is not None:
                    self.rows.extend((time, thread, position, address_of(owned), owned.nbytes))

    def __len__(self) -> int:
        return len(self.rows) // USE_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of the uses from this one on, as int64 arrays."""
        return tuple(np.array(self.rows[begin * USE_FIELDS:], np.int64).reshape(-1, USE_FIELDS).T)


new_use_log: Callable[[], Any] = UseLog if NATIVE is None else NATIVE.UseLog


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

    def moved(self, old: Any, new: Any) -> None:
        """Note that a tensor has other memory from now on."""
        values: list[Any] = [None] * PLACES
        values[Role.MOVED] = [old, new]
        self.log.used(*values)

    def _hold(self, parameters: list[Any], state: list[Any] | None) -> None:
        values: list[Any] = [None] * PLACES
        values[Role.PARAMETER], values[Role.OPTIMIZER_STATE] = parameters, state
        values[Role.GRADIENT] = [p.grad for p in parameters]
        self.log.used(*values)

    def __len__(self) -> int:
        return len(self.log)

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of what was noted from this one on, as int64 arrays."""
        time, _thread, role, identity, size_bytes = self.log.since(begin)
        return time, identity, size_bytes, role
