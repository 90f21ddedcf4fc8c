"""Attention's parts at inference, and losses of sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._backends.cpu.ctc import checked_lengths
from ..._construct import tensor
from ..._dispatch.namespace import aten
from ..._dtype import bool_, int64
from ..._tensor import Tensor
from . import formula


@formula("_transform_bias_rescale_qkv")
def split_heads(qkv: Tensor, bias: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of every head from what was computed side by side; queries are scaled for attention."""
    batch, steps, width = qkv.shape
    if width % (3 * num_heads):
        raise RuntimeError(f"Expected D % num_head == 0, got D={width // 3}, num_head={num_heads}")
    head = width // 3 // num_heads
    parts = (qkv + bias).reshape(batch, steps, 3, num_heads, head).permute(2, 0, 3, 1, 4).contiguous()
    return parts[0] * (1 / math.sqrt(head)), parts[1], parts[2]


@formula("_masked_softmax")
def masked_softmax(self: Tensor, mask: Tensor, dim: int | None, mask_type: int | None) -> Tensor:
    """Softmax over what the mask does not hide."""
    if mask_type is None and mask.shape == self.shape:
        mask_type = 2
    by_keys = mask_type == 1
    if mask_type not in (0, 1, 2) or tuple(mask.shape) != (
            (self.shape[0], self.shape[-1]) if by_keys else tuple(self.shape)[-2:] if mask_type == 0 else self.shape):
        raise ValueError("a mask of another shape or type")  # the CPU's kernel explains it
    wide = mask[:, None, None, :] if by_keys else mask
    return aten._softmax(self.masked_fill(wide, -math.inf), -1 if dim is None else dim, False)


# -- connectionist temporal classification -----------------------------------------------------------------------------


class _Spoken:
    """Label sequences as states (a blank before, between and after the labels), and how likely each is at each time."""

    def __init__(self, log_probs: Tensor, targets: Tensor, inputs: Any, wanted: Any, blank: int) -> None:
        self.device, self.inputs, self.wanted = log_probs.device, inputs, wanted
        batch, most = len(wanted), int(wanted.max(initial=0))
        places = np.arange(most)
        if targets.dim() == 1:
            starts = np.cumsum(wanted) - wanted
            index = np.minimum(starts[:, None] + places, max(targets.shape[0] - 1, 0))
            labels = targets[self.placed(index)] if most else targets.reshape(1, -1).expand(batch, 0)
        else:
            labels = targets[:, :most]
        labels = aten.where(self.placed(places < wanted[:, None]), labels, blank).to(targets.dtype)
        states = aten.full((batch, 2 * most + 1), blank, dtype=targets.dtype, device=self.device)
        states[:, 1::2] = labels
        # States that a path can come to without the blank before them.
        skips = aten.zeros_like(states, dtype=bool_)
        if most > 1:
            skips[:, 3::2] = aten.ne(labels[:, 1:], labels[:, :-1])
        self.states = states.to(int64).unsqueeze(0).expand(log_probs.shape[0], -1, -1)
        self.skips = skips
        self.emitted = log_probs.gather(2, self.states)
        self.nowhere = aten.full((batch, 2), -math.inf, dtype=log_probs.dtype, device=self.device)

    def placed(self, array: Any) -> Tensor:
        """What the host has worked out, on the device."""
        return tensor(array, device=self.device)

    def ends(self) -> Tensor:
        """The states in which a sequence may end."""
        states = np.arange(self.skips.shape[1])
        last = 2 * self.wanted[:, None]
        return self.placed((states == last) | (states == last - 1))

    def reached(self, values: Tensor, skips: Tensor) -> Tensor:
        """Values of the states (two that are nowhere come first) after a step: paths stay, go on, or skip one."""
        count = skips.shape[1]
        skipped = aten.where(skips, values[:, :count], -math.inf)
        return aten.logsumexp(aten.stack([values[:, 2:], values[:, 1:count + 1], skipped]), [0], False)


@formula("_ctc_loss")
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int,
             zero_infinity: bool) -> tuple[Tensor, Tensor]:
    """Minus the log-likelihood of every target, and the forward variables (batch, time, state)."""
    inputs, wanted = checked_lengths(log_probs._a, targets._a, input_lengths, target_lengths, blank)
    spoken, batch = _Spoken(log_probs, targets, inputs, wanted, blank), len(wanted)
    count = spoken.skips.shape[1]
    first = np.zeros((batch, count), bool)
    first[:, :1], first[:, 1:2] = True, (wanted > 0)[:, None]
    nothing = spoken.placed(np.where(wanted == 0, 0.0, math.inf)).to(log_probs.dtype)
    steps = [aten.where(spoken.placed(first), spoken.emitted[0], -math.inf)]
    for emitted in spoken.emitted[1:]:
        steps.append(spoken.reached(aten.cat([spoken.nowhere, steps[-1]], 1), spoken.skips) + emitted)
    alpha = aten.stack(steps, 1)
    last = alpha[spoken.placed(np.arange(batch)), spoken.placed(np.maximum(inputs - 1, 0))]
    loss = -aten.logsumexp(aten.where(spoken.ends(), last, -math.inf), [1], False)
    # Nothing heard: that is certain if nothing was to be said, else impossible.
    return aten.where(spoken.placed(inputs == 0), nothing, loss), alpha


@formula("_ctc_loss_backward")
def ctc_loss_backward(grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any,
                      loss: Tensor, alpha: Tensor, blank: int, zero_infinity: bool) -> Tensor:
    """The gradient of the loss for log-probabilities that come out of `log_softmax`, as PyTorch takes it."""
    inputs, wanted = np.asarray(input_lengths, np.int64), np.asarray(target_lengths, np.int64)
    if not log_probs.shape[0]:
        return aten.zeros_like(log_probs)
    spoken, times = _Spoken(log_probs, targets, inputs, wanted, blank), log_probs.shape[0]
    # Backwards the states are turned round, so that paths come from those before again.
    leaves = aten.cat([spoken.skips[:, 2:], aten.zeros_like(spoken.skips[:, :2])], 1).flip(1)[:, :spoken.skips.shape[1]]
    ends, steps = spoken.ends(), []
    beta = aten.full_like(spoken.emitted[0], -math.inf)
    for t in range(times - 1, -1, -1):
        beta = spoken.reached(aten.cat([spoken.nowhere, beta.flip(1)], 1), leaves).flip(1)
        if (inputs - 1 == t).any():
            beta = aten.where(spoken.placed(inputs - 1 == t)[:, None], aten.where(ends, 0.0, -math.inf), beta)
        beta = (beta + spoken.emitted[t]).to(log_probs.dtype)
        steps.append(beta)
    both = alpha.transpose(0, 1) + aten.stack(steps[::-1])
    # Both variables count the present step, hence once less.
    share = (both - spoken.emitted + loss[:, None]).exp()
    never = aten.where(aten.isinf(loss)[:, None], math.nan, 0.0).to(share.dtype)
    share = aten.where(aten.eq(both, -math.inf), never, share)
    visits = aten.zeros_like(log_probs).scatter_add(2, spoken.states, share)
    made = (log_probs.exp() - visits) * grad[:, None]
    over = spoken.placed(np.arange(times)[:, None] >= inputs)[:, :, None]
    if zero_infinity:
        over = aten.logical_or(over, aten.isinf(loss)[:, None])
    return made.masked_fill(over, 0.0)
