"""Optimizers against PyTorch: twenty steps on fixed gradients, state dicts, errors, printing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as ours
from mindtorch_v2._dispatch.observer import EVENTS, FIELDS, observe, unobserve
from mindtorch_v2._dispatch.state import THREAD

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

SHAPES = ((3, 4), (5,), ())
STEPS = 20

# Option sets of each optimizer; every one runs parameter by parameter and with lists, where both exist.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {}, {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True}, {"lr": 0.1, "weight_decay": 0.2},
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.2, "nesterov": True, "maximize": True},
        {"lr": 0.1, "maximize": True, "weight_decay": 0.2},
    ],
    "Adam": [
        {}, {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-4}, {"lr": 0.1, "weight_decay": 0.2},
        {"lr": 0.1, "amsgrad": True}, {"lr": 0.1, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.2, "decoupled_weight_decay": True},
    ],
    "AdamW": [{}, {"lr": 0.1, "weight_decay": 0.2}, {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True},
              {"lr": 0.1, "maximize": True}],
    "Adagrad": [{}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.2}, {"initial_accumulator_value": 0.5, "eps": 1e-3},
                {"lr": 0.1, "maximize": True}],
    "RMSprop": [{}, {"lr": 0.1, "alpha": 0.9}, {"centered": True}, {"momentum": 0.9},
                {"centered": True, "momentum": 0.9, "weight_decay": 0.2, "maximize": True}],
    "Adamax": [{}, {"lr": 0.1, "betas": (0.8, 0.9)}, {"weight_decay": 0.2}, {"maximize": True}],
    "NAdam": [{}, {"lr": 0.1, "momentum_decay": 0.1}, {"weight_decay": 0.2},
              {"weight_decay": 0.2, "decoupled_weight_decay": True}, {"maximize": True}],
    "RAdam": [{}, {"lr": 0.1, "betas": (0.8, 0.9)}, {"weight_decay": 0.2},
              {"weight_decay": 0.2, "decoupled_weight_decay": True}, {"maximize": True}],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "eps": 1e-4}, {"weight_decay": 0.2}, {"maximize": True}],
    "Rprop": [{}, {"lr": 0.1, "etas": (0.4, 1.5)}, {"step_sizes": (1e-3, 0.02)}, {"maximize": True}],
    "ASGD": [{}, {"lr": 0.1, "lambd": 0.1, "alpha": 0.5}, {"t0": 3}, {"weight_decay": 0.2}, {"maximize": True}],
}
CASES = [(name, options) for name, sets in OPTIONS.items() for options in sets]


def label(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items()) or "defaults"


def contents(step: int, dtype: str = "float32") -> list[np.ndarray]:
    rng = np.random.default_rng([step, 11])
    return [np.asarray(rng.uniform(-2, 2, shape)).astype(dtype) for shape in SHAPES]


def parameters(module: Any, dtype: str = "float32") -> list[Any]:
    return [module.tensor(a.tolist(), dtype=getattr(module, dtype), requires_grad=True) for a in contents(0, dtype)]


def set_grads(module: Any, params: list[Any], step: int, dtype: str = "float32") -> None:
    for parameter, content in zip(params, contents(step + 1, dtype), strict=True):
        parameter.grad = module.tensor(content.tolist(), dtype=getattr(module, dtype))


def run(module: Any, name: str, options: dict[str, Any], dtype: str = "float32", steps: int = STEPS) -> Any:
    params = parameters(module, dtype)
    optimizer = getattr(module.optim, name)(params, **options)
    for step in range(steps):
        set_grads(module, params, step, dtype)
        optimizer.step()
    return params, optimizer


def as_array(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().tolist(), dtype=np.float64)


def assert_same_value(got: Any, want: Any, where: str, limit: float) -> None:
    if isinstance(want, torch.Tensor):
        assert str(got.dtype) == str(want.dtype), where
        assert tuple(got.shape) == tuple(want.shape), where
        np.testing.assert_allclose(as_array(got), as_array(want), rtol=limit, atol=limit, err_msg=where)
    else:
        assert got == want, where


def assert_same_optimizer(got: Any, want: Any, limit: float) -> None:
    for i, (mine, theirs) in enumerate(zip(got[0], want[0], strict=True)):
        assert_same_value(mine, theirs, f"parameter {i}", limit)
    mine, theirs = got[1].state_dict(), want[1].state_dict()
    assert list(mine) == list(theirs)
    assert mine["param_groups"] == theirs["param_groups"]
    assert list(mine["param_groups"][0]) == list(theirs["param_groups"][0])
    assert list(mine["state"]) == list(theirs["state"])
    for number, state in theirs["state"].items():
        assert list(mine["state"][number]) == list(state)
        for key, value in state.items():
            assert_same_value(mine["state"][number][key], value, f"state {number} {key}", limit)


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize(("name", "options"), CASES, ids=label)
def test_twenty_steps(name: str, options: dict[str, Any], foreach: bool | None) -> None:
    given = {**options, "foreach": foreach}
    assert_same_optimizer(run(ours, name, given), run(torch, name, given), 1e-6)


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("foreach", [False, True])
def test_float64(name: str, foreach: bool) -> None:
    given = {**OPTIONS[name][-1], "foreach": foreach}
    # Single numbers of the state are float32 whatever the parameters are, so the limit is not float64's.
    limit = 1e-7 if name in ("ASGD", "NAdam") else 1e-12
    assert_same_optimizer(run(ours, name, given, "float64"), run(torch, name, given, "float64"), limit)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_half_precision(name: str, dtype: str) -> None:
    def half(module: Any) -> Any:
        kind = getattr(module, dtype)
        params = [module.tensor(a.tolist(), dtype=kind, requires_grad=True) for a in contents(0)]
        optimizer = getattr(module.optim, name)(params, lr=0.1)
        for step in range(3):
            for parameter, content in zip(params, contents(step + 1), strict=True):
                parameter.grad = module.tensor(content.tolist(), dtype=kind)
            optimizer.step()
        return params, optimizer

    assert_same_optimizer(half(ours), half(torch), 3e-2 if dtype == "bfloat16" else 4e-3)


@pytest.mark.parametrize(("name", "options"), [c for c in CASES if c[0] in ("SGD", "Adam", "AdamW", "Adagrad")],
                         ids=label)
def test_fused(name: str, options: dict[str, Any]) -> None:
    given = {**options, "fused": True}
    assert_same_optimizer(run(ours, name, given), run(torch, name, given), 1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "RAdam"])
def test_tensor_learning_rate(name: str) -> None:
    results = []
    for module in (ours, torch):
        params = parameters(module)
        optimizer = getattr(module.optim, name)(params, lr=module.tensor(0.1))
        for step in range(STEPS):
            set_grads(module, params, step)
            optimizer.step()
        results.append(params)
    for mine, theirs in zip(*results, strict=True):
        assert_same_value(mine, theirs, name, 1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam"])
def test_complex_parameters(name: str) -> None:
    results = []
    for module in (ours, torch):
        weight = module.tensor([1 + 2j, -0.5j, 3.0], dtype=module.complex64, requires_grad=True)
        optimizer = getattr(module.optim, name)([weight], lr=0.1)
        for step in range(5):
            weight.grad = module.tensor([1j + step, 2.0 - 1j, -1 - 1j], dtype=module.complex64)
            optimizer.step()
        results.append(np.array(weight.detach().tolist()))
    np.testing.assert_allclose(*results, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", list(OPTIONS))
def test_groups_with_own_options(name: str) -> None:
    results = []
    for module in (ours, torch):
        params = parameters(module)
        optimizer = getattr(module.optim, name)([{"params": params[:1], "lr": 0.5}, {"params": params[1:]}], lr=0.01)
        for step in range(4):
            set_grads(module, params, step)
            optimizer.step()
        results.append((params, optimizer))
    assert_same_optimizer(*results, 1e-6)


@pytest.mark.parametrize("name", list(OPTIONS))
def test_parameter_without_gradient_is_left_out(name: str) -> None:
    results = []
    for module, foreach in itertools.product((ours, torch), (False, True)):
        params = parameters(module)
        optimizer = getattr(module.optim, name)(params, foreach=foreach)
        for step in range(3):
            set_grads(module, params, step)
            params[1].grad = None if step < 2 else params[1].grad
            optimizer.step()
        results.append((params, optimizer))
    assert_same_optimizer(results[0], results[2], 1e-6)
    assert_same_optimizer(results[1], results[3], 1e-6)


@pytest.mark.parametrize("name", list(OPTIONS))
def test_repr(name: str) -> None:
    options = OPTIONS[name][-1]
    shown = [repr(getattr(module.optim, name)([{"params": parameters(module)[:2]}, {"params": parameters(module)[2:]}],
                                               **options)) for module in (ours, torch)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("options", [{"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.5,
                                                                    "nesterov": True}, {"lr": 0.1, "maximize": True}])
def test_differentiable_sgd(options: dict[str, Any]) -> None:
    found = []
    for module in (ours, torch):
        start = module.tensor([1.0, -2.0, 3.0], requires_grad=True)
        weight = start.clone()
        optimizer = module.optim.SGD([weight], differentiable=True, **options)
        for _ in range(3):
            kept = weight.clone()
            weight.grad = kept * kept * start
            optimizer.step()
        found.append(module.autograd.grad(weight.sum(), start)[0].tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-4)


@pytest.mark.parametrize(("name", "options"), [
    ("Adam", {}), ("Adam", {"amsgrad": True}), ("Adam", {"weight_decay": 0.1}), ("AdamW", {}), ("Adamax", {}),
    ("NAdam", {}), ("RAdam", {"betas": (0.5, 0.6)}), ("RMSprop", {}), ("RMSprop", {"momentum": 0.9}),
    ("Adagrad", {}), ("Adadelta", {}), ("ASGD", {"t0": 0}),
], ids=label)
def test_differentiable(name: str, options: dict[str, Any]) -> None:
    found = []
    for module in (ours, torch):
        start = module.tensor([1.0, -2.0, 3.0], dtype=module.float64, requires_grad=True)
        weight = start.clone()
        optimizer = getattr(module.optim, name)([weight], lr=0.1, differentiable=True, **options)
        # PyTorch itself cannot differentiate through more than one step of these two.
        for _ in range(1 if name == "Adamax" or "amsgrad" in options else 6):
            weight.grad = weight.clone() * start
            optimizer.step()
        found.append(module.autograd.grad(weight.sum(), start)[0].tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-6)


BAD: list[Callable[[Any, Any], Any]] = [
    lambda m, x: m.optim.SGD([x], lr=-1),
    lambda m, x: m.optim.SGD([x], momentum=-1),
    lambda m, x: m.optim.SGD([x], weight_decay=-1),
    lambda m, x: m.optim.SGD([x], nesterov=True),
    lambda m, x: m.optim.SGD([x], lr=m.tensor([1.0, 2.0])),
    lambda m, x: m.optim.SGD([x], foreach=True, fused=True),
    lambda m, x: m.optim.SGD([x], fused=True, differentiable=True),
    lambda m, x: m.optim.Adam([x], lr=-1),
    lambda m, x: m.optim.Adam([x], eps=-1),
    lambda m, x: m.optim.Adam([x], betas=(1.0, 0.9)),
    lambda m, x: m.optim.Adam([x], betas=(0.9, -1)),
    lambda m, x: m.optim.Adam([x], weight_decay=-1),
    lambda m, x: m.optim.Adam([x], lr=m.tensor(1.0), foreach=True),
    lambda m, x: m.optim.Adam([x], betas=(0.9, m.tensor(0.9))),
    lambda m, x: m.optim.Adagrad([x], lr_decay=-1),
    lambda m, x: m.optim.Adagrad([x], initial_accumulator_value=-1),
    lambda m, x: m.optim.RMSprop([x], alpha=-1),
    lambda m, x: m.optim.RMSprop([x], momentum=-1),
    lambda m, x: m.optim.Adadelta([x], rho=2),
    lambda m, x: m.optim.NAdam([x], momentum_decay=-1),
    lambda m, x: m.optim.RAdam([x], eps=-1),
    lambda m, x: m.optim.Adamax([x], betas=(2, 0.9)),
    lambda m, x: m.optim.Rprop([x], etas=(2, 3)),
    lambda m, x: m.optim.ASGD([x], weight_decay=-1),
    lambda m, x: m.optim.SGD([]),
    lambda m, x: m.optim.SGD([x * 2]),
    lambda m, x: m.optim.SGD(["a"]),
    lambda m, x: m.optim.SGD(5),
    lambda m, x: m.optim.SGD([{"params": [x]}, {"params": [x]}]),
    lambda m, x: m.optim.SGD([{"params": {x}}]),
    lambda m, x: m.optim.SGD([("a", x), x.detach()]),
    lambda m, x: m.optim.SGD([{"params": [("a", x)]}, {"params": [x.detach()]}]),
    lambda m, x: m.optim.SGD([{"lr": 1}]),
    lambda m, x: m.optim.SGD([x]).add_param_group([x]),
    lambda m, x: m.optim.SGD([x]).load_state_dict({"state": {}, "param_groups": []}),
    lambda m, x: m.optim.SGD([x]).load_state_dict(m.optim.SGD([x, x.detach()]).state_dict()),
    lambda m, x: m.optim.Optimizer([x], {}).step(),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number: int) -> None:
    raised = []
    for module in (ours, torch):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            BAD[number](module, module.tensor([1.0, 2.0], requires_grad=True))
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


def test_tensor_instead_of_list_is_refused() -> None:
    for module in (ours, torch):
        with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
            module.optim.SGD(module.tensor([1.0], requires_grad=True))


def test_fused_needs_floating_point() -> None:
    for module in (ours, torch):
        weight = module.tensor([1, 2])
        weight.grad = module.tensor([1, 2])
        optimizer = module.optim.SGD([weight], fused=True)
        with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
            optimizer.step()


def test_capturable_is_refused_on_cpu() -> None:
    for module, foreach in itertools.product((ours, torch), (False, True)):
        weight = module.tensor([1.0], requires_grad=True)
        weight.grad = module.tensor([1.0])
        optimizer = module.optim.Adam([weight], capturable=True, foreach=foreach)
        with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported"):
            optimizer.step()


def test_names_travel_in_state_dicts() -> None:
    found = []
    for module in (ours, torch):
        first, second = parameters(module)[:2]
        optimizer = module.optim.SGD([("w", first), ("b", second)], lr=0.1)
        other = module.optim.SGD([first, second])
        other.load_state_dict(optimizer.state_dict())
        named = module.optim.SGD([("v", first), ("c", second)])
        named.load_state_dict(module.optim.SGD([first, second]).state_dict())
        found.append([optimizer.state_dict(), {k: v for k, v in other.param_groups[0].items() if k != "params"},
                      named.state_dict()])
    assert found[0] == found[1]


def test_loading_converts_state_to_the_parameter() -> None:
    found = []
    for module in (ours, torch):
        single = parameters(module)
        optimizer = module.optim.Adam(single)
        set_grads(module, single, 0)
        optimizer.step()
        double = module.optim.Adam(parameters(module, "float64"))
        double.load_state_dict(optimizer.state_dict())
        found.append({key: str(value.dtype) for key, value in double.state_dict()["state"][0].items()})
    assert found[0] == found[1]


def test_checkpoint_of_pytorch_continues_here() -> None:
    theirs, their_optimizer = run(torch, "Adam", {"lr": 0.1, "amsgrad": True}, steps=5)
    saved = their_optimizer.state_dict()
    mine = [ours.tensor(p.tolist(), requires_grad=True) for p in theirs]
    optimizer = ours.optim.Adam(mine, lr=0.3)
    optimizer.load_state_dict({
        "state": {n: {k: ours.tensor(v.tolist()) for k, v in state.items()} for n, state in saved["state"].items()},
        "param_groups": saved["param_groups"],
    })
    for step in range(5, 10):
        set_grads(torch, theirs, step)
        set_grads(ours, mine, step)
        their_optimizer.step()
        optimizer.step()
    assert_same_optimizer((mine, optimizer), (theirs, their_optimizer), 1e-6)


# -- what a profile shows ------------------------------------------------------------------------------------------

# Conversions of Python numbers and allocations, which are not the optimizer's doing.
HIDDEN = frozenset((
    "aten::_local_scalar_dense", "aten::copy_", "aten::detach_", "aten::empty", "aten::empty_like",
    "aten::empty_strided", "aten::fill_", "aten::lift_fresh", "aten::result_type", "aten::to", "aten::_to_copy",
    "aten::zero_", "detach", "detach_",
))


def our_events(run_step: Callable[[], Any]) -> list[str]:
    log: list[Any] = []
    before = THREAD.state.events
    observe(lambda state: state.record_into(log))
    try:
        run_step()
    finally:
        unobserve()
        THREAD.state.record_into(before)
    events = [log[i:i + FIELDS] for i in range(0, len(log), FIELDS)]
    return [EVENTS[event[0]][0] for event in sorted(events, key=lambda event: (event[1], -event[2]))]


def their_events(run_step: Callable[[], Any]) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run_step()
    return [event.name for event in profile.events()]


def profiles(name: str, options: dict[str, Any], at: int) -> list[list[str]]:
    """Names of what step number `at` shows, here and in PyTorch."""
    found = []
    for module, events in ((ours, our_events), (torch, their_events)):
        params = parameters(module)
        optimizer = getattr(module.optim, name)(params, **options)
        for step in range(at):
            set_grads(module, params, step)
            optimizer.step()
        set_grads(module, params, at)
        found.append([event for event in events(optimizer.step) if event not in HIDDEN])
    return found


@pytest.mark.parametrize("at", [0, 1, 7])
@pytest.mark.parametrize(("name", "options"), [c for c in CASES if c[0] not in ("Adamax", "Rprop")], ids=label)
@pytest.mark.filterwarnings("ignore")
def test_ops_of_a_step(name: str, options: dict[str, Any], at: int) -> None:
    mine, theirs = profiles(name, options, at)
    assert mine == theirs


@pytest.mark.parametrize(("name", "options"), CASES, ids=label)
@pytest.mark.filterwarnings("ignore")
def test_list_ops_of_a_step(name: str, options: dict[str, Any]) -> None:
    """The `_foreach_*` ops of a step; inside some of them PyTorch nests one more op than this runtime."""
    mine, theirs = ([event for event in events if event.startswith(("Optimizer", "aten::_foreach"))]
                    for events in profiles(name, {**options, "foreach": True}, 7))
    assert mine == theirs


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
@pytest.mark.filterwarnings("ignore")
def test_fused_ops_of_a_step(name: str) -> None:
    mine, theirs = profiles(name, {"fused": True}, 2)
    assert mine == theirs
