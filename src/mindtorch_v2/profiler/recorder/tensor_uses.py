"""Which memory ops read and write, and whose it is: what an analysis of memory over time needs besides allocations.

Memory is known by the identity of the array that owns it, as in `memory`. A use is noted when an op starts; what
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
USE_FIELDS = 5  # time, thread, position of the argument, identity, bytes


def owner(array: Any) -> Any:
    """The array that owns this one's memory, as far as NumPy knows; None on other devices."""
    if type(array) is not np.ndarray:
        return None
    while type(array.base) is np.ndarray:
        array = array.base
    return array


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
    """Appends `(time, thread, position, identity, bytes)` for every tensor argument of an op."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def used(self, *values: Any) -> None:
        """Note the arguments of an op that is about to start."""
        time, thread = clock(), get_ident()
        for position, value in enumerate(values):
            for array in arrays_in(value):
                owned = owner(array)
                if owned is not None:
                    self.rows.extend((time, thread, position, id(owned), owned.nbytes))

    def __len__(self) -> int:
        return len(self.rows) // USE_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of the uses from this one on, as int64 arrays."""
        return tuple(np.array(self.rows[begin * USE_FIELDS:], np.int64).reshape(-1, USE_FIELDS).T)


new_use_log: Callable[[], Any] = UseLog if NATIVE is None else NATIVE.UseLog


class Owners:
    """Appends `(time, identity, bytes, role)` for the tensors that modules and optimizers hold."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def module(self, module: Any) -> None:
        """Note a module's own parameters and their gradients."""
        for parameter in module.parameters(recurse=False):
            self._parameter(parameter)

    def stepped(self, optimizer: Any) -> None:
        """Note what an optimizer works on, at the end of its step."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._parameter(parameter)
                for value in optimizer.state.get(parameter, {}).values():
                    self._add(value, Role.OPTIMIZER_STATE)

    def _parameter(self, parameter: Any) -> None:
        self._add(parameter, Role.PARAMETER)
        self._add(parameter.grad, Role.GRADIENT)

    def _add(self, value: Any, role: Role) -> None:
        for array in arrays_in(value):
            owned = owner(array)
            if owned is not None:
                self.rows.extend((clock(), id(owned), owned.nbytes, int(role)))

    def __len__(self) -> int:
        return len(self.rows) // 4

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of what was noted from this one on, as int64 arrays."""
        return tuple(np.array(self.rows[begin * 4:], np.int64).reshape(-1, 4).T)
