"""What modules and optimizers hold when they are first seen: parameters, gradients and state by name."""

from __future__ import annotations

from typing import Any

from ..._dispatch.observer import HOOK
from ..._dtype import FROM_NUMPY
from ..._tensor import Tensor
from ..trace.held import HeldByModule, HeldByOptimizer, HeldTensor, Holdings
from ..trace.trace import TensorInput
from .module_calls import ModuleName
from .tensor_uses import address_of, owner

clock = HOOK["clock"]


class HeldLog:
    """By the identities of modules and optimizers. Optimizers are kept, or another could get their identity."""

    def __init__(self) -> None:
        self.modules: dict[int, HeldByModule] = {}
        self.optimizers: dict[int, HeldByOptimizer] = {}
        self.kept: list[Any] = []
        self.steps: list[tuple[int, int]] = []

    def module(self, module: Any) -> None:
        """Note a module that is called for the first time."""
        self.modules[id(module)] = HeldByModule(clock(), tuple(
            (name, held, _held(parameter.grad)) for name, parameter in module.named_parameters(recurse=False)
            if (held := _held(parameter)) is not None))

    def stepped(self, optimizer: Any) -> None:
        """Note a step, and after the first one what the optimizer works on."""
        self.steps.append((clock(), id(optimizer)))
        if id(optimizer) not in self.optimizers:
            self.kept.append(optimizer)
            self.optimizers[id(optimizer)] = HeldByOptimizer(clock(), tuple(
                (held, _held(parameter.grad), tuple(
                    (str(name), kept) for name, value in optimizer.state.get(parameter, {}).items()
                    if (kept := _held(value)) is not None))
                for group in optimizer.param_groups for parameter in group["params"]
                if (held := _held(parameter)) is not None))

    def holdings(self, names: dict[int, ModuleName]) -> Holdings:
        """All of it, modules by their labels."""
        return Holdings({names[key].label: held for key, held in self.modules.items() if key in names},
                        dict(self.optimizers), tuple(self.steps))


def _held(value: Any) -> HeldTensor | None:
    owned = owner(value._a) if isinstance(value, Tensor) else None
    if owned is None:
        return None
    given = TensorInput(tuple(value.shape), FROM_NUMPY[value._a.dtype].name, tuple(value.stride()))
    return HeldTensor(address_of(owned), given, id(value))
