"""`LRScheduler`: counts epochs and writes learning rates into an optimizer's groups."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)
ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
    "`optimizer.step()` before `lr_scheduler.step()`. Otherwise the first value of the learning rate schedule is "
    "skipped. See https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def own(value: Any) -> Any:
    """A copy of a learning rate that later changes do not reach."""
    return value.clone() if isinstance(value, Tensor) else value


def _update_param_group_val(param_group: dict[str, Any], key: str, val: Any) -> None:
    """Write an option; one that is a tensor keeps being the same tensor."""
    if isinstance(param_group.get(key), Tensor):
        param_group[key].fill_(val)
    else:
        param_group[key] = val


def _param_groups_val_list(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of all groups, in copies that later changes do not reach."""
    return [own(group[key]) for group in optimizer.param_groups]


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list[Any]:
    """One value for each group from one for all or a list."""
    groups = optimizer.param_groups
    if isinstance(param, (list, tuple)):
        if len(param) != len(groups):
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} values, "
                f"param_groups has {len(groups)}."
            )
        return list(param)
    return [own(param) for _ in groups]


class _Switch:
    """A flag of a schedule that is up inside."""

    flag = ""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> Any:
        setattr(self.o, self.flag, True)
        return self

    def __exit__(self, *exc: object) -> None:
        setattr(self.o, self.flag, False)


class _enable_get_lr_call(_Switch):
    """Inside, `get_lr` is called by a step, so that it does not warn."""

    flag = "_get_lr_called_within_step"


class _initial_mode(_Switch):
    """Inside, a schedule makes the step that sets the first learning rates."""

    flag = "_is_initial"


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """`get_lr` computes the next rates, not the present ones."""
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                      UserWarning, stacklevel=2)


class LRScheduler:
    """Base of schedules: a subclass says in `get_lr` what the learning rates of all groups are at `last_epoch`.

    >>> import mindtorch_v2 as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    # Attributes a state dict leaves out.
    not_saved: tuple[str, ...] = ("optimizer",)
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when the optimizer's state was not loaded before the "
                    "scheduler was made, or when last_epoch is given for a fresh training run."
                )
        self.base_lrs: list[Any] = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        # From here on the optimizer notes that it stepped, for the warning about the order of calls.
        optimizer.__dict__.setdefault("_opt_called", False)
        optimizer.__dict__["_step_when_scheduled"] = vars(optimizer).get("step")
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in self.not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state of another schedule of the same class."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rates last written, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates at `last_epoch`, computed from the present ones."""
        raise NotImplementedError

    def present(self) -> list[Any]:
        """The learning rates the optimizer has now."""
        return _param_groups_val_list(self.optimizer, "lr")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one, and set the learning rates."""
        if self._step_count == 1:
            own = vars(self.optimizer)
            if own.get("step") is not own.get("_step_when_scheduled"):
                warnings.warn("Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                              "initialization. Please, make sure to call `optimizer.step()` before "
                              "`lr_scheduler.step()`.", UserWarning, stacklevel=2)
            elif not own.get("_opt_called", True):
                warnings.warn(ORDER_WARNING, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed()
        self.write(rates)

    def write(self, rates: list[Any]) -> None:
        """Set the learning rates of all groups."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            _update_param_group_val(group, "lr", rate)
        self._last_lr: list[Any] = self.present()


class _LRScheduler(LRScheduler):
    """The base class under its older name."""
