"""Records which memory ops read and write, and its owner: what an analysis of memory over time needs besides
allocations.

Memory is known by its address, as in `memory`. A use is recorded when an op starts. What modules and optimizers hold is
recorded when they run, so that parameters, gradients and optimizer state need not be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from mtprof.schema import Role

from ..._backends.base import BY_ARRAY
from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK, note_uses
from ..._tensor import Tensor
from ..options import Options
from .base import Source, Stretch

if TYPE_CHECKING:
    from ..recorder.running import Running

clock = HOOK["clock"]
USE_FIELDS = 6  # time, thread, position of the argument and device, address, bytes, identity of the tensor
PLACES = max(Role) + 1
# A place is one number for the argument and its device: the position, above it the device type's number in profiles,
# and above that the device's index plus one. On the CPU it equals the position.
DEVICE_BIT, INDEX_BIT = 16, 32


def block_of(array: Any) -> tuple[int, int, int] | None:
    """The memory of an array: its address (0 if it is empty), its bytes, and its device in the bits of a place.

    None for an object without memory, or one that is not an array.
    """
    if type(array) is np.ndarray:
        while type(array.base) is np.ndarray:
            array = array.base
        return int(array.__array_interface__["data"][0]) if array.nbytes else 0, array.nbytes, 0
    where = BY_ARRAY.get(type(array))
    found = None if where is None else where.block(array)
    if where is None or found is None:
        return None
    address, size, index = found if array.size else (0, 0, found[2])
    return address, size, where.profiler_type << DEVICE_BIT | index + 1 << INDEX_BIT


def parted(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, device type and device index, from a column of places."""
    mask = (1 << DEVICE_BIT) - 1
    return place & mask, place >> DEVICE_BIT & mask, (place >> INDEX_BIT) - 1


DEEPEST = 3  # levels of nested lists: no op takes deeper ones, and a list can contain itself


def arrays_in(value: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """The arrays of a tensor argument, with the identities of the tensors; a bare array has none."""
    if isinstance(value, Tensor):
        yield value._a, id(value)
    elif isinstance(value, (list, tuple)) and depth < DEEPEST:
        for item in value:
            yield from arrays_in(item, depth + 1)
    else:
        yield value, 0


class UseLog:
    """Appends `(time, thread, place, address, bytes, tensor)` for every tensor argument of an op."""

    def __init__(self, block_of: Callable[[Any], tuple[int, int, int] | None]) -> None:
        self.rows: list[int] = []
        self.block_of = block_of

    def used(self, *values: Any) -> None:
        """Record the arguments of an op that is about to start."""
        time, thread = clock(), get_ident()
        for position, value in enumerate(values):
            for array, tensor in arrays_in(value):
                block = self.block_of(array)
                if block is not None:
                    address, size, where = block
                    self.rows.extend((time, thread, position | where, address, size, tensor))

    def __len__(self) -> int:
        return len(self.rows) // USE_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """The fields of the uses from this one on, as int64 arrays."""
        return tuple(np.array(self.rows[begin * USE_FIELDS:], np.int64).reshape(-1, USE_FIELDS).T)


def new_use_log() -> Any:
    """A log; the one in C asks for the blocks of arrays that are not NumPy's."""
    return (UseLog if NATIVE is None else NATIVE.UseLog)(block_of)


class MoveLog:
    """Records `(time, tensor, address, new address)` for tensors that move to other memory, as in `resize_` and
    `set_`."""

    def __init__(self) -> None:
        self.moves: list[tuple[int, int, int, int]] = []

    def moved(self, tensor: Tensor, array: Any) -> None:
        """Record that a tensor is about to replace its array by this one."""
        before, after = block_of(tensor._a), block_of(array)
        if before is not None and after is not None and before[0] != after[0]:
            self.moves.append((clock(), id(tensor), before[0], after[0]))


class Owners:
    """Records `(time, place, address, bytes)` for the tensors that modules and optimizers hold."""

    def __init__(self) -> None:
        self.log = new_use_log()  # a role takes the place of an argument's position

    def module(self, module: Any) -> None:
        """Record a module's own parameters and their gradients."""
        self._hold(list(module.parameters(recurse=False)), None)

    def stepped(self, optimizer: Any) -> None:
        """Record what an optimizer works on, at the end of its step."""
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
        time, _thread, place, address, size_bytes, _tensor = self.log.since(begin)
        return time, place, address, size_bytes


@dataclass(frozen=True)
class TensorsPart:
    """What one recorder sees."""

    uses: tuple[np.ndarray, ...]  # time, thread, place, address, bytes, tensor
    moves: list[tuple[int, int, int, int]]  # time, tensor, address, new address
    owners: tuple[np.ndarray, ...] | None  # time, place, address, bytes; None if owners were not requested


class Tensors(Source):
    """Uses, moves and, if a memory timeline can be requested, owners."""

    name = "tensors"
    tables = ("uses", "moves", "roles")
    cost = "a row of six numbers per tensor argument of an op"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.uses = new_use_log()
        self.moves = MoveLog()
        self.owners: Owners | None = None

    def wanted(self, options: Options) -> bool:
        """If memory and shapes are requested."""
        return options.tensors

    def start(self) -> None:
        """Begin to note."""
        HOOK["MOVED"] = self.moves.moved
        note_uses(self.uses)

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Ask modules and optimizers what they hold, if a recorder needs it."""
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
