"""Learning rate schedules against PyTorch: the rates of thirty steps, state dicts, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

STEPS = 30
Make = Callable[[Any, Any], Any]


def sequence(s: Any, o: Any) -> Any:
    return s.SequentialLR(o, [s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 6)], [4, 9])


SCHEDULES: dict[str, Make] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "lambda each": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (epoch + 1)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "step": lambda s, o: s.StepLR(o, 4, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 7, 7, 12], 0.5),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "linear": lambda s, o: s.LinearLR(o, 0.25, 0.75, 8),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    "restarts of twelve": lambda s, o: s.CosineAnnealingWarmRestarts(o, 12),
    "restarts equal": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    "polynomial": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "one cycle": lambda s, o: s.OneCycleLR(o, 1.0, total_steps=40),
    "one cycle linear": lambda s, o: s.OneCycleLR(o, [1.0, 2.0], epochs=4, steps_per_epoch=10,
                                                  anneal_strategy="linear", cycle_momentum=False),
    "one cycle three": lambda s, o: s.OneCycleLR(o, 1.0, total_steps=35, three_phase=True, div_factor=10.0),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 4, 3),
    "cyclic 2": lambda s, o: s.CyclicLR(o, 0.1, [1.0, 2.0], 4, mode="triangular2"),
    "cyclic exp": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 4, mode="exp_range", gamma=0.95, cycle_momentum=False),
    "cyclic own": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 4, scale_fn=lambda x: 1 / x, scale_mode="cycle"),
    "sequence": sequence,
    "sequence of warmup": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=5), s.StepLR(o, 3)], [5]),
    "sequence of restarts": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o), s.CosineAnnealingWarmRestarts(o, 5), s.PolynomialLR(o, 9)], [3, 15]),
    "sequence of chain": lambda s, o: s.SequentialLR(
        o, [s.ExponentialLR(o, 0.9), s.LambdaLR(o, lambda e: 0.5**e)], [6]),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9)]),
    "chained cosine": lambda s, o: s.ChainedScheduler([s.CosineAnnealingLR(o, 10), s.StepLR(o, 5)], o),
}


def optimizer(module: Any, name: str = "SGD") -> Any:
    weights = [module.tensor([1.0], requires_grad=True) for _ in range(2)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(module.optim, name)([{"params": weights[:1]}, {"params": weights[1:], "lr": 0.3}], lr=0.1, **options)


def rates(o: Any) -> list[float]:
    keys = ("lr", "momentum", "betas")
    return [float(v) for g in o.param_groups for k in keys if k in g for v in (g[k] if k == "betas" else [g[k]])]


def plain(value: Any) -> Any:
    """A state dict in a form that can be compared to some digits."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return f"{value:.9g}" if isinstance(value, float) else value


def walk(module: Any, make: Make, name: str = "SGD", steps: int = STEPS) -> tuple[list[Any], dict[str, Any], Any]:
    o = optimizer(module, name)
    schedule = make(module.optim.lr_scheduler, o)
    seen = [(rates(o), [float(r) for r in schedule.get_last_lr()])]
    for _ in range(steps):
        o.step()
        with warnings.catch_warnings():
            # PyTorch's sequence warns about its own way of starting the next schedule.
            warnings.simplefilter("ignore")
            schedule.step()
        seen.append((rates(o), [float(r) for r in schedule.get_last_lr()]))
    return seen, schedule.state_dict(), schedule


@pytest.mark.parametrize("optimizer_name", ["SGD", "Adam"])
@pytest.mark.parametrize("which", list(SCHEDULES))
def test_rates_and_state(which: str, optimizer_name: str) -> None:
    mine, my_state, _ = walk(ours, SCHEDULES[which], optimizer_name)
    theirs, their_state, _ = walk(torch, SCHEDULES[which], optimizer_name)
    for step, (got, want) in enumerate(zip(mine, theirs, strict=True)):
        assert got[0] == want[0], f"step {step}"
        assert got[1] == want[1], f"step {step}"
    assert sorted(my_state) == sorted(their_state)
    assert plain(my_state) == plain(their_state)


@pytest.mark.parametrize("which", ["step", "multistep", "constant", "linear", "exponential", "cosine", "polynomial",
                                   "lambda", "restarts"])
def test_step_to_an_epoch(which: str) -> None:
    found = []
    for module in (ours, torch):
        o = optimizer(module)
        schedule = SCHEDULES[which](module.optim.lr_scheduler, o)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = []
            for epoch in (2, 5, 9, 3, 14):
                schedule.step(epoch)
                seen += rates(o)
        found.append(seen)
    assert found[0] == found[1]


@pytest.mark.parametrize("which", [w for w in SCHEDULES if not w.startswith("cyclic own")])
def test_state_dict_continues(which: str) -> None:
    """A new schedule that gets the state continues like the old one."""
    _, state, schedule = walk(ours, SCHEDULES[which], steps=6)
    o = optimizer(ours)
    again = SCHEDULES[which](ours.optim.lr_scheduler, o)
    o.load_state_dict(schedule.optimizer.state_dict())
    again.load_state_dict(state)
    for _ in range(8):
        for one in (schedule, again):
            one.optimizer.step()
            one.step()
        assert rates(o) == rates(schedule.optimizer)


@pytest.mark.parametrize("options", [
    {}, {"factor": 0.5, "patience": 1}, {"mode": "max", "patience": 2}, {"threshold_mode": "abs", "threshold": 0.05,
    "patience": 1}, {"patience": 0, "cooldown": 2}, {"patience": 0, "min_lr": 0.05},
    {"patience": 0, "min_lr": [0.05, 0.01]}, {"mode": "max", "threshold_mode": "abs", "patience": 1, "eps": 0.02},
])
def test_plateau(options: dict[str, Any]) -> None:
    metrics = [1.0, 0.9, 0.91, 0.89, 0.89, 0.8899, 0.95, 0.96, 0.5, 0.5, 0.5, 0.5, 0.51, 0.4, 0.6, 0.7, 0.7, 0.7] * 2
    found = []
    for module in (ours, torch):
        o = optimizer(module)
        schedule = module.optim.lr_scheduler.ReduceLROnPlateau(o, **options)
        seen = []
        for metric in metrics:
            schedule.step(module.tensor(metric))
            seen += [*rates(o), *schedule.get_last_lr()]
        found.append((seen, plain(schedule.state_dict())))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    assert found[0][1] == found[1][1]


def test_a_class_may_replace_what_a_plateau_does() -> None:
    found = []
    for module in (ours, torch):
        class Noting(module.optim.lr_scheduler.ReduceLROnPlateau):  # type: ignore[misc, name-defined]
            def _reduce_lr(self, epoch: int) -> None:
                seen.append(epoch)  # noqa: B023

        seen: list[int] = []
        schedule = Noting(optimizer(module), patience=1)
        for _ in range(6):
            schedule.step(1.0)
        found.append(seen)
    assert found[0] == found[1]


def test_tensor_learning_rate_stays_the_same_tensor() -> None:
    found = []
    for module in (ours, torch):
        rate = module.tensor(0.1)
        o = module.optim.SGD([module.tensor([1.0], requires_grad=True)], lr=rate)
        schedule = module.optim.lr_scheduler.ExponentialLR(o, 0.5)
        for _ in range(3):
            o.step()
            schedule.step()
        assert o.param_groups[0]["lr"] is rate
        found.append(rate.item())
    assert found[0] == pytest.approx(found[1])


BAD: list[Make] = [
    lambda s, o: s.StepLR(5, 3),
    lambda s, o: s.LambdaLR(o, [lambda e: 1]),
    lambda s, o: s.ConstantLR(o, factor=2),
    lambda s, o: s.LinearLR(o, start_factor=2),
    lambda s, o: s.LinearLR(o, start_factor=0),
    lambda s, o: s.LinearLR(o, end_factor=2),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
    lambda s, o: s.OneCycleLR(o, 1.0),
    lambda s, o: s.OneCycleLR(o, 1.0, total_steps=-1),
    lambda s, o: s.OneCycleLR(o, 1.0, total_steps=10, pct_start=2.0),
    lambda s, o: s.OneCycleLR(o, 1.0, total_steps=10, anneal_strategy="x"),
    lambda s, o: s.OneCycleLR(o, [1.0], total_steps=10),
    lambda s, o: s.OneCycleLR(o, 1.0, epochs=-1, steps_per_epoch=2),
    lambda s, o: s.OneCycleLR(o, 1.0, epochs=1, steps_per_epoch=0),
    lambda s, o: s.CyclicLR(o, 0.1, 1.0, mode="x"),
    lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    lambda s, o: s.ReduceLROnPlateau(o, mode="x"),
    lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"),
    lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1.0]),
    lambda s, o: s.SequentialLR(o, [], []),
    lambda s, o: s.SequentialLR(o, [s.ConstantLR(o)], [1, 2]),
    lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o), s.ConstantLR(o)], [1]),
    lambda s, o: s.ChainedScheduler([]),
    lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    lambda s, o: s.LRScheduler(o),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number: int) -> None:
    raised = []
    for module in (ours, torch):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            BAD[number](module.optim.lr_scheduler, optimizer(module))
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


def test_resuming_needs_initial_rates() -> None:
    for module in (ours, torch):
        with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
            module.optim.lr_scheduler.StepLR(optimizer(module), 3, last_epoch=5)


def test_one_cycle_ends() -> None:
    for module in (ours, torch):
        o = optimizer(module)
        schedule = module.optim.lr_scheduler.OneCycleLR(o, 1.0, total_steps=3)
        for _ in range(3):
            o.step()
            schedule.step()
        with pytest.raises(ValueError, match=r"Tried to step 4 times\. The specified number of total steps is 3"):
            schedule.step()


def test_warnings() -> None:
    for module in (ours, torch):
        schedule = module.optim.lr_scheduler.StepLR(optimizer(module), 3)
        with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
            schedule.step()
        with pytest.warns(UserWarning, match="please use `get_last_lr"):
            schedule.get_lr()
        with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
            schedule.step(3)
