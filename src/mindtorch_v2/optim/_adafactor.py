"""Adafactor."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._dtype import finfo
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import ParameterOptimizer, functional_forms, number, zero_step

__all__ = ["Adafactor"]

__getattr__ = functional_forms(__name__)


class Adafactor(ParameterOptimizer):
    """Adam-like steps whose second moments of matrices are kept as a row and a column."""

    late_options: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False}
    complex_as_real = False

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
                 foreach: bool | None = None, maximize: bool = False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                                  "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize})

    def step_group(self, group: dict[str, Any]) -> None:
        if any(p.grad is not None and p.dtype.is_complex for p in group["params"]):
            raise RuntimeError("Adafactor does not support complex parameters")
        super().step_group({**group, "differentiable": False})

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = zero_step()
        if grad.ndim > 1:
            shape = tuple(grad.shape)
            state["row_var"] = aten.zeros((*shape[:-1], 1), dtype=grad.dtype, device=grad.device)
            state["col_var"] = aten.zeros((*shape[:-2], 1, shape[-1]), dtype=grad.dtype, device=grad.device)
        else:
            state["variance"] = aten.zeros_like(grad)

    @staticmethod
    def _mean_square(grad: Any, dim: int) -> Any:
        return aten.linalg_vector_norm(grad, 2, (dim,), True).square_().div_(grad.size(dim))

    def update(self, parameter: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        count = state["step"].item()
        lr = number(group["lr"])
        eps1 = finfo(parameter.dtype).eps if group["eps"][0] is None else group["eps"][0]
        fresh = count ** group["beta2_decay"]
        size = aten.linalg_vector_norm(parameter, 2).item() / parameter.numel() ** 0.5
        rate = max(group["eps"][1], size) * min(lr, 1 / count**0.5)
        if group["weight_decay"] != 0:
            aten.mul_(parameter, 1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            row, column = state["row_var"], state["col_var"]
            aten.lerp_(row, self._mean_square(grad, -1), fresh)
            aten.lerp_(column, self._mean_square(grad, -2), fresh)
            estimate = aten.matmul(row, column).div_(row.mean(-2, keepdim=True).clamp_(min=eps1))
        else:
            aten.lerp_(state["variance"], grad * grad, fresh)
            estimate = state["variance"].clone()
        change = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        spread = aten.linalg_vector_norm(change, 2).item() / (change.numel() ** 0.5 * group["d"])
        aten.add_(parameter, change, alpha=-rate / max(1.0, spread))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        # Every parameter has a rate of its own, so lists gain nothing.
        for parameter, grad, state in zip(parameters, grads, states, strict=True):
            self.update(parameter, grad, state, group)
