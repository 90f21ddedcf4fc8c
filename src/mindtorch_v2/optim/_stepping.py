"""The loop that optimizers share: which parameters have gradients, what state they need, which way to update them.

PyTorch updates parameters one by one on the CPU unless told otherwise; `foreach=True` treats them as lists, and
`fused=True` does a whole step in one op. A subclass gives the update in these ways.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any, ClassVar

from .._autograd.grad_mode import set_grad_enabled
from .._construct import tensor
from .._dispatch.namespace import aten
from .._tensor import Tensor
from . import optimizer as base
from .optimizer import Optimizer, _device_dtype_check_for_fused, foreach_types, run_closure
from .optimizer import _get_scalar_dtype as scalar_dtype
from .optimizer import _get_value as number  # noqa: F401  (optimizers take it from here)

CAPTURABLE_DEVICES = "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']"

# What each of PyTorch's modules has of the base's, so that libraries take it from any of them.
_SHARED = """
    Optimizer ParamsT _default_to_fused_or_foreach _device_dtype_check_for_fused _disable_dynamo_if_unsupported
    _get_capturable_supported_devices _get_scalar_dtype _get_value _stack_if_compiling _to_scalar
    _use_grad_for_differentiable _view_as_real
"""
SHARED = frozenset(_SHARED.split())


def functional_forms(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: its optimizer's step as functions, `adam` and `_single_tensor_adam`."""
    last = module.rpartition(".")[2]

    def __getattr__(name: str) -> Any:
        if name.rpartition("_")[2] == last.lstrip("_"):  # others are no forms: nothing is loaded to look for them
            functional = importlib.import_module(f"{__package__}._functional")
            with contextlib.suppress(KeyError):
                return functional.form_of(name)
        if name in SHARED:
            return getattr(base, name)
        raise AttributeError(f"module 'torch.optim.{last}' has no attribute '{name}'")

    return __getattr__


def sparse_like(grad: Tensor, values: Tensor) -> Tensor:
    """Other values at the places of a coalesced gradient."""
    return aten.sparse_coo_tensor(aten._indices(grad), values, grad.shape)


class ParameterOptimizer(Optimizer):
    """An optimizer whose update treats every parameter by itself."""

    # Options that state dicts of older versions lack, with the value they imply.
    late_options: ClassVar[dict[str, Any]] = {
        "maximize": False, "foreach": None, "differentiable": False,
    }
    # Complex parameters are updated as pairs of real numbers unless the update is linear.
    complex_as_real = True
    sparse_message = "{name} does not support sparse gradients"

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Put a parameter's initial state into `state`."""
        raise NotImplementedError

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        raise NotImplementedError

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        """One step of several parameters of one dtype, with `_foreach_*` ops."""
        raise NotImplementedError

    def update_fused(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        """One step of several parameters in one op."""
        raise NotImplementedError

    def takes_sparse(self, group: dict[str, Any]) -> bool:
        """Whether gradients may be sparse."""
        return False

    def has_state(self, group: dict[str, Any]) -> bool:
        """Whether parameters of this group keep state between steps."""
        return True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; returns what `closure`, if given, returns."""
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            loss = run_closure(closure)
            for group in self.param_groups:
                self.step_group(group)
        return loss

    def step_group(self, group: dict[str, Any]) -> None:
        """One step of one group."""
        parameters = [p for p in group["params"] if p.grad is not None]
        if not parameters:
            return
        stateful = self.has_state(group)
        for parameter in parameters:
            if parameter.grad.is_sparse and not self.takes_sparse(group):
                raise RuntimeError(self.sparse_message.format(name=type(self).__name__))
            if stateful and not self.state[parameter]:
                self.start(self.state[parameter], parameter, parameter.grad, group)
        self.step_lists(parameters, [p.grad for p in parameters],
                        [self.state[p] if stateful else {} for p in parameters], group)

    def step_lists(self, parameters: list[Tensor], grads: list[Any], states: list[dict[str, Any]],
                   group: dict[str, Any]) -> None:
        """One step of these parameters with these gradients and states."""
        if group.get("capturable"):
            check_capturable(parameters)
        if group.get("fused"):
            for parameter in parameters:
                _device_dtype_check_for_fused(parameter)
        if not (self.as_lists(group, parameters, grads) or group.get("fused")):
            for parameter, grad, state in zip(parameters, grads, states, strict=True):
                self.update(*self.as_real(parameter, grad, state), group)
            return
        if group["differentiable"]:
            raise AssertionError("_foreach ops don't support autograd")
        by_dtype: dict[Any, list[Any]] = {}
        for parameter, grad, state in zip(parameters, grads, states, strict=True):
            triple = self.as_real(parameter, grad, state)
            by_dtype.setdefault((triple[0].device, triple[0].dtype), []).append(triple)
        update = self.update_fused if group.get("fused") else self.update_lists
        for triples in by_dtype.values():
            update(*(list(column) for column in zip(*triples, strict=True)), group)  # type: ignore[arg-type,call-arg]

    def as_lists(self, group: dict[str, Any], parameters: list[Tensor], grads: list[Any]) -> bool:
        """Whether parameters are treated as lists: as asked, or, if nothing was, where they are on an accelerator."""
        asked = group.get("foreach")
        if asked is not None or group.get("fused") is not None or group.get("differentiable"):
            return bool(asked)
        if type(self).update_lists is ParameterOptimizer.update_lists or isinstance(group.get("lr"), Tensor):
            return False
        return not any(p.is_cpu or p.is_meta or type(p) not in foreach_types() or grad.is_sparse
                       for p, grad in zip(parameters, grads))

    def as_real(self, parameter: Tensor, grad: Tensor, state: dict[str, Any]) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """A complex parameter with its gradient and state as real views; others as they are."""
        if not (self.complex_as_real and parameter.dtype.is_complex):
            return parameter, grad, state
        views = {key: aten.view_as_real(value) if isinstance(value, Tensor) and value.dtype.is_complex else value
                 for key, value in state.items()}
        return aten.view_as_real(parameter), aten.view_as_real(grad), views

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for option, value in self.late_options.items():
                group.setdefault(option, value)
        for values in self.state.values():
            if isinstance(values, dict) and "step" in values and not isinstance(values["step"], Tensor):
                values["step"] = tensor(float(values["step"]), dtype=scalar_dtype())


def check_capturable(parameters: list[Tensor]) -> None:
    """`capturable` is for graphs on accelerators."""
    if any(p.is_cpu for p in parameters):
        raise AssertionError(
            f"If capturable=True, params and state_steps must be on supported devices: {CAPTURABLE_DEVICES}."
        )


def check_fused(optimizer: Optimizer) -> None:
    """What `fused=True` rules out. Such a step divides by the scale of the losses itself."""
    optimizer._step_supports_amp_scaling = True  # type: ignore[attr-defined]
    if optimizer.defaults["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if optimizer.defaults["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def kept(value: Tensor, group: dict[str, Any]) -> Tensor:
    """State for a formula that a differentiable step records: a copy, since the next step changes the state."""
    return aten.clone(value) if group["differentiable"] else value


def check_lr(lr: Any, *, foreach: Any = False, capturable: bool = True) -> None:
    """The learning rate is a number that is not negative, or a tensor of one element."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(label: str, value: Any) -> None:
    """Most other options are numbers that are not negative."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {label}: {value}")


def check_betas(betas: Any) -> None:
    """Decay rates are in [0, 1)."""
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def zero_step() -> Tensor:
    """A new step count."""
    return tensor(0.0, dtype=scalar_dtype())


def uncount_skipped(steps: list[Tensor], found_inf: Tensor | None) -> None:
    """Take a step back that was skipped because gradients were infinite. Counts may be on another device."""
    if found_inf is not None:
        aten._foreach_sub_(steps, [aten.to(found_inf, step.device) for step in steps])


def count_step(states: list[dict[str, Any]]) -> None:
    """Add one to the step counts of a list of parameters."""
    aten._foreach_add_([state["step"] for state in states], tensor(1.0), alpha=1.0)


def column(states: list[dict[str, Any]], key: str) -> list[Any]:
    """One entry of every parameter's state."""
    return [state[key] for state in states]


def decayed_lists(parameters: list[Tensor], grads: list[Tensor], weight_decay: float, fresh: bool) -> list[Tensor]:
    """Gradients with weight decay added; `fresh` ones belong to this step and may be changed."""
    if weight_decay == 0:
        return grads
    if fresh:
        aten._foreach_add_(grads, parameters, alpha=weight_decay)
        return grads
    return list(aten._foreach_add(grads, parameters, alpha=weight_decay))
