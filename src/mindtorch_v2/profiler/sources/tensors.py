"""Which memory ops read and write, and whose it is: what an analysis of memory over time needs besides allocations.

Memory is known by its address, as in `memory`. A use is noted when an op starts; what
modules and optimizers hold is noted when they run, so that parameters, gradients and optimizer state are known for what
they are and need not be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from mtprof.schema import Role

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK, note_uses
from ..._tensor import Tensor
from ..options import Options
from .base import Source, Stretch

if TYPE_CHECKING:
    from ..recorder.running import Running

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


DEEPEST = 3  # lists inside lists that are looked into: no op takes deeper ones, and a list can contain itself


def arrays_in(value: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """The arrays of a tensor argument, with the identities of the tensors, which a bare array has not."""
    if type(value) is np.ndarray:
        yield value, 0
    elif isinstance(value, Tensor):
        yield value._a, id(value)
    elif isinstance(value, (list, tuple)) and depth < DEEPEST:
        for item in value:
            yield from arrays_in(item, depth + 1)


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


@dataclass(frozen=True)
class TensorsPart:
    """What one recorder sees."""

    uses: tuple[np.ndarray, ...]  # time, thread, position, address, bytes, tensor
    moves: list[tuple[int, int, int, int]]  # time, tensor, address, new address
    owners: tuple[np.ndarray, ...] | None  # time, address, bytes, role; None if nobody asked who owns what


class Tensors(Source):
    """Uses, moves and, where a memory timeline can be asked for, owners."""

    name = "tensors"
    tables = ("uses", "moves", "roles")
    cost = "a row of six numbers per tensor argument of an op"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.uses = new_use_log()
        self.moves = MoveLog()
        self.owners: Owners | None = None

    def wanted(self, options: Options) -> bool:
        """If memory and shapes are."""
        return options.tensors

    def start(self) -> None:
        """Begin to note."""
        HOOK["MOVED"] = self.moves.moved
        note_uses(self.uses)

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Ask modules and optimizers what they hold if anybody wants it."""
        if any(options.timeline for options in wishes):
            self.owners = self.owners or Owners()
        else:
            self.owners = None

    def stop(self) -> None:
        """Note nothing more."""
        HOOK["MOVED"] = None
        note_uses(None)
        self.owners = None

    def mark(self) -> tuple[int, int, int]:
        """The lengths of the logs."""
        return len(self.uses), len(self.moves.moves), 0 if self.owners is None else len(self.owners)

    def take(self, mark: tuple[int, int, int], stretch: Stretch) -> TensorsPart:
        """What was noted since."""
        return TensorsPart(self.uses.since(mark[0]), self.moves.moves[mark[1]:],
                           None if self.owners is None else self.owners.since(mark[2]))
