"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.base import to_host
from .._backends.cpu import ctc as kernels
from .._backends.cpu.memory import empty
from .._construct import tensor
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor, wrap


def _backward(grad: Tensor, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, result0: Any,
              result1: Any, blank: int, zero_infinity: bool) -> Any:
    return aten._ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank,
                                   zero_infinity)


def _again(grad: Tensor) -> Any:
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


declare("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
        "bool zero_infinity=False) -> (Tensor, Tensor)", cpu=kernels.ctc_loss, where="f", differentiable=(0,),
        node="CtcLossBackward0", grad={"log_probs": _backward})
declare("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, "
        "int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> "
        "Tensor", cpu=kernels.ctc_loss_backward, where="n", node="CtcLossBackwardBackward0",
        grad={("grad", "log_probs"): _again})


def _numbers(name: str, lengths: Any) -> list[int]:
    if not isinstance(lengths, Tensor):
        return list(lengths)
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex:
        raise RuntimeError(f"{name} must be integral")
    return to_host(lengths._a).reshape(-1).tolist()


def _lengths_as(loss: Tensor, lengths: list[int]) -> Tensor:
    if type(loss._a) is not np.ndarray:
        return tensor(lengths, dtype=loss.dtype, device=loss.device)
    made = empty((len(lengths),), loss._a.dtype)
    made[...] = lengths
    return wrap(made)


def _ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
              zero_infinity: bool) -> Tensor:
    batched = log_probs._a.ndim == 3
    spoken = log_probs if batched else aten.unsqueeze(log_probs, 1)
    labels = targets if batched or targets._a.ndim == 2 else aten.unsqueeze(targets, 0)
    loss = aten._ctc_loss(spoken, labels, input_lengths, target_lengths, blank, zero_infinity)[0]
    if zero_infinity:
        loss = aten.where(aten.eq(loss, float("inf")), aten.zeros((), dtype=loss.dtype, device=loss.device), loss)
    if reduction == 1:
        counts = aten.clamp_min(_lengths_as(loss, target_lengths), 1)
        return aten.mean(aten.div(loss, counts))
    if reduction == 2:
        return aten.sum(loss)
    return loss if batched else aten.squeeze(loss, 0)


declare("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
        "int reduction=1, bool zero_infinity=False) -> Tensor", composite=_ctc_loss, where="n")


def _ctc_loss_tensors(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int,
                      reduction: int, zero_infinity: bool) -> Tensor:
    return _ctc_loss(log_probs, targets, _numbers("input_lengths", input_lengths),
                     _numbers("target_lengths", target_lengths), blank, reduction, zero_infinity)


declare("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
        "int reduction=1, bool zero_infinity=False) -> Tensor", composite=_ctc_loss_tensors, where="n")


@choose("ctc_loss", where="f")
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: int = 0, zero_infinity: bool = False) -> Tensor:
    """Minus the log-likelihood of label sequences, summed over all ways to spread them over the time steps."""
    if isinstance(input_lengths, Tensor) and isinstance(target_lengths, Tensor):
        return aten.ctc_loss__Tensor(log_probs, targets, input_lengths, target_lengths, blank, reduction,
                                     zero_infinity)
    return aten.ctc_loss__IntList(log_probs, targets, _numbers("input_lengths", input_lengths),
                                  _numbers("target_lengths", target_lengths), blank, reduction, zero_infinity)
