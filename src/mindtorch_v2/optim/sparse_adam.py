"""SparseAdam, for the gradients of embeddings with `sparse=True`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import number, sparse_like
from .optimizer import Optimizer, run_closure

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that moves only the rows that have a gradient, and only their averages.

    >>> import mindtorch_v2 as torch
    >>> table = torch.nn.Embedding(3, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> table(torch.tensor([1])).sum().backward()
    >>> torch.optim.SparseAdam(table.parameters(), lr=0.1).step()
    >>> (table.weight == before).all(1)
    tensor([ True, False,  True])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, maximize: bool = False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for position, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {position}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [(group, place) for group, options in enumerate(self.param_groups)
                  for place, parameter in enumerate(options["params"]) if parameter.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ones = [[group, place] for group, options in enumerate(self.param_groups)
                        for place, parameter in enumerate(options["params"]) if parameter.is_complex()]
        if complex_ones:
            raise ValueError(f"Complex params at indices {complex_ones}: SparseAdam does not support complex "
                             "parameters")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the rows that have a gradient; returns what `closure`, if given, returns."""
        with no_grad():
            loss = run_closure(closure)
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self.update(parameter, parameter.grad, group)
        return loss

    def update(self, parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = (aten.zeros_like(parameter) for _ in range(2))
        state["step"] += 1
        self.move(parameter, grad, state, group)

    @classmethod
    def move(cls, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step itself, with its count in the state."""
        grad = aten.coalesce(aten.neg(grad) if group["maximize"] else grad)
        values = aten._values(grad)
        if not values.numel():
            return
        beta1, beta2 = group["betas"]
        mean = cls.average(state["exp_avg"], grad, values, beta1)
        square = cls.average(state["exp_avg_sq"], grad, aten.pow(values, 2), beta2)
        deviation = aten.add_(aten.sqrt_(square), group["eps"])
        rate = number(group["lr"]) * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        aten.add_(parameter, sparse_like(grad, -rate * aten.div_(mean, deviation)))

    @staticmethod
    def average(held: Tensor, grad: Tensor, values: Tensor, beta: float) -> Tensor:
        """Move the rows of a running average towards new values, and return them."""
        before = aten._values(aten.sparse_mask(held, grad))
        change = aten.mul_(aten.sub(values, before), 1 - beta)
        aten.add_(held, sparse_like(grad, change))
        return aten.add_(change, before)
