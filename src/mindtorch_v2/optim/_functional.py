"""`torch.optim._functional`: the steps of optimizers as functions of parameters, gradients and lists of state.

`adam(params, grads, exp_avgs, …, lr=…)` takes one step. The optimizer's own update runs: a form says which lists hold
which entry of the state, and in which order PyTorch takes the options.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .._tensor import Tensor
from ._stepping import ParameterOptimizer
from .sparse_adam import SparseAdam

SCALING = ("grad_scale", "found_inf")
# Options that are one number each here and a pair in an optimizer's group.
PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "eps": ("eps1", "eps2"),
         "step_sizes": ("step_size_min", "step_size_max")}


class Form(NamedTuple):
    """How one optimizer's step is called."""

    module: str
    optimizer: str
    lists: dict[str, str]  # the lists of state in their order -> the entry of the state
    positional: dict[str, Any]  # options that follow them, with their values if not given
    named: tuple[str, ...]  # options that must be given, by name
    grads: str = "grads"
    implied: tuple[str, ...] = ()  # options that are on without being asked for
    ways: tuple[str, ...] = ("single_tensor", "multi_tensor")


def _form(module: str, optimizer: str, lists: str, positional: str, named: str, **more: Any) -> Form:
    pairs = [entry.split("=") for entry in lists.split()]
    # Of what may be left out, only the ways that PyTorch chooses itself are None; all others are switched off.
    values = {name: None if name in ("foreach", "fused", *SCALING) else False for name in positional.split()}
    return Form(module, optimizer, dict(pairs), values, tuple(named.split()), **more)


_ADAM = ("exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq max_exp_avg_sqs=max_exp_avg_sq state_steps=step",
         "foreach capturable differentiable fused grad_scale found_inf has_complex",
         "amsgrad beta1 beta2 lr weight_decay eps maximize")
_FUSED = ("single_tensor", "multi_tensor", "fused")
FORMS = {
    "adam": _form("adam", "Adam", _ADAM[0], f"{_ADAM[1]} decoupled_weight_decay", _ADAM[2], ways=_FUSED),
    "adamw": _form("adamw", "AdamW", *_ADAM, implied=("decoupled_weight_decay",), ways=()),
    "sgd": _form("sgd", "SGD", "momentum_buffer_list=momentum_buffer",
                 "has_sparse_grad foreach fused grad_scale found_inf",
                 "weight_decay momentum lr dampening nesterov maximize", grads="d_p_list", ways=_FUSED),
    "adadelta": _form("adadelta", "Adadelta", "square_avgs=square_avg acc_deltas=acc_delta state_steps=step",
                      "capturable foreach differentiable has_complex", "lr rho eps weight_decay maximize"),
    "adagrad": _form("adagrad", "Adagrad", "state_sums=sum state_steps=step",
                     "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
                     "lr weight_decay lr_decay eps maximize", ways=_FUSED),
    "adamax": _form("adamax", "Adamax", "exp_avgs=exp_avg exp_infs=exp_inf state_steps=step",
                    "foreach maximize differentiable capturable has_complex", "eps beta1 beta2 lr weight_decay"),
    "asgd": _form("asgd", "ASGD", "axs=ax mus=mu etas=eta state_steps=step",
                  "foreach maximize differentiable capturable has_complex", "lambd lr t0 alpha weight_decay"),
    "nadam": _form("nadam", "NAdam", "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq mu_products=mu_product state_steps=step",
                   "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
                   "beta1 beta2 lr weight_decay momentum_decay eps"),
    "radam": _form("radam", "RAdam", "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq state_steps=step",
                   "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
                   "beta1 beta2 lr weight_decay eps"),
    "rmsprop": _form("rmsprop", "RMSprop", "square_avgs=square_avg grad_avgs=grad_avg "
                     "momentum_buffer_list=momentum_buffer state_steps=step",
                     "foreach maximize differentiable capturable has_complex",
                     "lr alpha eps weight_decay momentum centered"),
    "rprop": _form("rprop", "Rprop", "prevs=prev step_sizes=step_size state_steps=step",
                   "foreach capturable maximize differentiable has_complex",
                   "step_size_min step_size_max etaminus etaplus"),
    "adafactor": _form("_adafactor", "Adafactor",
                       "row_vars=row_var col_vars=col_var variances=variance state_steps=step",
                       "foreach grad_scale found_inf has_complex",
                       "d lr beta2_decay weight_decay eps1 eps2 maximize"),
}


def _signature(form: Form, way: str | None) -> inspect.Signature:
    """What the function takes: all of it, or, for one way of stepping, everything but the choice of the way."""
    both, only_named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    grads = form.grads if way is None else "grads"
    taken = [inspect.Parameter(name, both) for name in ("params", grads, *form.lists)]
    named = [inspect.Parameter(name, only_named) for name in form.named]
    if way is None:
        taken += [inspect.Parameter(name, both, default=value) for name, value in form.positional.items()]
    else:
        taken += [inspect.Parameter(name, both) for name in SCALING if name in form.positional]
        named += [inspect.Parameter(name, only_named) for name in form.positional
                  if name not in ("foreach", "fused", *SCALING)]
    return inspect.Signature([*taken, *named])


@functools.cache
def form_of(name: str) -> Callable[..., None]:
    """The function with a name of PyTorch's: `adam`, `_single_tensor_adam`, `_multi_tensor_adam`, `_fused_adam`."""
    way, key = next(((way, name[len(way) + 2:]) for way in _FUSED if name.startswith(f"_{way}_")), (None, name))
    form = FORMS[key]
    if way is not None and way not in form.ways:
        raise KeyError(name)
    made: type[ParameterOptimizer] = getattr(
        importlib.import_module(f"{__package__}.{'adam' if form.module == 'adamw' else form.module}"), form.optimizer)
    signature = _signature(form, way)

    def step(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        _step(made, form, way, bound.arguments)

    step.__name__ = step.__qualname__ = name
    step.__doc__ = f"One step of {form.optimizer} on these lists, in place."
    step.__module__ = f"{__package__}.{form.module}"
    step.__signature__ = signature  # type: ignore[attr-defined]
    return step


def _step(made: type[ParameterOptimizer], form: Form, way: str | None, given: dict[str, Any]) -> None:
    parameters, grads = given["params"], given[form.grads if way is None else "grads"]
    steps = given.get("state_steps", [])
    if not all(isinstance(count, Tensor) for count in steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    columns = {key: given[name] for name, key in form.lists.items()}
    states: list[dict[str, Any]] = [{key: held[i] for key, held in columns.items() if held and held[i] is not None}
                                    for i in range(len(parameters))]
    group = {"differentiable": False, "foreach": None, "fused": None, **dict.fromkeys(form.implied, True),
             **{name: given[name] for name in (*form.positional, *form.named) if name in given}}
    for pair, names in PAIRS.items():
        if names[0] in group:
            group[pair] = tuple(group[name] for name in names)
    if way is not None:
        group["foreach"], group["fused"] = way == "multi_tensor", way == "fused"
    optimizer: Any = object.__new__(made)
    for name in SCALING:
        setattr(optimizer, name, given.get(name))
    optimizer.step_lists(parameters, grads, states, group)
    for key, held in columns.items():  # a first step makes what was None
        if any(value is None for value in held):
            held[:] = [state.get(key) for state in states]


def sparse_adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
                state_steps: list[int], *, eps: float, beta1: float, beta2: float, lr: float, maximize: bool) -> None:
    """One step of SparseAdam on these lists, in place; the counts are those after the step."""
    group = {"eps": eps, "betas": (beta1, beta2), "lr": lr, "maximize": maximize}
    for parameter, grad, mean, square, count in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        SparseAdam.move(parameter, grad, {"step": count, "exp_avg": mean, "exp_avg_sq": square}, group)


def __getattr__(name: str) -> Any:
    if name in FORMS:
        return form_of(name)
    raise AttributeError(f"module 'torch.optim._functional' has no attribute '{name}'")
