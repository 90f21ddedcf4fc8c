"""The tensors of modules and optimizers when these were first seen: parameters with their gradients and state."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..schema import Role
from ..trace import TensorInput, Trace


@dataclass(frozen=True)
class HeldTensor:
    """A tensor and where its memory is."""

    address: int
    given: TensorInput
    tensor: int  # its identity, as in the table of uses


@dataclass
class HeldParameter:
    """A parameter; optimizers do not name theirs."""

    name: str
    tensor: HeldTensor
    gradient: HeldTensor | None = None
    state: list[tuple[str, HeldTensor]] = field(default_factory=list)


@dataclass
class Holder:
    """A module or an optimizer, at a time of the host clock."""

    time_ns: int
    label: str  # empty for an optimizer
    optimizer: int  # its identity, 0 for a module
    parameters: dict[int, HeldParameter] = field(default_factory=dict)


class Holdings:
    """All holders of a trace."""

    def __init__(self, trace: Trace) -> None:
        holders, held, steps = (trace.optional(name) for name in ("holders", "held", "optimizer_steps"))
        self.holders = [
            Holder(time, trace.names[label] if label >= 0 else "", optimizer) for time, label, optimizer in zip(
                holders["time_ns"].tolist(), holders["label"].tolist(), holders["optimizer"].tolist())]
        self.modules = {holder.label: holder for holder in self.holders if holder.label}
        self.steps = list(zip(steps["time_ns"].tolist(), steps["holder"].tolist()))  # a time, and the optimizer
        for number, parameter, role, name, given, address, tensor in zip(*(held[key].tolist() for key in (
                "holder", "parameter", "role", "name", "description", "address", "tensor"))):
            parameters = self.holders[number].parameters
            value = HeldTensor(address, trace.inputs[given][0], tensor)
            if role == Role.PARAMETER:  # its gradient and state follow
                parameters[parameter] = HeldParameter(trace.names[name], value)
            elif role == Role.GRADIENT:
                parameters[parameter].gradient = value
            else:
                parameters[parameter].state.append((trace.names[name], value))
