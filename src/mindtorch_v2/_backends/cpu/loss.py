"""Loss kernels. `reduction` is 0 for none, 1 for the mean, 2 for the sum; 16-bit floats are computed in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import FLOAT_DTYPES, REAL_FLOATS, check_cast, pretty, scalar_array
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY, HALF_TYPES
from . import providers
from .activation import log_sigmoid_forward
from .elements import (
    DIFFERENCE_TIMES,
    HUBER,
    HUBER_SLOPE,
    SMOOTH_L1,
    SMOOTH_L1_SLOPE,
    SQUARED_DIFFERENCE,
    formula,
)
from .memory import copy_, empty, empty_like, empty_like_contiguous, fill_, zero_
from .pointwise import broadcasting
from .reduce import divide_step, mean_into_step, mean_step, sum_all, sum_into_step

Array = Any
NONE, MEAN, SUM = range(3)


sum_step = step("aten::sum", "", lambda values: (values, None))(lambda values: np.asarray(sum_all(values)))
_subtract_step = step("aten::sub_", "Tensor", lambda a, b: (a, b, 1))(lambda a, b: np.subtract(a, b, a))
_multiply_step = step("aten::mul_", "Tensor")(lambda a, b: np.multiply(a, b, a))
_log_sigmoid_forward = step("aten::log_sigmoid_forward")(log_sigmoid_forward)
_log_sigmoid = step("aten::log_sigmoid")(lambda a: _log_sigmoid_forward(a)[0])


def wide(a: Array) -> Array:
    """16-bit floats as float32."""
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def require_float(a: Array, kernel: str) -> None:
    """Refuse integers as PyTorch does."""
    if a.dtype not in REAL_FLOATS:
        raise unsupported(kernel, a.dtype)


def reduce(values: Array, reduction: int, dtype: np.dtype) -> Array:
    """The losses, their mean or their sum; the mean of nothing is NaN."""
    if reduction == NONE:
        return values.astype(dtype, copy=False)
    total = mean_step(values) if reduction == MEAN else sum_step(values)
    return np.asarray(total).astype(dtype, copy=False)


def reduce_within(losses: Array, total: Array, dtype: np.dtype, put: Any) -> Array:
    """A mean or sum of losses, written to the losses' memory: as in PyTorch, it keeps all of that memory."""
    if losses.dtype != dtype or not losses.size:
        return np.asarray(total).astype(dtype, copy=False)
    made = losses[(0,) * losses.ndim + (...,)]
    put(made, total)
    return made


def _reduce_difference(losses: Array, reduction: int, dtype: np.dtype) -> Array:
    """The losses, or their mean or sum in their memory."""
    if reduction == NONE:
        return losses.astype(dtype, copy=False)
    return reduce_within(losses, mean_into_step(losses) if reduction == MEAN else sum_into_step(losses), dtype,
                         _put)


def _put(target: Array, number: Array) -> None:
    target[...] = number


def _difference(a: Array, b: Array, reduction: int) -> Array:
    """`a - b`, in memory that is allocated separately if it will be reduced to a single number."""
    a, b = wide(a), wide(b)
    return np.subtract(a, b, None if reduction == NONE or a.shape != b.shape else empty(a.shape, a.dtype))


def _by_formula(kind: int, a: Array, b: Array, reduction: int, p: float = 0.0) -> Array | None:
    """Losses by the C kernels if they take these arrays, in memory as from `_difference`."""
    if not providers.elements(a, b):
        return None
    return formula(kind, a, b, p, out=None if reduction == NONE else empty(a.shape, a.dtype))


def _slope_by_formula(kind: int, a: Array, b: Array, grad: Array, reduction: int, p: float) -> Array | None:
    """The slope of losses with a single target number, by the C kernels if they take these arrays."""
    if grad.size != 1 or not providers.elements(a, b):
        return None
    return formula(kind, a, b, p, float(share(grad, a.size, reduction).reshape(())),
                   out=empty_like_contiguous(a, a.dtype))


def _difference_like(a: Array, b: Array) -> Array:
    """`a - b` in row-major order."""
    x, y = wide(a), wide(b)
    if x.shape != y.shape or x.dtype != y.dtype:
        return np.asarray(x - y)
    return np.subtract(x, y, empty_like_contiguous(a, x.dtype))


def _keep_within(a: Array, limit: float) -> None:
    """Limit the elements of an array to `-limit` and `limit`."""
    np.maximum(a, scalar_array(-limit, a.dtype), out=a)
    np.minimum(a, scalar_array(limit, a.dtype), out=a)


def share(grad: Array, count: int, reduction: int) -> Array:
    """The gradient of one element's loss."""
    grad = wide(grad)
    return grad / grad.dtype.type(count) if reduction == MEAN else grad


# -- elementwise losses ------------------------------------------------------------------------------------------------


def mse(a: Array, b: Array, reduction: int) -> Array:
    """Squared difference."""
    require_float(a, "mse_cpu")
    losses = _by_formula(SQUARED_DIFFERENCE, a, b, reduction)
    if losses is None:
        losses = np.asarray(_difference(a, b, reduction))
        np.multiply(losses, losses, losses)
    return _reduce_difference(losses, reduction, a.dtype)


def mse_backward(grad: Array, a: Array, b: Array, reduction: int) -> Array:
    """2 (a - b), scaled."""
    if grad.size == 1 and providers.elements(a, b):
        return formula(DIFFERENCE_TIMES, a, b, float((share(grad, a.size, reduction) * 2).reshape(())),
                       out=empty_like_contiguous(a, a.dtype))
    difference = _difference_like(a, b)
    np.multiply(difference, share(grad, difference.size, reduction) * 2, difference)
    return difference.astype(a.dtype, copy=False)


def smooth_l1(a: Array, b: Array, reduction: int, beta: float) -> Array:
    """Quadratic below `beta`, linear above."""
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    require_float(a, "smooth_l1_cpu")
    if beta > 0 and (losses := _by_formula(SMOOTH_L1, a, b, reduction, beta)) is not None:
        return _reduce_difference(losses, reduction, a.dtype)
    size = np.asarray(_difference(a, b, reduction))
    np.abs(size, size)
    if beta > 0:
        # With m the smaller of size and beta, m (size - m / 2) / beta covers both forms; choosing would take longer.
        smaller = np.minimum(size, scalar_array(beta, size.dtype))
        np.subtract(size, smaller * scalar_array(0.5, size.dtype), size)
        np.multiply(size, smaller, size)
        if beta != 1:
            np.divide(size, scalar_array(beta, size.dtype), size)
    return _reduce_difference(size, reduction, a.dtype)


def smooth_l1_backward(grad: Array, a: Array, b: Array, reduction: int, beta: float) -> Array:
    """Slope of `smooth_l1`."""
    if beta > 0 and (made := _slope_by_formula(SMOOTH_L1_SLOPE, a, b, grad, reduction, beta)) is not None:
        return made
    slope = _difference_like(a, b)
    if beta > 0:
        # Beyond `beta` the slope is the sign.
        np.divide(slope, scalar_array(beta, slope.dtype), slope)
        _keep_within(slope, 1.0)
    else:
        np.sign(slope, slope)
    np.multiply(slope, share(grad, slope.size, reduction), slope)
    return slope.astype(a.dtype, copy=False)


def huber(a: Array, b: Array, reduction: int, delta: float) -> Array:
    """Quadratic below `delta`, linear with slope `delta` above."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    require_float(a, "huber_cpu")
    x, y = wide(a), wide(b)
    if providers.elements(a, b):
        return reduce(formula(HUBER, a, b, delta, out=empty_like(a, x.dtype)), reduction, a.dtype)
    size = np.asarray(x - y) if x.shape != y.shape else np.subtract(x, y, empty_like(a, x.dtype))
    np.abs(size, size)
    smaller = np.minimum(size, scalar_array(delta, size.dtype))
    np.subtract(size, smaller * scalar_array(0.5, size.dtype), size)
    np.multiply(size, smaller, size)
    return reduce(size, reduction, a.dtype)


def huber_backward(grad: Array, a: Array, b: Array, reduction: int, delta: float) -> Array:
    """Slope of `huber`: the difference, clipped."""
    if (made := _slope_by_formula(HUBER_SLOPE, a, b, grad, reduction, delta)) is not None:
        return made
    slope = _difference_like(a, b)
    _keep_within(slope, delta)
    np.multiply(slope, share(grad, slope.size, reduction), slope)
    return slope.astype(a.dtype, copy=False)


@broadcasting
def soft_margin(a: Array, target: Array, reduction: int) -> Array:
    """log(1 + exp(-target a))."""
    if a.dtype not in FLOAT_DTYPES:
        check_cast(np.dtype(np.float32), a.dtype)
    return reduce(np.asarray(np.log1p(np.exp(-wide(target) * wide(a)))), reduction, a.dtype)


def soft_margin_backward(grad: Array, a: Array, target: Array, reduction: int) -> Array:
    """-target z / (1 + z) with z = exp(-target a)."""
    z = np.exp(-wide(target) * wide(a))
    slope = np.asarray(-wide(target) * z / (z + z.dtype.type(1)))
    return np.asarray(slope * share(grad, slope.size, reduction)).astype(a.dtype, copy=False)


# -- binary cross entropy ------------------------------------------------------------------------------------------


def bce(a: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    """-(target log a + (1 - target) log(1 - a)), logarithms not below -100."""
    require_float(a, "binary_cross_entropy")
    if a.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {pretty(FROM_NUMPY[target.dtype])} but expected "
                           f"{pretty(FROM_NUMPY[a.dtype])}")
    x, t = wide(a), wide(target)
    for name, values in (("input", x), ("target", t)):
        if not np.all((values >= 0) & (values <= 1)):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    floor = x.dtype.type(-100)
    losses = empty_like(x, x.dtype)
    np.subtract((t - 1) * np.maximum(np.log1p(-x), floor), t * np.maximum(np.log(x), floor), losses)
    if weight is not None:
        np.multiply(losses, wide(weight), losses)
    if reduction == NONE:
        return losses.astype(a.dtype, copy=False)
    return reduce_within(losses, mean_step(losses) if reduction == MEAN else sum_step(losses), a.dtype, copy_)


def bce_backward(grad: Array, a: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    """(a - target) / (a (1 - a)); the denominator is kept away from zero."""
    x, t = wide(a), wide(target)
    slope = empty_like(x, x.dtype)
    np.divide(x - t, np.maximum((1 - x) * x, x.dtype.type(1e-12)), slope)
    slope *= wide(grad)
    if weight is not None:
        slope *= wide(weight)
    if reduction == MEAN:
        divide_step(slope, slope.size)
    return slope.astype(a.dtype, copy=False)


def bce_with_logits(a: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int) -> Array:
    """Binary cross entropy of sigmoid(a), without overflow."""
    x, t = wide(a), wide(target)
    below = _log_sigmoid(x)
    if pos_weight is not None:
        below = below * ((wide(pos_weight) - 1) * t + 1)
    if t.shape == below.shape and t.dtype == below.dtype:
        losses = fill_(empty_like(t, t.dtype), 1)
        _subtract_step(_multiply_step(_subtract_step(losses, t), x), below)
    else:
        losses = (1 - t) * x - below
    if weight is not None:
        losses = losses * wide(weight)
    losses = np.asarray(losses)
    return reduce(losses, reduction, a.dtype if a.dtype in HALF_TYPES else losses.dtype)


# -- negative log likelihood -------------------------------------------------------------------------------------------


def _check_dtypes(target: Array) -> None:
    if target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {pretty(FROM_NUMPY[target.dtype])}"
        )


def _check_weight(weight: Array | None, classes: int) -> None:
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _check_nll(a: Array, target: Array) -> None:
    if not 1 <= a.ndim <= 2:
        raise RuntimeError("input tensor should be 1D or 2D")
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if a.ndim == 1 and target.size != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.size}")
    if a.ndim == 2 and target.shape[:1] != a.shape[:1]:
        raise RuntimeError(f"size mismatch (got input: {list(a.shape)}, target: {list(target.shape)})")


def _check_nll2d(a: Array, target: Array) -> None:
    if target.ndim != 3:
        raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                           f"{target.ndim}")
    if a.ndim != 4:
        raise RuntimeError("only batches of spatial inputs supported (4D tensors), but got input of dimension: "
                           f"{a.ndim}")
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {pretty(FROM_NUMPY[target.dtype])}")
    if a.shape[:1] + a.shape[2:] != target.shape:
        raise RuntimeError(f"size mismatch (got input: {list(a.shape)} , target: {list(target.shape)}")


def _pick(target: Array, weight: Array | None, classes: int, ignore_index: int,
          dtype: np.dtype) -> tuple[Array, Array | None]:
    """Class of each sample, 0 for ignored ones, and each sample's weight, 0 for ignored ones; None if all weigh 1."""
    target = np.ascontiguousarray(target, np.int64)
    valid = target != ignore_index
    everyone = bool(valid.all())
    picked = target if everyone else np.where(valid, target, 0)
    # Read as unsigned, negative classes are large, so one comparison finds both kinds of wrong classes.
    outside = picked.view(np.uint64) >= classes
    if outside.any():
        raise IndexError(f"Target {int(picked[outside].flat[0])} is out of bounds.")
    if weight is None:
        return picked, None if everyone else valid.astype(dtype)
    weights = wide(weight)[picked]
    return picked, weights if everyone else weights * valid


def _places(picked: Array, shape: tuple[int, ...]) -> Array:
    """Positions of the picked classes in the flat array of the given shape, whose dimension 1 is the class."""
    batch, classes, *rest = shape
    inner = math.prod(rest)
    places = (picked.reshape(batch, inner) + np.arange(batch)[:, None] * classes) * inner
    return places + np.arange(inner) if inner != 1 else places


def _samples(a: Array, target: Array) -> tuple[Array, Array]:
    """Values and classes in the form of the C kernels: (batch, classes, inner) and (batch, inner)."""
    batch, classes = a.shape[:2]
    return a.reshape(batch, classes, -1), np.ascontiguousarray(target, np.int64).reshape(batch, -1)


def _nll(a: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    """Losses of samples whose classes are along dimension 1, and the total weight."""
    _check_dtypes(target)
    if providers.rows(a) if weight is None else providers.rows(a, weight):
        losses = np.empty(target.shape, a.dtype)
        sums = providers.native.likelihoods(*_samples(a, target), weight, ignore_index, losses.reshape(len(a), -1))
        if sums is not None:
            total = np.array(sums[1], a.dtype)
            if reduction == NONE:
                return losses, total
            return np.array(sums[0] if reduction != MEAN else sums[0] / sums[1] if sums[1] else np.nan, a.dtype), total
    values = wide(a)
    picked, weights = _pick(target, weight, a.shape[1], ignore_index, values.dtype)
    losses = np.negative(values.reshape(-1).take(_places(picked, a.shape)).reshape(target.shape))
    if weights is None:
        total = values.dtype.type(picked.size)
    else:
        # An ignored sample counts nothing, even if its value is infinite.
        losses = np.where(weights == 0, values.dtype.type(0), losses * weights)
        total = weights.sum()
    if reduction == NONE:
        return losses.astype(a.dtype, copy=False), np.asarray(total).astype(a.dtype)
    made = losses.sum()
    if reduction == MEAN:
        made = np.true_divide(made, total)
    return np.asarray(made).astype(a.dtype), np.asarray(total).astype(a.dtype)


@providers.direct("nll_loss_forward")
def nll(a: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    """Negative log likelihood of one sample or a batch."""
    _check_nll(a, target)
    _check_weight(weight, a.shape[-1])
    if a.ndim == 2:
        return _nll(a, target, weight, reduction, ignore_index)
    loss, total = _nll(a[None], target.reshape(1), weight, reduction, ignore_index)
    return loss.reshape(()), total


def nll2d(a: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> tuple[Array, Array]:
    """Negative log likelihood of every pixel."""
    _check_nll2d(a, target)
    _check_weight(weight, a.shape[1])
    return _nll(a, target, weight, reduction, ignore_index)


@providers.direct("nll_loss_backward")
def nll_backward(grad: Array, a: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int,
                 total_weight: Array) -> Array:
    """The negative weight at each sample's class, zero elsewhere."""
    values = a if a.ndim > 1 else a[None]
    target = target if a.ndim > 1 else target.reshape(1)
    given = (grad, total_weight) if weight is None else (grad, total_weight, weight)
    if values.size and a.dtype is np.dtype(np.float32) and providers.rows(*given):
        slopes = grad / total_weight if reduction == MEAN else grad
        made = zero_(np.empty(values.shape, a.dtype))
        if providers.native.likelihoods_back(*_samples(made, target), weight, ignore_index, np.asarray(slopes)):
            return made.reshape(a.shape)
    picked, weights = _pick(target, weight, values.shape[1], ignore_index, wide(a).dtype)
    slopes = np.negative(wide(grad))
    if reduction == MEAN:
        slopes = np.true_divide(slopes, wide(total_weight))
    if weights is not None:
        slopes = np.where(weights == 0, weights.dtype.type(0), slopes.reshape(_spread(picked, reduction)) * weights)
    made = zero_(np.empty(values.shape, a.dtype))
    places = _places(picked, values.shape)
    made.reshape(-1)[places] = slopes.reshape(places.shape) if slopes.size == places.size else slopes
    return made.reshape(a.shape)


def _spread(picked: Array, reduction: int) -> tuple[int, ...]:
    """Shape of the incoming gradient: one number per sample only without a reduction."""
    return picked.shape if reduction == NONE else ()
