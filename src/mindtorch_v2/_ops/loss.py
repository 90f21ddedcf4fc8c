"""Losses with kernels of their own. `reduction` is 0 for none, 1 for the mean, 2 for the sum, as in PyTorch."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import loss as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import declare
from .._dispatch.state import THREAD
from .._tensor import Tensor

NONE, MEAN, SUM = kernels.NONE, kernels.MEAN, kernels.SUM


def reduced(losses: Tensor, reduction: int) -> Tensor:
    """The losses themselves, their mean or their sum."""
    if reduction == MEAN:
        return aten.mean(losses)
    return aten.sum(losses) if reduction == SUM else losses


def _curved(grad: Tensor, grad_output: Tensor, curvature: Any, reduction: int) -> Any:
    """Second derivative of an elementwise loss, applied to the two gradients that meet at it."""
    made = grad * grad_output * curvature
    return made / grad._a.size if reduction == MEAN else made


def _inside(self: Tensor, target: Any, limit: float) -> Any:
    """1 where the difference is below the limit, else 0."""
    return aten.to(aten.lt(aten.abs(aten.sub(self, target)), limit), self.dtype)


def _smooth_curvature(self: Tensor, target: Any, beta: float) -> Any:
    return _inside(self, target, beta) / beta if beta > 0 else 0


# -- losses of a difference --------------------------------------------------------------------------------------------
# The target's gradient is that of the input with the two exchanged. The backward ops are linear in the gradient they
# get, so their own derivative for it is themselves; the engine sums it if the gradient was a single number.

declare(
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", cpu=kernels.mse, promote="binary", where="n",
    grad={
        "self": lambda grad, self, target, reduction: aten.mse_loss_backward(grad, self, target, reduction),
        "target": lambda grad, self, target, reduction: aten.mse_loss_backward(grad, target, self, reduction),
    },
)
declare(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    cpu=kernels.mse_backward, where="n",
    grad={
        "grad_output": lambda grad, self, target, reduction: aten.mse_loss_backward(grad, self, target, reduction),
        "self": lambda grad, grad_output, reduction: _curved(grad, grad_output, 2, reduction),
        "target": lambda grad, grad_output, reduction: -_curved(grad, grad_output, 2, reduction),
    },
)
declare(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor", cpu=kernels.smooth_l1,
    promote="binary", where="n",
    grad={
        "self": lambda grad, self, target, reduction, beta: aten.smooth_l1_loss_backward(
            grad, self, target, reduction, beta),
        "target": lambda grad, self, target, reduction, beta: aten.smooth_l1_loss_backward(
            grad, target, self, reduction, beta),
    },
)
declare(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
    cpu=kernels.smooth_l1_backward, where="n",
    grad={
        "grad_output": lambda grad, self, target, reduction, beta: aten.smooth_l1_loss_backward(
            grad, self, target, reduction, beta),
        "self": lambda grad, grad_output, self, target, reduction, beta: _curved(
            grad, grad_output, _smooth_curvature(self, target, beta), reduction),
        "target": lambda grad, grad_output, self, target, reduction, beta: -_curved(
            grad, grad_output, _smooth_curvature(self, target, beta), reduction),
    },
)
declare(
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor", cpu=kernels.huber,
    promote="binary", where="n",
    grad={
        "self": lambda grad, self, target, reduction, delta: aten.huber_loss_backward(
            grad, self, target, reduction, delta),
        "target": lambda grad, self, target, reduction, delta: aten.huber_loss_backward(
            grad, target, self, reduction, delta),
    },
)
declare(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    cpu=kernels.huber_backward, where="n",
    grad={
        "grad_output": lambda grad, self, target, reduction, delta: aten.huber_loss_backward(
            grad, self, target, reduction, delta),
        "self": lambda grad, grad_output, self, target, reduction, delta: _curved(
            grad, grad_output, _inside(self, target, delta), reduction),
        "target": lambda grad, grad_output, self, target, reduction, delta: -_curved(
            grad, grad_output, _inside(self, target, delta), reduction),
    },
)


def _soft_margin_curvature(self: Tensor, target: Any) -> Any:
    chance = aten.sigmoid(self * target)
    return target * target * chance * (1 - chance)


declare(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", cpu=kernels.soft_margin, where="n",
    grad={"self": lambda grad, self, target, reduction: aten.soft_margin_loss_backward(grad, self, target, reduction)},
)
declare(
    "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    cpu=kernels.soft_margin_backward, where="n",
    grad={
        "grad_output": lambda grad, self, target, reduction: aten.soft_margin_loss_backward(
            grad, self, target, reduction),
        "self": lambda grad, grad_output, self, target, reduction: _curved(
            grad, grad_output, _soft_margin_curvature(self, target), reduction),
    },
)

# -- binary cross entropy ------------------------------------------------------------------------------------------


def _weighted(made: Any, weight: Any, reduction: int, count: int) -> Any:
    if weight is not None:
        made = made * weight if THREAD.state.grad else aten.mul_(made, weight)
    if reduction != MEAN:
        return made
    return made / count if THREAD.state.grad else aten.div_(made, count)


# Keeps the second derivative finite where a chance is exactly 0 or 1.
_CERTAIN = 1e-12


def _bce_slope(grad: Tensor, grad_output: Tensor, self: Tensor, target: Any, weight: Any, reduction: int) -> Any:
    slope = grad * (self - target) / ((self + _CERTAIN) * (1 - self + _CERTAIN))
    made = _weighted(slope, weight, reduction, self._a.size)
    return made if reduction == NONE else aten.sum(made)


def _bce_curvature(grad: Tensor, grad_output: Tensor, self: Tensor, target: Any, weight: Any, reduction: int) -> Any:
    curvature = (self * self - 2 * self * target + target) / (
        aten.pow(self + _CERTAIN, 2) * aten.pow(1 - self + _CERTAIN, 2))
    return _weighted(curvature * (grad * grad_output), weight, reduction, self._a.size)


declare(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    cpu=kernels.bce, where="n",
    grad={
        "self": lambda grad, self, target, weight, reduction: aten.binary_cross_entropy_backward(
            grad, self, target, weight, reduction),
        "target": lambda grad, self, weight, reduction: _weighted(
            -aten.logit(self) * grad, weight, reduction, self._a.size),
    },
)
declare(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, "
    "int reduction=1) -> Tensor", cpu=kernels.bce_backward, where="n",
    grad={
        "grad_output": _bce_slope,
        "self": _bce_curvature,
        "target": lambda grad, grad_output, self, weight, reduction: _weighted(
            -grad * grad_output / aten.clamp_min(self * (1 - self), _CERTAIN), weight, reduction, self._a.size),
    },
)


def _logits_gradient(grad: Tensor, self: Tensor, target: Any, weight: Any, pos_weight: Any,
                     reduction: int) -> Any:
    if pos_weight is None:
        made = aten.sigmoid(self)
        # In place where nobody will ask for the derivative of this.
        made = aten.sub(made, target) * grad if THREAD.state.grad else aten.mul_(aten.sub_(made, target), grad)
    else:
        positive = pos_weight * target
        made = aten.sub(aten.sigmoid(self) * (positive + 1 - target), positive) * grad
    return _weighted(made, weight, reduction, self._a.size)


def _logits_target_gradient(grad: Tensor, self: Tensor, weight: Any, pos_weight: Any,
                            reduction: int) -> Any:
    if pos_weight is None:
        made = aten.neg(self) * grad
    else:
        made = (aten.log_sigmoid(aten.neg(self)) - pos_weight * aten.log_sigmoid(self)) * grad
    return _weighted(made, weight, reduction, self._a.size)


declare(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1) -> Tensor", cpu=kernels.bce_with_logits, where="f",
    grad={"self": _logits_gradient, "target": _logits_target_gradient},
)

# -- negative log likelihood ---------------------------------------------------------------------------------------


def _declare_nll(suffix: str, kernel: Any, node: str) -> None:
    """`nll_loss` (one sample or a batch) and `nll_loss2d` (pixels) differ only in the shapes they take."""
    name = f"nll_loss{suffix}"
    if suffix:
        forward = {"self": lambda grad, self, target, weight, reduction, ignore_index, result1: (
            aten.nll_loss2d_backward(grad, self, target, weight, reduction, ignore_index, result1))}
        again = {"grad_output": lambda grad, target, weight, reduction, ignore_index: aten.nll_loss2d(
            grad, target, weight, reduction, ignore_index), "self": lambda grad: aten.zeros_like(grad)}
    else:
        forward = {"self": lambda grad, self, target, weight, reduction, ignore_index, result1: (
            aten.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, result1))}
        again = {"grad_output": lambda grad, target, weight, reduction, ignore_index: aten.nll_loss(
            grad, target, weight, reduction, ignore_index), "self": lambda grad: aten.zeros_like(grad)}
    arguments = "Tensor self, Tensor target, Tensor? weight"
    declare(
        f"{name}_forward({arguments}, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)",
        cpu=kernel, where="n", node=node, differentiable=(0,), grad=forward,
    )
    declare(
        f"{name}_backward(Tensor grad_output, {arguments}, int reduction, int ignore_index, Tensor total_weight)"
        " -> Tensor", cpu=kernels.nll_backward, where="n", grad=again,
    )
    declare(f"{name}({arguments}=None, int reduction=1, int ignore_index=-100) -> Tensor",
            composite=lambda *arguments: getattr(aten, f"{name}_forward")(*arguments)[0], where="n")


_declare_nll("", kernels.nll, "NllLossBackward0")
_declare_nll("2d", kernels.nll2d, "NllLoss2DBackward0")


def _nll_nd(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Tensor:
    shape, wanted = self._a.shape, target._a.shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and shape[:1] != wanted[:1]:
        given = wanted[0] if wanted else 0
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({given}).")
    if weight is not None and weight._a.dtype != self._a.dtype:
        raise RuntimeError(f"expected scalar type {pretty(self.dtype)} but found {pretty(weight.dtype)}")
    if len(shape) <= 2:
        return aten.nll_loss(self, target, weight, reduction, ignore_index)
    if len(shape) == 4:
        return aten.nll_loss2d(self, target, weight, reduction, ignore_index)
    expected = (shape[0], *shape[2:])
    if wanted != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(wanted)}")
    pixels = self._a.size // (shape[0] * shape[1]) if shape[0] * shape[1] else 0
    image = aten.view(aten.contiguous(self), (shape[0], shape[1], 1, pixels))
    labels = aten.view(aten.contiguous(target), (shape[0], 1, pixels))
    made = aten.nll_loss2d(image, labels, weight, reduction, ignore_index)
    return aten.view(made, expected) if reduction == NONE else made


declare("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> "
        "Tensor", composite=_nll_nd, where="n")
