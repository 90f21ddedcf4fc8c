"""Schedules along a cosine."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from ._base import LRScheduler, _enable_get_lr_call, _warn_get_lr_called_within_step


def along_cosine(high: Any, low: float, at: float, length: float) -> Any:
    """From `high` at 0 to `low` at `length`; the order of the factors decides the last bit."""
    return low + (high - low) * (1 + math.cos(math.pi * at / length)) / 2


class CosineAnnealingLR(LRScheduler):
    """From the initial learning rate to `eta_min` in `T_max` epochs, and back in the next `T_max`."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        epoch, length, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self.present()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - length) % (2 * length) == 0:
            # At the bottom the ratio below is 0/0; the climb starts from the lowest rate.
            step = (1 - math.cos(math.pi / length)) / 2
            return [rate + (base - low) * step for rate, base in zip(self.present(), self.base_lrs, strict=False)]
        ratio = (1 + math.cos(math.pi * epoch / length)) / (1 + math.cos(math.pi * (epoch - 1) / length))
        return [ratio * (rate - low) + low for rate in self.present()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [along_cosine(base, self.eta_min, self.last_epoch, self.T_max) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """From the initial learning rate to `eta_min`, then again from the start, each time `T_mult` times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        return [along_cosine(base, self.eta_min, self.T_cur, self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = self.position(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            rates = self.get_lr()
        self.write(rates)

    def position(self, epoch: float) -> tuple[float, int]:
        """Epochs since the last restart, and the length of the present run."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_0
        restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        begun = self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
        return epoch - begun, self.T_0 * self.T_mult**restarts
