"""Muon: momentum whose matrices are made nearly orthogonal."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._dtype import bfloat16
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import ParameterOptimizer

__all__ = ["Muon"]


def _orthogonal(matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Roughly the nearest orthogonal matrix, by Newton-Schulz steps of fifth order in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if matrix.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.to(bfloat16)
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = aten.matmul(x, x.t())
        x = aten.addmm(x, aten.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x


class Muon(ParameterOptimizer):
    """Momentum for two-dimensional parameters, with updates made nearly orthogonal."""

    late_options: ClassVar[dict[str, Any]] = {}

    def __init__(self, params: ParamsT, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for label, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{label} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError("Muon only supports 2D parameters whereas we found a parameter with size: "
                                     f"{parameter.size()}")

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if parameter.dtype.is_complex:
            raise RuntimeError("Muon does not support complex parameters")
        state["momentum_buffer"] = aten.zeros_like(grad)

    def update(self, parameter: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        buffer, momentum = state["momentum_buffer"], group["momentum"]
        aten.lerp_(buffer, grad, 1 - momentum)
        change = aten.lerp(grad, buffer, momentum) if group["nesterov"] else buffer
        change = _orthogonal(change, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = parameter.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = 0.2 * math.sqrt(max(rows, columns))
        else:
            rate = math.sqrt(max(1, rows / columns))
        lr = group["lr"].item() if isinstance(group["lr"], Tensor) else group["lr"]
        aten.mul_(parameter, 1 - lr * group["weight_decay"])
        aten.add_(parameter, change, alpha=-lr * rate)
