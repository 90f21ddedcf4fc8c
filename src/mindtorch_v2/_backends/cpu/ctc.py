"""Connectionist temporal classification: the forward and backward recursions, over the batch at once.

A target of n labels passes through 2n + 1 states: a blank before, between and after the labels. From one time step to
the next, a path stays, goes to the next state, or skips a blank between two different labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import providers

Array = Any
WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def _lengths(name: str, lengths: Any, batch: int) -> Array:
    made = np.asarray(lengths)
    if made.size and made.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    if made.shape != (batch,):
        raise RuntimeError(f"{name} must be of size batch_size")
    if made.size and made.min() < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {made.min()} {WHERE}")
    return made.astype(np.int64)


def checked_lengths(log_probs: Array, targets: Array, input_lengths: Any, target_lengths: Any,
                    blank: int) -> tuple[Array, Array]:
    """The lengths as arrays, after a check that they and the shapes fit."""
    if 0 in log_probs.shape:
        raise RuntimeError("log_probs tensor must not be empty")
    if log_probs.dtype not in (np.float32, np.float64):
        shown = {"float16": "Half", "bfloat16": "BFloat16"}.get(log_probs.dtype.name, log_probs.dtype.name)
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{shown}'")
    times, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    inputs = _lengths("input_lengths", input_lengths, batch)
    wanted = _lengths("target_lengths", target_lengths, batch)
    if targets.ndim == 1:
        if targets.shape[0] != wanted.sum():
            raise RuntimeError(f"Expected tensor to have size {wanted.sum()} at dimension 0, but got size "
                               f"{targets.shape[0]} for argument #2 'targets' {WHERE}")
    else:
        if targets.shape[0] != batch:
            raise RuntimeError(f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} "
                               f"for argument #2 'targets' {WHERE}")
        if targets.shape[1] < wanted.max(initial=0):
            raise RuntimeError(f"Expected tensor to have size at least {wanted.max()} at dimension 1, but got size "
                               f"{targets.shape[1]} for argument #2 'targets' {WHERE}")
    if inputs.max(initial=0) > times:
        raise RuntimeError(f"Expected input_lengths to have value at most {times}, but got value {inputs.max()} "
                           f"{WHERE}")
    return inputs, wanted


def _states(targets: Array, lengths: Array, blank: int) -> tuple[Array, Array]:
    """The label of every state (batch, 2n + 1), and whether it is reached by skipping the state before it."""
    most = int(lengths.max(initial=0))
    places = np.arange(most)
    if targets.ndim == 1:
        starts = np.cumsum(lengths) - lengths
        index = np.minimum(starts[:, None] + places, max(len(targets) - 1, 0))
        labels = targets[index] if len(targets) else np.zeros((len(lengths), most), np.int64)
    else:
        labels = targets[:, :most]
    labels = np.where(places < lengths[:, None], labels, blank).astype(np.int64)
    states = np.full((len(lengths), 2 * most + 1), blank, np.int64)
    states[:, 1::2] = labels
    skips = np.zeros(states.shape, bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    return states, skips


def _sum_of_three(stay: Array, step: Array, skip: Array) -> Array:
    """log(exp + exp + exp)."""
    top = np.maximum(np.maximum(stay, step), skip)
    safe = np.where(np.isneginf(top), 0, top)
    return np.log(np.exp(stay - safe) + np.exp(step - safe) + np.exp(skip - safe)) + safe


def _later(values: Array, count: int) -> Array:
    """States moved up by `count`, with minus infinity coming in."""
    made = np.full_like(values, -np.inf)
    made[:, count:] = values[:, :values.shape[1] - count]
    return made


def _earlier(values: Array, count: int) -> Array:
    made = np.full_like(values, -np.inf)
    made[:, :values.shape[1] - count] = values[:, count:]
    return made


@providers.direct("ctc_loss")
def ctc_loss(log_probs: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int,
             zero_infinity: bool) -> tuple[Array, Array]:
    """Minus the log-likelihood of every target, and the forward variables (batch, time, state)."""
    inputs, wanted = checked_lengths(log_probs, targets, input_lengths, target_lengths, blank)
    times, batch, _ = log_probs.shape
    states, skips = _states(targets, wanted, blank)
    rows = np.arange(batch)
    alpha = np.full((batch, times, states.shape[1]), -np.inf, log_probs.dtype)
    quick = providers.rows(log_probs)
    if quick:
        providers.native.ctc(log_probs, states, skips, inputs, wanted, alpha)
    for t in range(0 if quick else times):
        emitted = log_probs[t][rows[:, None], states]
        if t == 0:
            alpha[:, 0, 0] = emitted[:, 0]
            alpha[wanted > 0, 0, 1:2] = emitted[wanted > 0, 1:2]
            continue
        before = alpha[:, t - 1]
        skipped = np.where(skips, _later(before, 2) if before.shape[1] > 1 else before, -np.inf)
        alpha[:, t] = _sum_of_three(before, _later(before, 1), skipped) + emitted
    last = np.maximum(inputs - 1, 0)
    if times == 0:
        return np.where(wanted == 0, 0.0, np.inf).astype(log_probs.dtype), alpha
    final = alpha[rows, last, 2 * wanted]
    label = np.where(wanted > 0, alpha[rows, last, np.maximum(2 * wanted - 1, 0)], -np.inf)
    likelihood = np.logaddexp(final, label)
    # Without input, an empty target is certain and any other impossible.
    likelihood = np.where(inputs == 0, np.where(wanted == 0, 0.0, -np.inf), likelihood)
    return (-likelihood).astype(log_probs.dtype), alpha


@providers.direct("ctc_loss_backward")
def ctc_loss_backward(grad: Array, log_probs: Array, targets: Array, input_lengths: Any, target_lengths: Any,
                      loss: Array, alpha: Array, blank: int, zero_infinity: bool) -> Array:
    """The gradient of the loss for log-probabilities from `log_softmax`, as PyTorch computes it."""
    inputs, wanted = np.asarray(input_lengths), np.asarray(target_lengths)
    times, batch, classes = log_probs.shape
    states, skips = _states(targets, wanted, blank)
    if providers.rows(log_probs) and providers.rows(alpha):
        made = np.empty_like(log_probs)
        providers.native.ctc_back(log_probs, states, skips, inputs.astype(np.int64), wanted.astype(np.int64), alpha,
                                  np.ascontiguousarray(loss), np.ascontiguousarray(grad),
                                  np.empty(states.shape, np.float32), made)
        if zero_infinity:
            made[:, np.isinf(loss)] = 0
        return made
    rows = np.arange(batch)
    leaves = np.zeros_like(skips)
    leaves[:, :-2] = skips[:, 2:]
    beta = np.full((batch, states.shape[1]), -np.inf, log_probs.dtype)
    one_hot = (states[:, :, None] == np.arange(classes)).astype(log_probs.dtype)
    result = np.zeros(log_probs.shape, log_probs.dtype)
    for t in range(times - 1, -1, -1):
        emitted = log_probs[t][rows[:, None], states]
        skipped = np.where(leaves, _earlier(beta, 2) if beta.shape[1] > 1 else beta, -np.inf)
        beta = _sum_of_three(beta, _earlier(beta, 1), skipped) + emitted
        ends = np.flatnonzero(inputs - 1 == t)
        beta[ends] = -np.inf
        beta[ends, 2 * wanted[ends]] = emitted[ends, 2 * wanted[ends]]
        spoken = ends[wanted[ends] > 0]
        beta[spoken, 2 * wanted[spoken] - 1] = emitted[spoken, 2 * wanted[spoken] - 1]
        # Both variables include the present step, so it is subtracted once.
        share = np.exp(alpha[:, t] + beta - emitted + loss[:, None])
        share = np.where(np.isneginf(alpha[:, t] + beta), np.where(np.isinf(loss)[:, None], np.nan, 0), share)
        visits = (share[:, None] @ one_hot)[:, 0]
        result[t] = (np.exp(log_probs[t]) - visits) * grad[:, None]
        result[t, t >= inputs] = 0
    if zero_infinity:
        result[:, np.isinf(loss)] = 0
    return result
