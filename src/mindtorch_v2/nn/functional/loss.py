"""Losses that measure how far predictions are from targets of the same shape, or from classes."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.autocast import casts
from ..._dispatch.namespace import aten
from ..._dispatch.promotion import pretty
from ..._dtype import int64
from ..._shape import broadcast_shapes
from ..._tensor import Tensor
from ._reduction import get_enum, resolve
from ._refusing import refuse_gradient


def reduced(loss: Tensor, reduction: str, complaint: str = "{} is not valid") -> Tensor:
    """A loss per element, reduced by name."""
    if reduction == "none":
        return loss
    if reduction == "mean":
        return aten.mean(loss)
    if reduction == "sum":
        return aten.sum(loss)
    raise ValueError(complaint.format(reduction))


def expanded(input: Tensor, target: Tensor) -> Any:
    """Both in their common shape, with a warning if they were not in it already."""
    if target._a.shape != input._a.shape:
        warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
                      "This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
                      "same size.", stacklevel=3)
    return aten.broadcast_tensors(input, target)


INVALID_MODE = "Invalid reduction mode: {}. Expected one of 'none', 'mean', 'sum'."


def weighted(errors: Tensor, weight: Tensor, input: Tensor, reduction: str, by_weight: bool) -> Tensor:
    """Errors times weights, reduced; with `by_weight` the mean divides by the sum of the weights."""
    if weight._a.shape != input._a.shape:
        raise ValueError("Weights and input must have the same size.")
    scaled = aten.mul(errors, weight)
    if by_weight and reduction == "mean":
        return aten.div(aten.sum(scaled), aten.sum(weight))
    return reduced(scaled, reduction, INVALID_MODE)


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The absolute difference."""
    given, wanted = expanded(input, target)
    reduction = resolve(size_average, reduce, reduction)
    if weight is not None:
        return weighted(aten.abs(aten.sub(given, wanted)), weight, input, reduction, by_weight=True)
    return aten.l1_loss(given, wanted, get_enum(reduction))


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The squared difference."""
    given, wanted = expanded(input, target)
    reduction = resolve(size_average, reduce, reduction)
    if weight is not None:
        return weighted(aten.pow(aten.sub(given, wanted), 2), weight, input, reduction, by_weight=True)
    return aten.mse_loss(given, wanted, get_enum(reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Squared below `beta`, absolute above."""
    given, wanted = expanded(input, target)
    number = get_enum(resolve(size_average, reduce, reduction))
    return aten.l1_loss(given, wanted, number) if beta == 0.0 else aten.smooth_l1_loss(given, wanted, number, beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """`smooth_l1_loss` scaled by `delta`."""
    given, wanted = expanded(input, target)
    if weight is not None:
        return weighted(aten.huber_loss(given, wanted, 0, delta), weight, input, reduction, by_weight=False)
    made = aten.huber_loss(given, wanted, get_enum(reduction), delta)
    # The other losses of two tensors have the common dtype, this one has the input's.
    return made if made.dtype is input.dtype or casts((input, target)) else aten.to(made, input.dtype)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """Between logits and class numbers or class probabilities.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    if size_average is not None or reduce is not None:
        reduction = resolve(size_average, reduce, reduction)
    if weight is not None and not target.is_floating_point():
        refuse_gradient("nll_loss_forward", "weight", weight)
    return aten.cross_entropy_loss(input, target, weight, get_enum(reduction), ignore_index, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Minus the log-probability of the target class."""
    refuse_gradient("nll_loss_forward", "weight", weight)
    return aten.nll_loss_nd(input, target, weight, get_enum(resolve(size_average, reduce, reduction)), ignore_index)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Between probabilities and targets in `[0, 1]`."""
    number = get_enum(resolve(size_average, reduce, reduction))
    if target._a.shape != input._a.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
                         "deprecated. Please ensure they have the same size.")
    if weight is not None:
        refuse_gradient("binary_cross_entropy", "weight", weight)
        weight = aten.expand(weight, broadcast_shapes(target._a.shape, weight._a.shape))
    return aten.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Between logits and targets in `[0, 1]`."""
    number = get_enum(resolve(size_average, reduce, reduction))
    if target._a.shape != input._a.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if target._a.dtype.kind in "iub":
        raise RuntimeError(f"result type {pretty(input.dtype)} can't be cast to the desired output type "
                           f"{pretty(target.dtype)}: the target of binary_cross_entropy_with_logits must be floating "
                           "point")
    refuse_gradient("binary_cross_entropy_with_logits", "weight", weight)
    refuse_gradient("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    return aten.binary_cross_entropy_with_logits__default(input, target, weight, pos_weight, number)


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities `input` from `target`."""
    old_flags = size_average is not None or reduce is not None
    if reduction == "mean" and not old_flags:
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size."
                      "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                      "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                      stacklevel=2)
    if old_flags:
        number = get_enum(resolve(size_average, reduce, reduction))
    else:
        number = get_enum("sum" if reduction == "batchmean" else reduction)
    loss = aten.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.ndim:
        loss = aten.div(loss, input._a.shape[0])
    return loss


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """Minus the log-likelihood of counts under Poisson distributions."""
    number = get_enum(resolve(size_average, reduce, reduction))
    return aten.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """Minus the log-likelihood under normal distributions with means `input` and variances `var`."""
    if isinstance(var, float):
        var = aten.mul(aten.ones_like(input), var)
    if bool(aten.any(aten.lt(var, 0))):
        raise ValueError("var has negative entry/entries")
    have, want = var._a.shape, input._a.shape
    if have != want:
        if have == want[:-1]:
            var = aten.unsqueeze(var, -1)
        elif len(have) != len(want) or sum(v for i, v in zip(want, have, strict=True) if i != v) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = aten.clone(var)
    with no_grad():
        # The floor is not part of the function that is differentiated.
        aten.clamp_(var, min=eps)
    loss = aten.mul(aten.add(aten.log(var), aten.div(aten.pow(aten.sub(input, target), 2), var)), 0.5)
    if full:
        loss = aten.add_(loss, 0.5 * math.log(2 * math.pi))
    return reduced(loss, reduction)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """Minus the log-likelihood of label sequences, summed over all ways to spread them over the time steps."""
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity)


def _check_linear(input: Tensor, linear_weight: Tensor, bias: Tensor | None, target: Tensor,
                  ignore_index: int | None) -> None:
    """What is wrong with the shapes of `linear_cross_entropy`."""
    given, shape = tuple(input._a.shape), tuple(linear_weight._a.shape)
    if len(given) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(given)}")
    if len(shape) < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {len(shape)}")
    if given[-1] != shape[-1]:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), got "
                           f"{given[-1]} and {shape[-1]}, respectively")
    if bias is not None and tuple(bias._a.shape) != shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {shape[:-1]}, got {tuple(bias._a.shape)}")
    if len(shape) > 2 and len(given) == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, "
                           f"(N, {given[-1]}), got unbatched input with shape {given}")
    if ignore_index is not None and tuple(target._a.shape) == (*given[:-1], *shape[:-1]):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """`cross_entropy` of a linear map of the input, whose weight may have dimensions after the classes."""
    _check_linear(input, linear_weight, linear_bias, target, ignore_index)
    shape = linear_weight._a.shape
    if options is not None:
        if len(shape) == 2 and not label_smoothing and target.dtype is int64 and reduction in ("none", "mean", "sum"):
            return _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        warnings.warn("linear_cross_entropy: ``options`` ignored; chunks need reduction in {'mean','sum','none'}, "
                      "label_smoothing == 0, target.dtype == int64 and no dimensions after the classes. Got "
                      f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
                      f"out_features={tuple(shape[1:-1])}", stacklevel=2)
    flat = aten.reshape(linear_weight, (-1, shape[-1])) if len(shape) > 2 else linear_weight
    bias = aten.reshape(linear_bias, (-1,)) if linear_bias is not None and linear_bias.ndim > 1 else linear_bias
    logits = aten.linear(input, flat, bias)
    logits = aten.reshape(logits, (*input._a.shape[:-1], *shape[:-1]))
    return cross_entropy(logits, target, weight=weight, reduction=reduction, label_smoothing=label_smoothing,
                         ignore_index=-100 if ignore_index is None else ignore_index)


def _in_chunks(input: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
               reduction: str, ignore_index: int | None, options: Any) -> Tensor:
    """`linear_cross_entropy` of some samples at a time, whose scores backward computes again."""
    from ...utils.checkpoint import checkpoint

    rows, classes = (input, target) if input.ndim > 1 else (aten.unsqueeze(input, 0), aten.unsqueeze(target, 0))
    count, features = rows._a.shape
    ignored = -100 if ignore_index is None else ignore_index
    kind = options.computed_in(input.dtype)

    def losses(some: Tensor, aims: Tensor) -> Tensor:
        parts = [None if one is None else aten.to(one, kind) for one in (some, linear_weight, bias, weight)]
        return cross_entropy(aten.linear(*parts[:3]), aims, weight=parts[3], ignore_index=ignored,
                             reduction="none" if reduction == "none" else "sum")

    step = options.rows_at_a_time(count, features, linear_weight._a.shape[0])
    made = [checkpoint(losses, rows[start:start + step], classes[start:start + step], use_reentrant=False)
            for start in range(0, max(count, 1), step)]
    if reduction == "none":
        each = aten.to(aten.cat(made), input.dtype)
        return each if input.ndim > 1 else aten.squeeze(each, 0)
    total = made[0] if len(made) == 1 else aten.sum(aten.stack(made))
    if reduction == "mean":
        counted = aten.ne(classes, ignored)
        share = counted if weight is None else aten.where(
            counted, aten.index_select(weight, 0, aten.where(counted, classes, 0)), 0.0)
        total = aten.div(total, aten.to(aten.sum(share), total.dtype))
    return aten.to(total, input.dtype)
