"""Optimizers: what they promise, without a comparison."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.observer import EVENTS, FIELDS, observe, unobserve
from mindtorch_v2._dispatch.state import THREAD
from mindtorch_v2.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)

# A learning rate with which each optimizer gets to the bottom of a quadratic.
RATES = {"SGD": 0.1, "Adam": 0.1, "AdamW": 0.1, "Adagrad": 1.0, "RMSprop": 0.02, "Adamax": 0.1, "NAdam": 0.1,
         "RAdam": 0.1, "Adadelta": 10.0, "Rprop": 0.1, "ASGD": 0.1}
TARGET = [1.0, -2.0, 0.5]


def parameter(*values: float) -> Any:
    return torch.tensor(list(values) or [4.0, 3.0, -3.0], requires_grad=True)


def loss_of(weight: Any) -> Any:
    difference = weight - torch.tensor(TARGET)
    return (difference * difference).sum()


def with_grad(*values: float) -> Any:
    weight = parameter(*values)
    weight.grad = torch.ones_like(weight).detach()
    return weight


@pytest.mark.parametrize("options", [{}, {"foreach": True}], ids=["each", "lists"])
@pytest.mark.parametrize("name", list(RATES))
def test_converges_on_a_quadratic(name: str, options: dict[str, Any]) -> None:
    weight = parameter()
    if name == "AdamW":
        options = {**options, "weight_decay": 0.0}
    optimizer = getattr(torch.optim, name)([weight], lr=RATES[name], **options)
    for _ in range(600):
        optimizer.zero_grad()
        loss_of(weight).backward()
        optimizer.step()
    assert weight.detach().tolist() == pytest.approx(TARGET, abs=0.03)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_converges(name: str) -> None:
    weight = parameter()
    optimizer = getattr(torch.optim, name)([weight], lr=RATES[name], fused=True)
    for _ in range(400):
        optimizer.zero_grad()
        loss_of(weight).backward()
        optimizer.step()
    assert weight.detach().tolist() == pytest.approx(TARGET, abs=0.03)


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize(("name", "options"), [("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}),
                                               ("Adagrad", {})])
def test_fused_treats_every_element_of_a_large_parameter(name: str, options: dict[str, Any], layout: str) -> None:
    values = torch.arange(40000.0).reshape(200, 200) / 10000 + 0.1
    values = values if layout == "rows" else values.t()
    found = []
    for fused in (True, False):
        weight = values.detach().clone().requires_grad_()
        optimizer = getattr(torch.optim, name)([weight], lr=0.1, fused=fused, **options)
        for _ in range(3):
            weight.grad = (values * 2 + 1).detach()
            optimizer.step()
        found.append(weight.detach())
    assert (found[0] - found[1]).abs().max().item() < 1e-5
    assert (found[0] - values).abs().min().item() > 1e-4


def test_maximize_climbs() -> None:
    weight = parameter()
    optimizer = torch.optim.SGD([weight], lr=0.1, maximize=True)
    before = loss_of(weight).item()
    loss_of(weight).backward()
    optimizer.step()
    assert loss_of(weight).item() > before


def test_step_changes_the_parameter_itself() -> None:
    weight = with_grad(1.0, 2.0)
    version = weight._version
    torch.optim.SGD([weight], lr=0.5).step()
    assert weight.detach().tolist() == [0.5, 1.5]
    assert weight.is_leaf
    assert weight.requires_grad
    assert weight._version == version + 1


def test_step_records_nothing_but_the_closure_does() -> None:
    weight = parameter(1.0)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    modes = []

    def closure() -> Any:
        modes.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert modes == [True]
    assert loss.item() == 1.0
    assert weight.detach().tolist() == [0.0]
    assert torch.is_grad_enabled()


# -- gradients -----------------------------------------------------------------------------------------------------


def test_zero_grad_forgets_or_fills() -> None:
    weight = with_grad(1.0, 2.0)
    optimizer = torch.optim.SGD([weight])
    grad = weight.grad
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is grad
    assert grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_zero_grad_detaches_a_recorded_gradient() -> None:
    weight = parameter(1.0, 2.0)
    weight.grad = parameter(1.0, 1.0) * 2
    torch.optim.SGD([weight]).zero_grad(set_to_none=False)
    assert not weight.grad.requires_grad
    assert weight.grad.grad_fn is None
    assert weight.grad.tolist() == [0.0, 0.0]


def test_parameter_without_gradient_is_left_alone() -> None:
    moved, still = with_grad(1.0), parameter(1.0)
    optimizer = torch.optim.Adam([moved, still])
    optimizer.step()
    assert still.detach().tolist() == [1.0]
    assert list(optimizer.state) == [moved]


# -- groups --------------------------------------------------------------------------------------------------------


def test_groups_have_their_own_options() -> None:
    fast, slow = with_grad(1.0), with_grad(1.0)
    optimizer = torch.optim.SGD([{"params": [fast], "lr": 0.5}, {"params": slow}], lr=0.1)
    optimizer.step()
    assert fast.item() == pytest.approx(0.5)
    assert slow.item() == pytest.approx(0.9)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]


def test_group_added_later_takes_part() -> None:
    first, later = with_grad(1.0), with_grad(1.0)
    optimizer = torch.optim.Adagrad([first], lr=0.1)
    optimizer.add_param_group({"params": later, "lr": 0.2})
    optimizer.step()
    assert first.item() == pytest.approx(0.9)
    assert later.item() == pytest.approx(0.8)


def test_generator_of_parameters() -> None:
    weights = [with_grad(1.0), with_grad(2.0)]
    optimizer = torch.optim.SGD((w for w in weights), lr=1.0)
    assert [id(w) for w in optimizer.param_groups[0]["params"]] == [id(w) for w in weights]
    optimizer.step()
    assert [w.item() for w in weights] == [0.0, 1.0]


def test_duplicate_parameter_warns() -> None:
    weight = parameter(1.0)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([weight, weight])


def test_required_option() -> None:
    class Needy(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": required})

    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Needy([parameter(1.0)])
    assert Needy([{"params": [parameter(1.0)], "lr": 1}]).param_groups[0]["lr"] == 1


@pytest.mark.parametrize(("make", "kind", "text"), [
    (lambda: torch.optim.SGD([]), ValueError, "empty parameter list"),
    (lambda: torch.optim.SGD(parameter(1.0)), TypeError, "iterable of Tensors or dicts"),
    (lambda: torch.optim.SGD(["a"]), TypeError, "can only optimize Tensors"),
    (lambda: torch.optim.SGD([parameter(1.0) * 2]), ValueError, "non-leaf"),
    (lambda: torch.optim.SGD([parameter(1.0)], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda: torch.optim.Adam([parameter(1.0)], betas=(1.0, 0.5)), ValueError, "beta parameter at index 0: 1.0"),
    (lambda: torch.optim.SGD([parameter(1.0)]).load_state_dict({"state": {}, "param_groups": []}), ValueError,
     "different number of parameter groups"),
])
def test_errors(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


# -- state ---------------------------------------------------------------------------------------------------------


def trained(name: str, steps: int) -> tuple[Any, Any]:
    weight = parameter()
    optimizer = getattr(torch.optim, name)([weight], lr=RATES[name])
    train(weight, optimizer, steps)
    return weight, optimizer


def train(weight: Any, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(weight).backward()
        optimizer.step()


@pytest.mark.parametrize("name", list(RATES))
def test_state_dict_round_trip(name: str) -> None:
    weight, optimizer = trained(name, 4)
    copied = weight.detach().clone().requires_grad_()
    other = getattr(torch.optim, name)([copied], lr=123.0)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(weight, optimizer, 4)
    train(copied, other, 4)
    assert copied.tolist() == weight.tolist()
    assert other.param_groups[0]["lr"] == RATES[name]


def test_state_dict_numbers_parameters() -> None:
    weights = [with_grad(1.0), with_grad(2.0), with_grad(3.0)]
    optimizer = torch.optim.SGD([{"params": weights[:2]}, {"params": weights[2:]}], momentum=0.9)
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1], [2]]
    assert list(saved["state"]) == [0, 1, 2]
    assert saved["state"][1]["momentum_buffer"] is optimizer.state[weights[1]]["momentum_buffer"]


@pytest.mark.parametrize("name", list(RATES))
def test_pickle_and_deepcopy(name: str) -> None:
    weight, optimizer = trained(name, 3)
    for made in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        twin = made.param_groups[0]["params"][0]
        assert twin is not weight
        assert [id(key) for key in made.state] == [id(twin)] * len(optimizer.state)
        assert repr(made) == repr(optimizer)
        train(twin, made, 2)
    train(weight, optimizer, 2)
    assert twin.tolist() == weight.tolist()


def test_old_checkpoint_with_a_number_as_step() -> None:
    weight, optimizer = trained("Adam", 2)
    saved = optimizer.state_dict()
    saved["state"][0] = {**saved["state"][0], "step": 2}
    for option in ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"):
        del saved["param_groups"][0][option]
    optimizer.load_state_dict(saved)
    assert optimizer.state[weight]["step"].dtype is torch.float32
    train(weight, optimizer, 1)
    assert optimizer.state[weight]["step"].item() == 3


# -- hooks ---------------------------------------------------------------------------------------------------------


def test_step_hooks_and_their_order() -> None:
    weight = with_grad(1.0)
    optimizer = torch.optim.SGD([weight])
    calls: list[str] = []
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: calls.append("global before")),
        register_optimizer_step_post_hook(lambda o, a, k: calls.append("global after")),
    ]
    optimizer.register_step_pre_hook(lambda o, a, k: calls.append("before"))
    mine = optimizer.register_step_post_hook(lambda o, a, k: calls.append("after"))
    optimizer.step()
    assert calls == ["global before", "before", "after", "global after"]
    for handle in [*handles, mine]:
        handle.remove()
    calls.clear()
    optimizer.step()
    assert calls == ["before"]


def test_pre_hook_can_replace_arguments() -> None:
    optimizer = torch.optim.SGD([parameter(1.0)])
    handle = optimizer.register_step_pre_hook(lambda o, a, k: ((o, lambda: 7), {}))
    assert optimizer.step() == 7
    handle.remove()
    optimizer.register_step_pre_hook(lambda o, a, k: 5)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_state_dict_hooks() -> None:
    optimizer = torch.optim.SGD([parameter(1.0)])
    calls: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, saved: {**saved, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, saved: calls.append(f"load {saved['extra']}"))
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert calls == ["save", "load 1", "loaded"]


def test_own_optimizer() -> None:
    class Plain(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for weight in group["params"]:
                    weight -= group["lr"] * weight.grad

    weight = with_grad(1.0)
    optimizer = Plain([weight], 0.5)
    calls = []
    optimizer.register_step_post_hook(lambda o, a, k: calls.append(o))
    optimizer.step()
    assert weight.item() == 0.5
    assert calls == [optimizer]


# -- profiler ------------------------------------------------------------------------------------------------------


def recorded(run: Any) -> list[str]:
    """Names of what a piece of code reports, in the order it began."""
    log: list[Any] = []
    before = THREAD.state.events
    observe(lambda state: state.record_into(log))
    try:
        run()
    finally:
        unobserve()
        THREAD.state.record_into(before)
    events = [log[i:i + FIELDS] for i in range(0, len(log), FIELDS)]
    return [EVENTS[event[0]][0] for event in sorted(events, key=lambda event: (event[1], -event[2]))
            if EVENTS[event[0]][1] != "first_use"]


def steady(name: str, **options: Any) -> list[str]:
    """What the second step reports, without conversions of Python numbers."""
    weight = with_grad(1.0, 2.0)
    optimizer = getattr(torch.optim, name)([weight], lr=0.1, **options)
    optimizer.step()
    hidden = ("aten::_local_scalar_dense", "aten::to", "aten::_to_copy", "aten::empty_strided", "aten::copy_")
    return [event.removeprefix("aten::") for event in recorded(optimizer.step) if event not in hidden]


@pytest.mark.parametrize(("name", "options", "ops"), [
    ("SGD", {}, "add_"),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}, "add mul_ add_ add add_"),
    ("SGD", {"momentum": 0.9, "maximize": True}, "neg mul_ add_ add_"),
    ("SGD", {"momentum": 0.9, "foreach": True},
     "_foreach_mul_ mul_ _foreach_add_ add_ _foreach_add_ add_"),
    ("SGD", {"fused": True}, "_fused_sgd_"),
    ("Adam", {}, "add_ lerp_ mul_ addcmul_ item sqrt div add_ addcdiv_"),
    ("Adam", {"amsgrad": True, "maximize": True}, "neg add_ lerp_ mul_ addcmul_ item maximum sqrt div add_ addcdiv_"),
    ("Adam", {"weight_decay": 0.1}, "add_ add lerp_ mul_ addcmul_ item sqrt div add_ addcdiv_"),
    ("AdamW", {}, "add_ mul_ lerp_ mul_ addcmul_ item sqrt div add_ addcdiv_"),
    ("Adagrad", {}, "add_ item addcmul_ sqrt add_ addcdiv_"),
    ("RMSprop", {}, "add_ mul_ addcmul_ sqrt add_ addcdiv_"),
    ("Adadelta", {}, "add_ mul_ addcmul_ add sqrt_ add sqrt_ div_ mul_ mul_ addcmul_ add_"),
    ("NAdam", {}, "add_ item mul_ lerp_ mul_ addcmul_ div sqrt item add_ item addcdiv_ addcdiv_"),
    ("RAdam", {}, "add_ item lerp_ mul_ addcmul_ div mul add_"),
])
def test_ops_of_a_step(name: str, options: dict[str, Any], ops: str) -> None:
    assert steady(name, **options) == [f"Optimizer.step#{name}.step", *ops.split()]


def test_zero_grad_is_reported() -> None:
    optimizer = torch.optim.Adam([with_grad(1.0)])
    assert recorded(optimizer.zero_grad) == ["Optimizer.zero_grad#Adam.zero_grad"]
