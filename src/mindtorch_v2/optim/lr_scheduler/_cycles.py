"""Schedules that raise and lower the learning rate, and the momentum the other way round."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from ._base import LRScheduler, _format_param, _update_param_group_val, _warn_get_lr_called_within_step


def uses_beta1(optimizer: Optimizer) -> bool:
    """Whether an optimizer's momentum is its first beta (as Adam's) rather than an option `momentum`."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], value: float, beta1: bool) -> None:
    """Write a group's momentum where its optimizer keeps it."""
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Between `base_lr` and `max_lr` along straight lines, again and again; steps are batches, not epochs."""

    not_saved = ("optimizer", "_scale_fn_ref", "_scale_fn_custom")

    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
                 last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=False):
                _update_param_group_val(group, "lr", rate)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            self.base_momentums = _format_param("base_momentum", optimizer, base_momentum)
            self.max_momentums = _format_param("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                triples = zip(self.base_momentums, self.max_momentums, optimizer.param_groups, strict=False)
                for low, high, group in triples:
                    set_momentum(group, high, self.use_beta1)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How high the peak is, by the number of the cycle or of the step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        up = place <= self.step_ratio
        height = place / self.step_ratio if up else (place - 1) / (self.step_ratio - 1)
        peak = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            triples = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=False)
            for low, high, group in triples:
                set_momentum(group, high - (high - low) * height * peak, self.use_beta1)
        return [base + (top - base) * height * peak for base, top in zip(self.base_lrs, self.max_lrs, strict=False)]

    def state_dict(self) -> dict[str, Any]:
        """The state; a scale function is kept only if it is a callable object, by its attributes."""
        state = super().state_dict()
        function = self._scale_fn_custom
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state; the scale function of this schedule stays."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        attributes = state_dict.get("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(LRScheduler):
    """Once up to `max_lr` and then down to almost nothing; steps are batches, not epochs."""

    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
                 cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95,
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = count_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = phases(self.total_steps, pct_start, three_phase)
        if not 0 <= pct_start <= 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        tops = _format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for top, group in zip(tops, optimizer.param_groups, strict=False):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            highs = _format_param("max_momentum", optimizer, max_momentum)
            lows = _format_param("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for low, high, group in zip(lows, highs, optimizer.param_groups, strict=False):
                    set_momentum(group, high, self.use_beta1)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def anneal(self, start: float, end: float, share: float) -> float:
        """The value at a share of the way from `start` to `end`."""
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        begin: float = 0
        phase = self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self.anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = self.anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                set_momentum(group, momentum, self.use_beta1)
        return rates


def count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """The length of the cycle, given directly or as epochs times steps."""
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * steps_per_epoch


def phases(total: int, share: float, three: bool) -> list[dict[str, Any]]:
    """The parts of the cycle: up, (down again as far,) and down to the end."""

    def phase(end: float, from_lr: str, to_lr: str, from_momentum: str, to_momentum: str) -> dict[str, Any]:
        return {"end_step": end, "start_lr": from_lr, "end_lr": to_lr, "start_momentum": from_momentum,
                "end_momentum": to_momentum}

    rise = phase(float(share * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        return [rise, phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [
        rise,
        phase(float(2 * share * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]
