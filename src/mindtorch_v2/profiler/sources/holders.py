"""Records what modules and optimizers hold when they are first seen: parameters, gradients and state by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mtprof.builder import TraceBuilder
from mtprof.schema import Role
from mtprof.trace import TensorInput

from ..._dispatch.observer import HOOK
from ..._dtype import FROM_NUMPY
from ..._tensor import Tensor
from ..locks import items_now
from ..options import Options
from .base import Source, Stretch
from .modules import ModuleName
from .tensors import block_of

if TYPE_CHECKING:
    from ..recorder.running import Running

clock = HOOK["clock"]


@dataclass
class Holder:
    """A module or an optimizer. It is kept; otherwise another could get its identity."""

    time_ns: int
    holder: Any
    is_module: bool
    held: list[tuple[int, Role, str, TensorInput, int, int]] = field(default_factory=list)

    def note(self, parameter: int, role: Role, name: str, value: Any) -> bool:
        """Record a tensor that it holds, with its parameter and role. False if it is not a tensor with memory."""
        block = block_of(value._a) if isinstance(value, Tensor) else None
        if block is None:
            return False
        given = TensorInput(tuple(value.shape), FROM_NUMPY[value._a.dtype].name, tuple(value.stride()))
        self.held.append((parameter, role, name, given, block[0], id(value)))
        return True


class Holders(Source):
    """Records what modules and optimizers hold, by their identities."""

    name = "holders"
    tables = ("holders", "held", "optimizer_steps")
    cost = "a row per tensor that a module or optimizer holds, once, and one per step of an optimizer"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.holders: dict[int, Holder] = {}
        self.steps: list[tuple[int, int]] = []  # time, identity of the optimizer

    def wanted(self, options: Options) -> bool:
        """If stacks are requested."""
        return options.stacks

    def start(self) -> None:
        """Begin to see steps; `Running` reports modules."""
        if self.all is not None:
            HOOK["STEPPED"] = self.all.stepped

    def stop(self) -> None:
        """See nothing more."""
        HOOK["STEPPED"] = None
        self.holders, self.steps = {}, []

    def mark(self) -> None:
        """The mark of a recording: it includes what was held before it began."""

    def take(self, mark: None, stretch: Stretch) -> HoldersPart:
        """What was recorded so far, with modules by their labels."""
        names: dict[int, ModuleName] = stretch.taken.get("modules", {})
        holders = {identity: (holder.time_ns, names[identity].label if holder.is_module else None, holder.held)
                   for identity, holder in items_now(self.holders)
                   if not holder.is_module or identity in names}
        return HoldersPart(holders, [step for step in list(self.steps) if step[1] in holders])

    def module(self, module: Any) -> None:
        """Record a module that is called for the first time."""
        holder = Holder(clock(), module, True)
        for number, (name, parameter) in enumerate(module.named_parameters(recurse=False)):
            if holder.note(number, Role.PARAMETER, name, parameter):
                holder.note(number, Role.GRADIENT, "", parameter.grad)
        self.holders[id(module)] = holder

    def stepped(self, optimizer: Any) -> None:
        """Record a step, and after the first one what the optimizer works on."""
        self.steps.append((clock(), id(optimizer)))
        if id(optimizer) in self.holders:
            return
        holder = self.holders[id(optimizer)] = Holder(clock(), optimizer, False)
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for number, parameter in enumerate(parameters):
            if holder.note(number, Role.PARAMETER, "", parameter):
                holder.note(number, Role.GRADIENT, "", parameter.grad)
                for name, value in optimizer.state.get(parameter, {}).items():
                    holder.note(number, Role.OPTIMIZER_STATE, str(name), value)


@dataclass(frozen=True)
class HoldersPart:
    """The recorded facts, without the holders themselves."""

    holders: dict[int, tuple[int, str | None, list[tuple[int, Role, str, TensorInput, int, int]]]]
    steps: list[tuple[int, int]]

    def add_to(self, build: TraceBuilder) -> None:
        """Add them to a trace."""
        for table in ("holders", "held", "optimizer_steps"):
            build.add_columns(table, {})
        rows: dict[int, int] = {}
        for identity, (time_ns, label, held) in self.holders.items():
            rows[identity] = len(rows)
            build.add_row("holders", time_ns=time_ns, label=-1 if label is None else build.name(label),
                          optimizer=identity if label is None else 0)
            for parameter, role, name, given, address, tensor in held:
                build.add_row("held", holder=rows[identity], parameter=parameter, role=role, name=build.name(name),
                              description=build.input((given,)), address=address, tensor=tensor)
        for time_ns, identity in self.steps:
            build.add_row("optimizer_steps", time_ns=time_ns, holder=rows[identity])
