"""LBFGS, Adafactor, Muon, averaged models and the signatures of all optimizers, beside PyTorch's."""

from __future__ import annotations

import copy
import importlib
import inspect

import numpy as np
import pytest
from both import outcome, same
from harness import assert_same, check_error

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

NAMES = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
         "RAdam", "RMSprop", "Rprop", "SparseAdam"]


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    got, want = ([(p.name, p.default, p.kind)
                  for p in inspect.signature(getattr(module.optim, name)).parameters.values()]
                 for module in (ours, torch))
    assert got == want


def start(module, shapes=((3, 4), (5,), (2, 3, 2))):
    rng = np.random.default_rng(0)
    return [module.tensor(rng.normal(size=shape).astype(np.float32).tolist()).requires_grad_() for shape in shapes]


def rosenbrock(parameters):
    """A narrow, bent valley through all the numbers."""
    x = [p.reshape(-1) for p in parameters]
    total = 0
    for part in x:
        total = total + (10 * (part[1:] - part[:-1] ** 2) ** 2 + (1 - part[:-1]) ** 2).sum()
    return total


LBFGS_OPTIONS = [
    {}, {"lr": 0.1}, {"line_search_fn": "strong_wolfe"}, {"history_size": 2, "max_iter": 7},
    {"line_search_fn": "strong_wolfe", "max_iter": 3, "history_size": 3}, {"max_eval": 4, "lr": 0.01},
    {"line_search_fn": "strong_wolfe", "lr": 0.3, "tolerance_change": 1e-3},
]


@pytest.mark.parametrize("options", LBFGS_OPTIONS, ids=str)
def test_lbfgs(options):
    found = []
    for module in (ours, torch):
        parameters = [p.detach().to(module.float64).requires_grad_() for p in start(module, ((4,), (2, 3)))]
        optimizer = module.optim.LBFGS(parameters, **options)
        losses = []

        def closure(optimizer=optimizer, parameters=parameters):
            optimizer.zero_grad()
            loss = rosenbrock(parameters)
            loss.backward()
            return loss

        for _ in range(10):
            losses.append(float(optimizer.step(closure).detach()))
        state = optimizer.state_dict()
        found.append((losses, parameters, state["state"][0], repr(optimizer), state["param_groups"]))
    (losses, parameters, state, text, groups), (their_losses, their_parameters, their_state, their_text, theirs) = found
    np.testing.assert_allclose(losses, their_losses, rtol=1e-6, atol=1e-12)
    for got, want in zip(parameters, their_parameters, strict=True):
        assert_same(got, want, "parameter", 1e-6)
    assert text == their_text
    assert groups == theirs
    assert set(state) == set(their_state)
    assert state["func_evals"] == their_state["func_evals"]
    assert state["n_iter"] == their_state["n_iter"]
    assert len(state["old_dirs"]) == len(their_state["old_dirs"])


def test_lbfgs_continues_from_a_state_dict():
    parameters = start(ours, ((4,),))
    optimizer = ours.optim.LBFGS(parameters, lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(parameters)
        loss.backward()
        return loss

    optimizer.step(closure)
    saved, at = copy.deepcopy(optimizer.state_dict()), parameters[0].detach().clone()
    optimizer.step(closure)
    after = parameters[0].detach().clone()
    with ours.no_grad():
        parameters[0].copy_(at)
    optimizer = ours.optim.LBFGS(parameters, lr=0.1, max_iter=4)
    optimizer.load_state_dict(saved)
    optimizer.step(closure)
    assert ours.equal(parameters[0].detach(), after)


def walk(module, make, steps=10, shapes=((3, 4), (5,), (2, 3, 2))):
    parameters = start(module, shapes)
    optimizer = make(module, parameters)
    rng = np.random.default_rng(1)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = module.tensor(rng.normal(size=tuple(parameter.shape)).astype(np.float32).tolist())
        optimizer.step()
    return parameters, optimizer


def same_walk(make, tolerance=2e-5, shapes=((3, 4), (5,), (2, 3, 2))):
    (got, mine), (want, theirs) = walk(ours, make, shapes=shapes), walk(torch, make, shapes=shapes)
    for a, b in zip(got, want, strict=True):
        assert_same(a, b, "parameter", tolerance)
    assert repr(mine) == repr(theirs)
    ours_state, their_state = mine.state_dict()["state"], theirs.state_dict()["state"]
    assert ours_state.keys() == their_state.keys()
    for number, entries in their_state.items():
        assert ours_state[number].keys() == entries.keys()
        for key, value in entries.items():
            assert_same(ours_state[number][key], value, key, max(tolerance, 2e-5))


@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "weight_decay": 0.1}, {"maximize": True, "foreach": True},
                                     {"eps": (1e-5, 1e-2), "d": 1.5}, {"beta2_decay": -0.5, "foreach": False}], ids=str)
def test_adafactor(options):
    same_walk(lambda module, parameters: module.optim.Adafactor(parameters, **options))


def test_adafactor_with_a_tensor_lr():
    same_walk(lambda module, parameters: module.optim.Adafactor(parameters, lr=module.tensor(0.05)))


@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"},
                                     {"weight_decay": 0.0, "ns_steps": 3}], ids=str)
def test_muon(options):
    # Its matrices are bfloat16, where a different order of sums shows in the third digit.
    same_walk(lambda module, parameters: module.optim.Muon(parameters, **options), 2e-2, ((3, 4), (6, 2)))


ERRORS = [
    lambda m: m.optim.LBFGS(start(m), lr=-1.0),
    lambda m: m.optim.LBFGS([{"params": p} for p in start(m)]),
    lambda m: m.optim.LBFGS(start(m), lr=m.ones(2)),
    lambda m: m.optim.Adafactor(start(m), lr=-1.0),
    lambda m: m.optim.Adafactor(start(m), beta2_decay=0.5),
    lambda m: m.optim.Adafactor(start(m), eps=(-1.0, 0.1)),
    lambda m: m.optim.Adafactor(start(m), d=0.5),
    lambda m: m.optim.Muon(start(m)),
    lambda m: m.optim.Muon(start(m, ((2, 2),)), adjust_lr_fn="other"),
    lambda m: m.optim.swa_utils.AveragedModel(m.nn.Linear(1, 1), avg_fn=len, multi_avg_fn=len),
    lambda m: m.optim.swa_utils.get_ema_avg_fn(2.0),
    lambda m: m.optim.swa_utils.SWALR(m.optim.SGD(start(m), 0.1), 0.2, anneal_strategy="other"),
    lambda m: m.optim.swa_utils.SWALR(m.optim.SGD(start(m), 0.1), 0.2, anneal_epochs=-1),
    lambda m: m.optim.swa_utils.SWALR(m.optim.SGD(start(m), 0.1), [0.2, 0.3]),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    check_error(ERRORS[number])


def test_unknown_line_search():
    def run(module):
        parameters = start(module, ((3,),))

        def closure():
            loss = (parameters[0] ** 2).sum()
            loss.backward()
            return loss

        module.optim.LBFGS(parameters, line_search_fn="brent").step(closure)

    check_error(run)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "RMSprop", "Rprop", "Adadelta"])
def test_capturable_is_refused_on_the_cpu(name):
    check_error(lambda module: walk(module, lambda m, p: getattr(m.optim, name)(p, capturable=True), 1))


AVERAGES = {
    "default": lambda swa: {}, "ema": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    "swa": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    "ema, single": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.8)}, "swa, single": lambda swa: {
        "avg_fn": swa.get_swa_avg_fn()},
    "buffers": lambda swa: {"use_buffers": True}, "buffers, ema": lambda swa: {
        "use_buffers": True, "multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
}


@pytest.mark.parametrize("kind", AVERAGES)
def test_averaged_model(kind):
    found = []
    for module in (ours, torch):
        module.manual_seed(0)
        model = module.nn.Sequential(module.nn.Linear(3, 4), module.nn.BatchNorm1d(4), module.nn.Linear(4, 1))
        averaged = module.optim.swa_utils.AveragedModel(model, **AVERAGES[kind](module.optim.swa_utils))
        optimizer = module.optim.SGD(model.parameters(), lr=0.1)
        schedule = module.optim.swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
        rates = []
        for step in range(6):
            model(module.ones(4, 3) * (step + module.arange(4.0)[:, None])).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            averaged.update_parameters(model)
            schedule.step()
            rates.append(schedule.get_last_lr()[0])
        data = [module.arange(12.0).reshape(4, 3), module.arange(12.0).reshape(4, 3) * 2]
        module.optim.swa_utils.update_bn(data, averaged)
        found.append((averaged.state_dict(), rates, averaged(data[0]), repr(averaged), averaged.training))
    (got, rates, output, text, training), (want, their_rates, their_output, their_text, their_training) = found
    assert list(got) == list(want)
    for key, value in want.items():
        assert_same(got[key], value, key, 1e-4)
    assert rates == pytest.approx(their_rates)
    assert_same(output, their_output, "output", 1e-4)
    assert text == their_text
    assert training == their_training


@pytest.mark.parametrize("options", [{"anneal_epochs": 4}, {"anneal_epochs": 0}, {"anneal_strategy": "linear"}],
                         ids=str)
def test_swalr(options):
    found = []
    for module in (ours, torch):
        optimizer = module.optim.SGD([{"params": p} for p in start(module)], lr=1.0)
        schedule = module.optim.swa_utils.SWALR(optimizer, swa_lr=[0.1, 0.2, 2.0], **options)
        rates = []
        for _ in range(12):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        found.append((rates, sorted(schedule.state_dict())))
    np.testing.assert_allclose(found[0][0], found[1][0])


def test_hooks_see_the_steps():
    def run(module):
        seen = []
        base = importlib.import_module(f"{module.__name__}.optim.optimizer")
        handles = [base.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("global pre")),
                   base.register_optimizer_step_post_hook(lambda o, a, k: seen.append("global post"))]
        optimizer = module.optim.SGD(start(module), lr=module.tensor(0.1))
        optimizer.register_step_pre_hook(lambda o, a, k: seen.append("pre"))
        optimizer.register_step_post_hook(lambda o, a, k: seen.append("post"))
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("state pre"))
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
        optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append(sorted(s)))
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        for handle in handles:
            handle.remove()
        optimizer.step()
        return seen

    assert run(ours) == run(torch)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta",
                                  "Rprop", "ASGD"])
def test_differentiable(name):
    """A step with `differentiable=True` can be backpropagated through its gradients."""
    found = []
    for module in (ours, torch):
        factor = module.tensor([0.5, 2.0], requires_grad=True)
        weight = module.tensor([1.0, -1.0], requires_grad=True)
        moving = weight.clone()
        moving.grad = factor * 3 + 0.5
        optimizer = getattr(module.optim, name)([moving.detach().requires_grad_()], differentiable=True)
        parameter = moving
        optimizer.param_groups[0]["params"] = [parameter]
        optimizer.step()
        parameter.sum().backward()
        found.append((parameter.detach(), factor.grad, weight.grad))
    for got, want in zip(*found, strict=True):
        if want is not None:
            assert_same(got, want, name, 1e-4)


def test_lbfgs_remembers_no_step_whose_curvature_is_no_number():
    def remembered(module):
        x = module.full((2,), 0.1, requires_grad=True)
        optimizer = module.optim.LBFGS([x], lr=1.0, max_iter=4)

        def closure():
            optimizer.zero_grad()
            loss = x.sqrt().sum()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        return len(optimizer.state[x]["old_dirs"])

    assert remembered(ours) == remembered(torch)


def swapped_in(torch):
    """Steps on other parameters with another state; what is refused; the optimizer has its own back."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.5}], lr=0.1, momentum=0.9)

    def run(parameters, state, fail=False):
        def swap():
            with torch.optim.swap_in_optimizer_params_and_state(optimizer, parameters, state):
                optimizer.step()
                assert not fail
                return [(group["lr"], len(group["params"])) for group in optimizer.param_groups], len(optimizer.state)
        return outcome(swap, 40)

    for parameter in model.parameters():
        parameter.data.fill_(1.0)
    others = {name: torch.nn.Parameter(torch.zeros_like(one)) for name, one in model.named_parameters()}
    found = [run(others, optimizer.state_dict())]
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for one in others.values():
        one.grad = torch.ones_like(one)
    state = optimizer.state_dict()
    found += [run(others, state), run({"weight": others["weight"]}, state), run(others, {}), run(others, [])]
    for change in ({"lr": 2.0}, {"params": []}, {"more": 1}):
        changed = optimizer.state_dict()
        changed["param_groups"][0].update(change)
        found.append(run(others, changed))
    found += [run(others, {**state, "state": {7: {}}}), run(others, state, fail=True),
              run(others, {**state, "param_groups": state["param_groups"][:1]})]
    kept = [one["momentum_buffer"] for one in state["state"].values()]
    return (found, list(others.values()), list(model.parameters()), kept, len(optimizer.state),
            [group["params"][0] is one for group, one in zip(optimizer.param_groups, model.parameters())])


def test_parameters_swapped_in():
    same(swapped_in)
