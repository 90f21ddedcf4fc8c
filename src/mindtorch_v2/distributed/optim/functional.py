"""Optimizers that receive the gradients of a step, instead of reading them from the parameters.

>>> import mindtorch_v2 as torch
>>> weight = torch.ones(2)
>>> _FunctionalSGD([weight], lr=0.5).step([torch.ones(2)])
>>> weight
tensor([0.5000, 0.5000])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ... import optim
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ...optim import Optimizer

__all__: list[str] = []


class _Functional:
    """An optimizer of a class, whose parameters get their gradients only during a step."""

    optimizer: ClassVar[type[Optimizer]]

    def __init__(self, params: list[Tensor], _allow_empty_param_list: bool = False, **defaults: Any) -> None:
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        # Optimizers without parameters raise an error, so it is made with another parameter.
        self._inner = self.optimizer(params or [aten.empty(0)], **defaults)
        self.param_group = self._inner.param_groups[0]
        self.param_group["params"] = params
        self.state = self._inner.state
        self.defaults = self._inner.defaults

    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """Change the parameters by these gradients, one for each; None leaves a parameter as it is."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError("the gradients passed in does not equal to the size of the parameters! "
                             f"Params length: {len(params)}. Gradients length: {len(gradients)}")
        kept = [one.grad for one in params]
        try:
            for one, gradient in zip(params, gradients, strict=True):
                one.grad = gradient
            self._inner.step()
        finally:
            for one, before in zip(params, kept, strict=True):
                one.grad = before


class _OneByOne(_Functional):
    """An optimizer that can also change a single parameter, even an unknown one."""

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Change this parameter by its gradient."""
        group = self.param_group["params"]
        self.param_group["params"] = [param]
        try:
            self.step([grad])
        finally:
            self.param_group["params"] = group


class _FunctionalSGD(_OneByOne):
    optimizer = optim.SGD

    def __init__(self, params: list[Tensor], lr: float = 1e-2, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False, foreach: bool = False,
                 fused: bool = False, _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, momentum=momentum, dampening=dampening,
                         weight_decay=weight_decay, nesterov=nesterov, maximize=maximize, foreach=foreach)


class _FunctionalAdam(_OneByOne):
    optimizer = optim.Adam

    def __init__(self, params: list[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False, maximize: bool = False,
                 foreach: bool = False, fused: bool = False, _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                         amsgrad=amsgrad, maximize=maximize, foreach=foreach)


class _FunctionalAdamW(_OneByOne):
    optimizer = optim.AdamW

    def __init__(self, params: list[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, maximize: bool = False,
                 foreach: bool = False, fused: bool = False, _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                         amsgrad=amsgrad, maximize=maximize, foreach=foreach)


class _FunctionalAdamax(_Functional):
    optimizer = optim.Adamax

    def __init__(self, params: list[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, foreach: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                         foreach=foreach, maximize=maximize)


class _FunctionalAdadelta(_Functional):
    optimizer = optim.Adadelta

    def __init__(self, params: list[Tensor], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0.0, foreach: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay,
                         foreach=foreach, maximize=maximize)


class _FunctionalAdagrad(_Functional):
    optimizer = optim.Adagrad

    def __init__(self, params: list[Tensor], lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, warmup_lr_multiplier: float = 1.0,
                 warmup_num_iters: float = 0.0, eps: float = 1e-10, coalesce_grad: bool = True, foreach: bool = False,
                 fused: bool = False, maximize: bool = False, _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                         initial_accumulator_value=initial_accumulator_value, eps=eps, foreach=foreach,
                         maximize=maximize)


class _FunctionalRMSprop(_Functional):
    optimizer = optim.RMSprop

    def __init__(self, params: list[Tensor], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, foreach: bool = False,
                 maximize: bool = False, _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay,
                         momentum=momentum, centered=centered, foreach=foreach, maximize=maximize)


class _FunctionalRprop(_Functional):
    optimizer = optim.Rprop

    def __init__(self, params: list[Tensor], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), foreach: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False) -> None:
        super().__init__(params, _allow_empty_param_list, lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach,
                         maximize=maximize)
