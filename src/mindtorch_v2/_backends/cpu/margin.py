"""Kernels of the multi-class hinge losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtype import FROM_NUMPY, HALF_TYPES, cpp_name

Array = Any
NONE, MEAN = 0, 1


def _rows(x: Array) -> Array:
    """Scores of one sample or of many, one sample a row; computed in float32 at least."""
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    return rows.astype(np.float32) if x.dtype in HALF_TYPES else rows


def _finish(losses: Array, x: Array, reduction: int, shape: tuple[int, ...]) -> Array:
    """The losses, reduced or in the shape of single losses."""
    if reduction == NONE:
        made = losses.reshape(shape)
    else:
        made = losses.sum()
        if reduction == MEAN:
            # NumPy's mean warns if there is nothing; here that is NaN, as other losses'.
            made = made / losses.dtype.type(losses.size)
    return np.asarray(made, x.dtype)


def _spread(grad: Array, slopes: Array, x: Array, reduction: int) -> Array:
    """The gradient of the losses, each multiplied into its row of slopes."""
    if reduction == MEAN:
        slopes = slopes / np.asarray(len(slopes), slopes.dtype)
    return (slopes * grad.reshape(-1, 1)).reshape(x.shape).astype(x.dtype)


# -- one true class ----------------------------------------------------------------------------------------------------


def _check_classes(target: Any) -> None:
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {cpp_name(FROM_NUMPY[target.dtype].name)}")


def check_margin(x: Any, target: Any, p: Any, weight: Any) -> None:
    """The fault in the arguments of `multi_margin_loss`, on any device, apart from the classes themselves."""
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if x.ndim > 2 or (x.ndim and not x.shape[-1]):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(x.shape)}")
    count, classes = (1, *x.shape, *[1] * (1 - x.ndim))[-2:]
    if target.ndim > 1 or target.size != count:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
                           f"samples. Expected target size [{count}], but got {list(target.shape)}: inconsistent "
                           f"target size for input of shape {list(x.shape)}")
    if weight is not None and weight.shape not in ((classes,), ()):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_classes(target)


def _missed(x: Array, target: Array, margin: Any) -> tuple[Array, Array]:
    """How far each other class comes too near to the true one, and the true classes."""
    rows, true = _rows(x), target.reshape(-1, 1)
    missed = np.maximum(rows - np.take_along_axis(rows, true, 1) + np.asarray(margin, rows.dtype), 0)
    np.put_along_axis(missed, true, 0, 1)
    return missed, true


def multi_margin_loss(x: Array, target: Array, p: Any, margin: Any, weight: Array | None, reduction: int) -> Array:
    """The hinge loss of the true class against each other class."""
    check_margin(x, target, p, weight)
    if np.any((target < 0) | (target >= x.size // max(target.size, 1))):
        raise RuntimeError("target out of range")
    missed, true = _missed(x, target, margin)
    losses = (missed if p == 1 else missed * missed).sum(1) / np.asarray(missed.shape[1], missed.dtype)
    if weight is not None:
        losses = losses * weight.reshape(-1)[true[:, 0]]
    return _finish(losses, x, reduction, target.shape)


def multi_margin_loss_backward(grad: Array, x: Array, target: Array, p: Any, margin: Any, weight: Array | None,
                               reduction: int) -> Array:
    """Every class that came too near is pushed away, and the true one towards them."""
    missed, true = _missed(x, target, margin)
    slopes = (missed > 0).astype(missed.dtype) if p == 1 else 2 * missed
    slopes = slopes / np.asarray(missed.shape[1], missed.dtype)
    if weight is not None:
        slopes = slopes * weight.reshape(-1)[true]
    np.put_along_axis(slopes, true, -slopes.sum(1, keepdims=True), 1)
    return _spread(grad, slopes, x, reduction)


# -- several true classes ----------------------------------------------------------------------------------------------


def _listed(target: Array) -> tuple[Array, Array]:
    """The classes listed in each row, which ends at its first -1, and which entries count."""
    rows = target.reshape(1, -1) if target.ndim < 2 else target
    return np.maximum(rows, 0), np.logical_and.accumulate(rows >= 0, 1)


def _is_target(x: Array, target: Array) -> Array:
    classes, counted = _listed(target)
    made = np.zeros(classes.shape, x.dtype)
    rows = np.broadcast_to(np.arange(len(classes))[:, None], classes.shape)
    made[rows[counted], classes[counted]] = 1
    return made


def _pairs(x: Array, target: Array, is_target: Array) -> tuple[Array, Array]:
    """How far each unlisted class comes too near to each listed one: sample, listed, other."""
    rows = _rows(x)
    classes, counted = _listed(target)
    missed = np.maximum(rows[:, None, :] - np.take_along_axis(rows, classes, 1)[:, :, None] + rows.dtype.type(1), 0)
    missed *= counted[:, :, None]
    missed *= (is_target.reshape(rows.shape) == 0)[:, None, :]
    return missed, classes


def multilabel_margin_loss(x: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    """The hinge loss of every true class against every other class, and which classes are true."""
    if x.ndim > 2 or (x.ndim and not x.shape[-1]):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(x.shape)}")
    if target.size != x.size or (x.ndim > 1 and target.shape != x.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}")
    _check_classes(target)
    if np.any((target < -1) | (target >= max(_rows(x).shape[1], 1))):
        raise RuntimeError("argument #2 'target' is out of range")
    is_target = _is_target(x, target)
    missed, _ = _pairs(x, target, is_target)
    losses = missed.sum((1, 2)) / np.asarray(missed.shape[2], missed.dtype)
    return _finish(losses, x, reduction, x.shape[:1] if x.ndim > 1 else ()), is_target.reshape(target.shape)


def multilabel_margin_loss_backward(grad: Array, x: Array, target: Array, reduction: int, is_target: Array) -> Array:
    """Each pair that is too near pulls its two classes apart."""
    missed, classes = _pairs(x, target, is_target)
    near = (missed > 0).astype(missed.dtype) / np.asarray(missed.shape[2], missed.dtype)
    slopes = near.sum(1)
    rows = np.broadcast_to(np.arange(len(classes))[:, None], classes.shape)
    np.subtract.at(slopes, (rows, classes), near.sum(2))
    return _spread(grad, slopes, x, reduction)
