"""One direction of one recurrent layer over all its time steps, and the way back.

Rows are in time order: step `t` owns the next `batch_sizes[t]` rows, which is what a packed sequence looks like; plain
`(time, batch, features)` input is the case of equal steps. Batch sizes never grow, so the rows of a step are the first
ones of the state. A state that a step leaves alone keeps its value, and that is all there is to sequences of different
lengths: going forward it is the final state, going backward the initial one.

Whatever does not depend on the previous step is done for all steps at once: the products with the input weights, all
weight gradients, and the derivatives of the gates. What a step needs for the way back is kept in one flat workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES

Array = Any
Steps = list[tuple[int, int, int]]

RELU, TANH, LSTM, GRU = range(4)


def _wide(a: Array | None) -> Array | None:
    return a.astype(np.float32) if a is not None and a.dtype in HALF_TYPES else a


def _steps(batch_sizes: Sequence[int], reverse: bool) -> Steps:
    """`(first row, row after the last, batch size)` of every step, in the order they are computed."""
    made, start = [], 0
    for size in batch_sizes:
        made.append((start, start + size, size))
        start += size
    return made[::-1] if reverse else made


def _in_rows(data: Array, batch_sizes: Sequence[int] | None) -> tuple[Array, Sequence[int]]:
    """Rows in time order and the sizes of the steps, also of a `(time, batch, features)` array."""
    if batch_sizes is not None and data.ndim == 2:
        return data, batch_sizes
    time, batch, features = data.shape
    return data.reshape(time * batch, features), [batch] * time


def _previous(states: Array, initial: Array, batch_sizes: Sequence[int], reverse: bool) -> Array:
    """For every row the state its step began with."""
    sizes = np.asarray(batch_sizes)
    if sizes.size == 0:
        return states
    if sizes[0] == sizes[-1]:
        step = sizes[0]
        parts = (states[step:], initial) if reverse else (initial, states[:-step] if step else states)
        return np.concatenate(parts)
    starts = np.cumsum(sizes) - sizes
    time = np.repeat(np.arange(sizes.size), sizes)
    member = np.arange(len(states)) - starts[time]
    before = time + 1 if reverse else time - 1
    inside = (before >= 0) & (before < sizes.size)
    before = np.where(inside, before, 0)
    inside &= member < sizes[before]
    # Rows without a step before them find the initial states behind all others.
    return np.concatenate((states, initial))[np.where(inside, starts[before] + member, len(states) + member)]


def forward(data: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, w_hr: Array | None,
            hx: Array, cx: Array | None, batch_sizes: Sequence[int] | None, reverse: bool,
            mode: int) -> tuple[Array, Array, Array, Array]:
    """`(output, last hidden state, last cell state, workspace)`; without cells the third is empty."""
    dtype, shape = data.dtype, data.shape
    data, batch_sizes = _in_rows(data, batch_sizes)
    if dtype in HALF_TYPES:
        data, w_ih, w_hh, hx = (a.astype(np.float32) for a in (data, w_ih, w_hh, hx))
        b_ih, b_hh, w_hr, cx = (_wide(a) for a in (b_ih, b_hh, w_hr, cx))
    steps = _steps(batch_sizes, reverse)
    if mode == LSTM:
        made = _lstm(data, w_ih, w_hh, b_ih, b_hh, w_hr, hx, cx, steps)
    elif mode == GRU:
        made = _gru(data, w_ih, w_hh, b_ih, b_hh, hx, steps)
    else:
        made = _plain(data, w_ih, w_hh, b_ih, b_hh, hx, steps, mode)
    output, hy, cy, workspace = made
    output = output.reshape(*shape[:-1], output.shape[1])
    return output.astype(dtype, copy=False), hy.astype(dtype, copy=False), cy.astype(dtype, copy=False), workspace


def _both(b_ih: Array | None, b_hh: Array | None) -> Array | None:
    return None if b_ih is None or b_hh is None else b_ih + b_hh


def _cut(workspace: Array, rows: int, widths: Sequence[int]) -> list[Array]:
    """The parts of a workspace, as matrices of these widths."""
    parts, start = [], 0
    for width in widths:
        parts.append(workspace[start: start + rows * width].reshape(rows, width))
        start += rows * width
    return parts


def _plain(data: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, hx: Array, steps: Steps,
           mode: int) -> tuple[Array, Array, Array, Array]:
    output = data @ w_ih.T
    bias = _both(b_ih, b_hh)
    if bias is not None:
        output += bias
    state, turned = hx.copy(), np.ascontiguousarray(w_hh.T)
    for start, stop, size in steps:
        row = output[start:stop]
        row += state[:size] @ turned
        if mode == TANH:
            np.tanh(row, row)
        else:
            np.maximum(row, 0, out=row)
        state[:size] = row
    return output, state, np.empty(0, data.dtype), np.empty(0, data.dtype)


def _gru(data: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, hx: Array,
         steps: Steps) -> tuple[Array, Array, Array, Array]:
    rows, hidden = len(data), w_hh.shape[1]
    workspace = np.empty(rows * 5 * hidden, data.dtype)
    gates, hidden_new, output_like = _cut(workspace, rows, (3 * hidden, hidden, hidden))
    np.matmul(data, w_ih.T, out=gates)
    if b_ih is not None:
        gates += b_ih
    output = np.empty((rows, hidden), data.dtype)
    state, turned = hx.copy(), np.ascontiguousarray(w_hh.T)
    product = np.empty((len(hx), 3 * hidden), data.dtype)
    half = data.dtype.type(0.5)
    for start, stop, size in steps:
        before = state[:size]
        drive = np.matmul(before, turned, out=product[:size])
        if b_hh is not None:
            drive += b_hh
        switches, new = gates[start:stop, : 2 * hidden], gates[start:stop, 2 * hidden:]
        # The logistic function as a tanh, which NumPy has in vector instructions: s(x) = tanh(x / 2) / 2 + 1 / 2.
        switches += drive[:, : 2 * hidden]
        switches *= half
        np.tanh(switches, switches)
        switches *= half
        switches += half
        hidden_new[start:stop] = drive[:, 2 * hidden:]
        drive = np.multiply(hidden_new[start:stop], switches[:, :hidden], out=drive[:, 2 * hidden:])
        new += drive
        np.tanh(new, new)
        change = np.subtract(before, new, out=output_like[start:stop])
        moved = np.multiply(change, switches[:, hidden:], out=output[start:stop])
        moved += new
        state[:size] = moved
    return output, state, np.empty(0, data.dtype), workspace


def _lstm(data: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, w_hr: Array | None, hx: Array,
          cx: Array, steps: Steps) -> tuple[Array, Array, Array, Array]:
    rows, hidden = len(data), cx.shape[1]
    workspace = np.empty(rows * 6 * hidden, data.dtype)
    gates, cells, squashed = _cut(workspace, rows, (4 * hidden, hidden, hidden))
    # Input, forget, cell, output. All but the third are logistic: s(x) = tanh(x / 2) / 2 + 1 / 2, so that one tanh does
    # all four. The halving of x goes into the weights.
    # Full arrays, because operations with a broadcast row are several times slower.
    scales, shifts = np.full((2, len(hx), 4 * hidden), 0.5, data.dtype)
    scales[:, 2 * hidden: 3 * hidden] = 1
    shifts[:, 2 * hidden: 3 * hidden] = 0
    scale = np.full(4 * hidden, 0.5, data.dtype)
    scale[2 * hidden: 3 * hidden] = 1
    np.matmul(data, w_ih.T * scale, out=gates)
    bias = _both(b_ih, b_hh)
    if bias is not None:
        gates += bias * scale
    turned = np.ascontiguousarray(w_hh.T * scale)
    project = None if w_hr is None else np.ascontiguousarray(w_hr.T)
    output = np.empty((rows, hx.shape[1]), data.dtype)
    state, cell = hx.copy(), cx.copy()
    product = np.empty((len(hx), 4 * hidden), data.dtype)
    scratch = np.empty((len(hx), hidden), data.dtype)
    for start, stop, size in steps:
        gate = gates[start:stop]
        gate += np.matmul(state[:size], turned, out=product[:size])
        np.tanh(gate, gate)
        gate *= scales[:size]
        gate += shifts[:size]
        now = np.multiply(gate[:, hidden: 2 * hidden], cell[:size], out=cells[start:stop])
        now += np.multiply(gate[:, :hidden], gate[:, 2 * hidden: 3 * hidden], out=scratch[:size])
        cell[:size] = now
        squash = np.tanh(now, squashed[start:stop])
        if project is None:
            shown = np.multiply(gate[:, 3 * hidden:], squash, out=output[start:stop])
        else:
            shown = np.matmul(gate[:, 3 * hidden:] * squash, project, out=output[start:stop])
        state[:size] = shown
    return output, state, cell, workspace


# -- the way back --------------------------------------------------------------------------------------------------


def backward(grad_output: Array, grad_hy: Array, grad_cy: Array | None, data: Array, w_ih: Array, w_hh: Array,
             b_ih: Array | None, b_hh: Array | None, w_hr: Array | None, hx: Array, cx: Array | None, output: Array,
             workspace: Array, batch_sizes: Sequence[int] | None, reverse: bool, mode: int) -> tuple[Array, ...]:
    """Gradients of input, both weights, both biases, projection, hidden and cell state; empty for what is absent."""
    dtype, shape, plain_sizes = data.dtype, data.shape, batch_sizes
    data, batch_sizes = _in_rows(data, plain_sizes)
    grad_output, output = _in_rows(grad_output, plain_sizes)[0], _in_rows(output, plain_sizes)[0]
    if dtype in HALF_TYPES:
        grad_output, grad_hy, data, w_ih, w_hh, hx, output = (
            a.astype(np.float32) for a in (grad_output, grad_hy, data, w_ih, w_hh, hx, output))
        grad_cy, w_hr, cx = (_wide(a) for a in (grad_cy, w_hr, cx))
    steps = _steps(batch_sizes, not reverse)
    before = _previous(output, hx, batch_sizes, reverse)
    nothing = np.empty(0, data.dtype)
    grad_hr = grad_cell = nothing
    state = grad_hy.copy()
    if mode == LSTM:
        assert cx is not None
        assert grad_cy is not None
        cells_before = _previous(_cut(workspace, len(data), (4 * cx.shape[1], cx.shape[1]))[1], cx, batch_sizes,
                                 reverse)
        grad_cell = grad_cy.copy()
        pull, grad_hr = _lstm_back(grad_output, w_hh, w_hr, workspace, cells_before, state, grad_cell, steps)
        hidden_pull = pull
    elif mode == GRU:
        pull, hidden_pull = _gru_back(grad_output, w_hh, workspace, state, steps)
    else:
        pull = hidden_pull = _plain_back(grad_output, w_hh, output, state, steps, mode)
    grad_b_ih = grad_b_hh = nothing
    if b_ih is not None:
        grad_b_ih = pull.sum(0)
        grad_b_hh = grad_b_ih.copy() if hidden_pull is pull else hidden_pull.sum(0)
    made = ((pull @ w_ih).reshape(shape), pull.T @ data, hidden_pull.T @ before, grad_b_ih, grad_b_hh, grad_hr, state,
            grad_cell)
    return tuple(a.astype(dtype, copy=False) for a in made)


def _plain_back(grad_output: Array, w_hh: Array, output: Array, state: Array, steps: Steps, mode: int) -> Array:
    pull = 1 - output * output if mode == TANH else (output > 0).astype(output.dtype)
    for start, stop, size in steps:
        row, now = pull[start:stop], state[:size]
        now += grad_output[start:stop]
        row *= now
        np.matmul(row, w_hh, out=now)
    return pull


def _gru_back(grad_output: Array, w_hh: Array, workspace: Array, state: Array, steps: Steps) -> tuple[Array, Array]:
    rows, hidden = len(grad_output), w_hh.shape[1]
    gates, hidden_new, change = _cut(workspace, rows, (3 * hidden, hidden, hidden))
    reset, update, new = gates[:, :hidden], gates[:, hidden: 2 * hidden], gates[:, 2 * hidden:]
    # How reset, update, hidden part and input part of the new state move with the output. The first three together are
    # what the hidden weights see.
    slope = np.empty((rows, 4, hidden), gates.dtype)
    slope[:, 3] = (1 - update) * (1 - new * new)
    slope[:, 2] = slope[:, 3] * reset
    slope[:, 1] = change * update * (1 - update)
    slope[:, 0] = slope[:, 2] * hidden_new * (1 - reset)
    flat = slope.reshape(rows, 4 * hidden)
    for start, stop, size in steps:
        now = state[:size]
        now += grad_output[start:stop]
        row = slope[start:stop]
        row *= now[:, None]
        now *= update[start:stop]
        now += flat[start:stop, : 3 * hidden] @ w_hh
    pull = np.concatenate((flat[:, : 2 * hidden], flat[:, 3 * hidden:]), 1)
    return pull, flat[:, : 3 * hidden]


def _lstm_back(grad_output: Array, w_hh: Array, w_hr: Array | None, workspace: Array, cells_before: Array,
               state: Array, cell: Array, steps: Steps) -> tuple[Array, Array]:
    rows, hidden = len(grad_output), cell.shape[1]
    gates, _, squashed = _cut(workspace, rows, (4 * hidden, hidden, hidden))
    entry, forget, new, exit_ = (gates[:, i * hidden: (i + 1) * hidden] for i in range(4))
    through = exit_ * (1 - squashed * squashed)
    # How each gate's sum moves with the cell (first three) or with the output (last).
    pull = np.empty((rows, 4, hidden), gates.dtype)
    np.multiply(gates, 1 - gates, out=pull.reshape(rows, 4 * hidden))
    pull[:, 0] *= new
    pull[:, 1] *= cells_before
    np.multiply(entry, 1 - new * new, out=pull[:, 2])
    pull[:, 3] *= squashed
    flat = pull.reshape(rows, 4 * hidden)
    seen = None if w_hr is None else np.empty(grad_output.shape, grad_output.dtype)
    for start, stop, size in steps:
        now = state[:size]
        now += grad_output[start:stop]
        if w_hr is None or seen is None:
            shown = now
        else:
            seen[start:stop] = now
            shown = now @ w_hr
        carried = cell[:size]
        carried += np.multiply(through[start:stop], shown, out=through[start:stop])
        row = pull[start:stop]
        row[:, :3] *= carried[:, None]
        row[:, 3] *= shown
        carried *= forget[start:stop]
        np.matmul(flat[start:stop], w_hh, out=now)
    grad_hr = np.empty(0, gates.dtype) if seen is None else seen.T @ (exit_ * squashed)
    return flat, grad_hr
