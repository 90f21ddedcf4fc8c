"""Losses."""

from __future__ import annotations

from typing import Any

from ...._shape import broadcast_shapes
from ..arrays import BOOL, NpuArray, contiguous, expanded, like, new, spread, viewed
from ..call import CALLS
from .expressions import product, sigmoid, times
from .functions import softplus
from .norms import ones
from .registry import COMPOSED, Kernel, composed
from .sums import mean, total

MEAN, SUM = 1, 2


def _loss_shape(shape: tuple[int, ...], reduction: int) -> tuple[int, ...]:
    return () if reduction in (MEAN, SUM) else shape


def _nll(call: str, planes: bool) -> tuple[Kernel, Kernel]:
    def forward(self: NpuArray, target: NpuArray, weight: Any, reduction: int,
                ignore: int) -> tuple[NpuArray, NpuArray]:
        single = self.ndim == 1
        x = viewed(contiguous(self), (1, *self.shape)) if single else self
        y = viewed(contiguous(target), (1,)) if single else target
        if not planes and (y.ndim != 1 or y.shape[0] != x.shape[0]):
            raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({y.shape[0]}).")
        weight = ones(self, (x.shape[1],)) if weight is None else weight
        out, count = new(self, _loss_shape(y.shape, reduction)), new(self, ())
        getattr(CALLS, call)(x, y, weight, reduction, ignore, out, count)
        if single and reduction not in (MEAN, SUM):
            out = viewed(out, ())
        return out, count

    def backward(grad: NpuArray, self: NpuArray, target: NpuArray, weight: Any, reduction: int, ignore: int,
                 count: NpuArray) -> NpuArray:
        single = self.ndim == 1
        x = viewed(contiguous(self), (1, *self.shape)) if single else self
        y = viewed(contiguous(target), (1,)) if single else target
        grad = viewed(contiguous(grad), (1,)) if single and reduction not in (MEAN, SUM) else grad
        weight = ones(self, (x.shape[1],)) if weight is None else weight
        out = new(x, x.shape)
        getattr(CALLS, f"{call}Backward")(contiguous(grad), x, y, weight, reduction, ignore, count, out)
        return viewed(out, self.shape) if single else out

    return forward, backward


COMPOSED["nll_loss_forward"], COMPOSED["nll_loss_backward"] = _nll("NLLLoss", False)
COMPOSED["nll_loss2d_forward"], COMPOSED["nll_loss2d_backward"] = _nll("NLLLoss2d", True)


@composed("mse_loss")
def mse_loss(self: NpuArray, target: NpuArray, reduction: int) -> NpuArray:
    """Squares of differences."""
    shape = broadcast_shapes(self.shape, target.shape)
    self, target = (contiguous(expanded(a, shape)) for a in (self, target))
    out = new(self, _loss_shape(shape, reduction))
    CALLS.MseLoss(self, target, reduction, out)
    return out


@composed("mse_loss_backward")
def mse_loss_backward(grad: NpuArray, self: NpuArray, target: NpuArray, reduction: int) -> NpuArray:
    """Gradient of squares of differences."""
    shape = broadcast_shapes(self.shape, target.shape)
    self, target, grad = (contiguous(expanded(a, shape)) for a in (self, target, grad))
    out = new(self, shape)
    CALLS.MseLossBackward(grad, self, target, reduction, out)
    return out


@composed("binary_cross_entropy_with_logits")
def bce_with_logits(self: NpuArray, target: NpuArray, weight: Any, pos_weight: Any, reduction: int) -> NpuArray:
    """Cross entropy of truth values and logits."""
    wide = [None if a is None else contiguous(expanded(a, self.shape)) for a in (weight, pos_weight)]
    out = new(self, _loss_shape(self.shape, reduction))
    CALLS.BinaryCrossEntropyWithLogits(contiguous(self), contiguous(target), *wide, reduction, out)
    return out


@composed("binary_cross_entropy")
def bce(self: NpuArray, target: NpuArray, weight: Any, reduction: int) -> NpuArray:
    """Cross entropy of truth values and probabilities. Logarithms are at least -100, so 0 and 1 give finite values."""
    if self.shape != target.shape:
        raise ValueError(f"Using a target size ({list(target.shape)}) that is different to the input size "
                         f"({list(self.shape)}) is deprecated. Please ensure they have the same size.")
    true, false = _bounded_logarithm(self), _bounded_logarithm(_complement(self))
    difference, out = like(true), like(true)
    CALLS.Sub(false, true, 1, difference)
    CALLS.Mul(target, difference, out)  # (t - 1) log(1 - x) - t log(x)
    CALLS.InplaceSub(out, false, 1)
    if weight is not None:
        CALLS.InplaceMul(out, expanded(weight, out.shape))
    return reduction_of(out, reduction)


def _complement(self: NpuArray) -> NpuArray:
    out = like(self)
    CALLS.Muls(self, -1, out)
    CALLS.InplaceAdds(out, 1, 1)
    return out


def _bounded_logarithm(self: NpuArray) -> NpuArray:
    logarithm, out = like(self), like(self)
    CALLS.Log(self, logarithm)
    CALLS.ClampMin(logarithm, -100.0, out)
    return out


@composed("binary_cross_entropy_backward")
def bce_backward(grad: NpuArray, self: NpuArray, target: NpuArray, weight: Any, reduction: int) -> NpuArray:
    """The gradient of that cross entropy."""
    product, divisor, difference, out = like(self), like(self), like(self), like(self)
    CALLS.Mul(self, _complement(self), product)
    CALLS.ClampMin(product, 1e-12, divisor)
    CALLS.Sub(self, target, 1, difference)
    CALLS.InplaceMul(difference, expanded(grad, difference.shape))
    CALLS.Div(difference, divisor, out)
    if weight is not None:
        CALLS.InplaceMul(out, expanded(weight, out.shape))
    if reduction == MEAN:
        CALLS.InplaceMuls(out, 1 / max(out.size, 1))
    return out


def reduction_of(made: NpuArray, reduction: int) -> NpuArray:
    """Losses of elements, reduced as requested."""
    if reduction == MEAN:
        return mean(made, None, False, None)
    return total(made, None, False, None) if reduction == SUM else made


@composed("smooth_l1_loss")
def smooth_l1_loss(self: NpuArray, target: NpuArray, reduction: int, beta: float) -> NpuArray:
    """Squares of small differences, sizes of large ones."""
    difference = spread(self, target)
    size, small = like(difference), like(difference, BOOL)
    CALLS.Sub(self, target, 1, difference)
    CALLS.Abs(difference, size)
    square, linear, out = like(difference), like(difference), like(difference)
    CALLS.Mul(difference, difference, square)
    CALLS.InplaceMuls(square, 0.5 / beta if beta else 0.0)
    CALLS.Subs(size, 0.5 * beta, 1, linear)
    CALLS.LtScalar(size, beta, small)
    CALLS.SWhere(small, square, linear, out)
    return reduction_of(out, reduction)


@composed("smooth_l1_loss_backward")
def smooth_l1_loss_backward(grad: NpuArray, self: NpuArray, target: NpuArray, reduction: int,
                            beta: float) -> NpuArray:
    """The gradient of squares of small differences and sizes of large ones: a limited slope."""
    difference = spread(self, target)
    CALLS.Sub(self, target, 1, difference)
    if beta:
        slope = like(difference)
        CALLS.Muls(difference, 1 / beta, slope)
        bounded = like(difference)
        CALLS.Clamp(slope, -1.0, 1.0, bounded)
    else:
        bounded = like(difference)
        CALLS.Sign(difference, bounded)
    if reduction == MEAN:
        CALLS.InplaceMuls(bounded, 1 / max(bounded.size, 1))
    out = spread(bounded, grad)
    CALLS.Mul(bounded, grad, out)
    return out


@composed("huber_loss")
def huber_loss(self: NpuArray, target: NpuArray, reduction: int, delta: float) -> NpuArray:
    """Squares of small differences, sizes of large ones, with another scale."""
    _positive(delta)
    return times(smooth_l1_loss(self, target, reduction, delta), delta)


@composed("huber_loss_backward")
def huber_loss_backward(grad: NpuArray, self: NpuArray, target: NpuArray, reduction: int, delta: float) -> NpuArray:
    """Its gradient."""
    return times(smooth_l1_loss_backward(grad, self, target, reduction, delta), delta)


def _positive(delta: float) -> None:
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")


@composed("soft_margin_loss")
def soft_margin_loss(self: NpuArray, target: NpuArray, reduction: int) -> NpuArray:
    """A smooth corner of how far the operand is on the wrong side."""
    return reduction_of(softplus(times(product(self, target), -1), 1, 20), reduction)


@composed("soft_margin_loss_backward")
def soft_margin_loss_backward(grad: NpuArray, self: NpuArray, target: NpuArray, reduction: int) -> NpuArray:
    """Its gradient."""
    slope = times(product(target, sigmoid(times(product(self, target), -1))), -1)
    return product(grad, times(slope, 1 / max(slope.size, 1)) if reduction == MEAN else slope)
