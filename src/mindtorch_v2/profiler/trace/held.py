"""What modules and optimizers held when they were first seen in a recording: parameters, gradients, state."""

from __future__ import annotations

from dataclasses import dataclass, field

from .trace import TensorInput


@dataclass(frozen=True)
class HeldTensor:
    """A tensor and where its memory is."""

    address: int
    given: TensorInput
    tensor: int = 0  # its identity, as in the table of uses


@dataclass(frozen=True)
class HeldByModule:
    """Its own parameters with their names and gradients, as of a time by the host clock."""

    time_ns: int
    parameters: tuple[tuple[str, HeldTensor, HeldTensor | None], ...]


@dataclass(frozen=True)
class HeldByOptimizer:
    """Parameters with their gradients and state, as of the end of a step."""

    time_ns: int
    parameters: tuple[tuple[HeldTensor, HeldTensor | None, tuple[tuple[str, HeldTensor], ...]], ...]


@dataclass(frozen=True)
class Holdings:
    """All of it."""

    modules: dict[str, HeldByModule] = field(default_factory=dict)  # by label, `Linear_0`
    optimizers: dict[int, HeldByOptimizer] = field(default_factory=dict)  # by identity
    steps: tuple[tuple[int, int], ...] = ()  # a time within each step, and the identity of its optimizer
