"""Averages of weights over the training run: `AveragedModel`, `SWALR`, `update_bn`."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .._autograd.grad_mode import no_grad
from .._construct import tensor
from .._device import DeviceLike
from .._dispatch.namespace import aten
from .._dtype import int64
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler import LRScheduler
from .lr_scheduler._base import _format_param

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]

Average = Callable[..., Any]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Average:
    """A function on lists of parameters that moves averages towards the present by 1 - decay."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: list[Any], current_param_list: list[Any], _: Any) -> None:
        if ema_param_list[0].dtype.is_floating_point or ema_param_list[0].dtype.is_complex:
            aten._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
            return
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Average:
    """A function on lists of parameters that averages all of the past with equal weights."""

    @no_grad()
    def swa_update(averaged_param_list: list[Any], current_param_list: list[Any], num_averaged: Any) -> None:
        if averaged_param_list[0].dtype.is_floating_point or averaged_param_list[0].dtype.is_complex:
            aten._foreach_lerp_(averaged_param_list, current_param_list, (1 / (num_averaged + 1)).item()
                                if hasattr(num_averaged, "item") else 1 / (num_averaged + 1))
            return
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            average.copy_(average + (current - average) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A function of an average and the present parameter: the exponential moving average."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """A function of an average and the present parameter: the mean of all."""

    @no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over the calls of `update_parameters`."""

    n_averaged: Any

    def __init__(self, model: Module, device: DeviceLike = None, avg_fn: Average | None = None,
                 multi_avg_fn: Average | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Any) -> list[Any]:
        return [*model.parameters(), *model.buffers()] if self.use_buffers else list(model.parameters())

    def _combine(self, pairs: list[tuple[Any, Any]]) -> None:
        """Every average with the present value beside it taken in."""
        if self.avg_fn is not None:
            for average, present in pairs:
                average.copy_(self.avg_fn(average, present, self.n_averaged.to(average.device)))
            return
        groups: dict[Any, tuple[list[Any], list[Any]]] = {}
        for average, present in pairs:
            averages, currents = groups.setdefault((average.device, average.dtype), ([], []))
            averages.append(average)
            currents.append(present)
        for (device, _), (averages, currents) in groups.items():
            count = self.n_averaged.to(device)
            if self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, currents, count)
                continue
            mean = get_swa_avg_fn()
            for average, current in zip(averages, currents, strict=True):
                average.copy_(mean(average, current, count))

    def update_parameters(self, model: Module) -> None:
        """Take the model's present parameters into the averages."""
        is_first = bool(self.n_averaged == 0)
        pairs = []
        for average, current in zip(self._averaged(self.module), self._averaged(model), strict=True):
            present = current.detach().to(average.device)
            pairs.append((average.detach(), present))
            if is_first:
                average.detach().copy_(present)
        if self.n_averaged > 0:
            self._combine(pairs)
        if not self.use_buffers:
            for mine_buffer, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                mine_buffer.detach().copy_(buffer.detach().to(mine_buffer.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Any, model: Module, device: DeviceLike = None) -> None:
    """Run over the data once and set the running statistics of batch normalisation to the means over it."""
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    was_training = model.training
    model.train()
    try:
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs.to(device) if device is not None else inputs)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rates to `swa_lr` over some epochs, where they stay."""

    def __init__(self, optimizer: Any, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1) -> None:
        for rate, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is done after a number of steps."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """The present learning rates."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        made = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            made.append(target * now + start * (1 - now))
        return made
