"""One direction of one LSTM layer over all its time steps, and the way back.

Whatever does not depend on the previous step is done for all steps at once: the products with the input weights, all
weight gradients, and in NumPy the derivatives of the gates. What a step needs for the way back is kept in one flat
workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.steps import step
from ..._dtype import HALF_TYPES
from . import providers
from .matmul import mm
from .memory import contiguous_step, empty, preserving_clone_step
from .sums import column_sums

Array = Any


@step("aten::add", "Tensor", lambda a, b: (a, b, 1))
def _add(a: Array, b: Array) -> Array:
    return np.add(a, b)


def _order(steps: int, reverse: bool) -> Sequence[int]:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _wide(*arrays: Array) -> list[Array]:
    return [a.astype(np.float32) if a is not None and a.dtype in HALF_TYPES else a for a in arrays]


def _cut(workspace: Array, steps: int, batch: int, hidden: int) -> tuple[Array, Array, Array]:
    """Gates, cells and squashed cells of all steps."""
    size = steps * batch * hidden
    return (workspace[: 4 * size].reshape(steps, batch, 4 * hidden), workspace[4 * size: 5 * size].reshape(
        steps, batch, hidden), workspace[5 * size:].reshape(steps, batch, hidden))


def _previous(states: Array, initial: Array, reverse: bool) -> Array:
    """For every step the state it began with."""
    return np.concatenate((states[1:], initial[None]) if reverse else (initial[None], states[:-1]))


def _all_steps(gates: Array, cells: Array, squashed: Array, shown: Array, data: Array, w_ih: Array, w_hh: Array,
               bias: Array | None, hx: Array, cx: Array, reverse: bool) -> None:
    """Fill gates, cells, squashed cells and outputs; in C."""
    steps, batch, features = data.shape
    sums = gates.reshape(steps * batch, -1)
    np.copyto(sums, 0 if bias is None else bias)
    native = providers.native
    native.multiply_into(sums, data.reshape(steps * batch, features), w_ih.T, True)
    native.lstm(gates, w_hh, hx, cx, cells, squashed, shown, reverse)


def _step_by_step(gates: Array, cells: Array, squashed: Array, shown: Array, data: Array, w_ih: Array, w_hh: Array,
                  bias: Array | None, hx: Array, cx: Array, reverse: bool) -> None:
    """The same by NumPy.

    Input, forget, cell, output. All but the third are logistic: s(x) = tanh(x / 2) / 2 + 1 / 2, so that one tanh does
    all four. The halving of x goes into the weights.
    """
    steps, batch, features = data.shape
    hidden = cx.shape[1]
    # Full arrays, because operations with a broadcast row are several times slower.
    scales, shifts = np.full((2, batch, 4 * hidden), 0.5, data.dtype)
    scales[:, 2 * hidden: 3 * hidden] = 1
    shifts[:, 2 * hidden: 3 * hidden] = 0
    scale = np.full(4 * hidden, 0.5, data.dtype)
    scale[2 * hidden: 3 * hidden] = 1
    sums = gates.reshape(steps * batch, 4 * hidden)
    np.matmul(data.reshape(steps * batch, features), w_ih.T * scale, out=sums)
    if bias is not None:
        sums += bias * scale
    turned = np.ascontiguousarray(w_hh.T * scale)
    state, cell = hx, cx
    product, scratch = np.empty((batch, 4 * hidden), data.dtype), np.empty((batch, hidden), data.dtype)
    for time in _order(steps, reverse):
        gate = gates[time]
        gate += np.matmul(state, turned, out=product)
        np.tanh(gate, gate)
        gate *= scales
        gate += shifts
        cell = np.multiply(gate[:, hidden: 2 * hidden], cell, out=cells[time])
        cell += np.multiply(gate[:, :hidden], gate[:, 2 * hidden: 3 * hidden], out=scratch)
        state = np.multiply(gate[:, 3 * hidden:], np.tanh(cell, squashed[time]), out=shown[time])


def forward(data: Array, w_ih: Array, w_hh: Array, biases: tuple[Array, Array] | None, hx: Array, cx: Array,
            reverse: bool) -> tuple[Array, Array, Array, Array]:
    """`(output, last hidden state, last cell state, workspace)`."""
    dtype = data.dtype
    steps, batch, _ = data.shape
    hidden = cx.shape[1]
    output, last, last_cell = empty((steps, batch, hidden), dtype), empty(hx.shape, dtype), empty(cx.shape, dtype)
    bias = None if biases is None else _add(*biases)
    data, w_ih, w_hh, bias, hx, cx = _wide(data, w_ih, w_hh, bias, hx, cx)
    workspace = empty((steps * batch * 6 * hidden,), data.dtype)
    gates, cells, squashed = _cut(workspace, steps, batch, hidden)
    shown = output if dtype == data.dtype else np.empty(output.shape, data.dtype)
    if providers.recurrent(data, w_ih, w_hh, hx, cx):
        _all_steps(gates, cells, squashed, shown, data, w_ih, w_hh, bias, hx, cx, reverse)
    else:
        _step_by_step(gates, cells, squashed, shown, data, w_ih, w_hh, bias, hx, cx, reverse)
    if shown is not output:
        output[...] = shown
    end = 0 if reverse else -1
    last[...], last_cell[...] = (shown[end], cells[end]) if steps else (hx, cx)
    return output, last, last_cell, workspace


def _back_step_by_step(flat: Array, gates: Array, cells: Array, squashed: Array, grad_output: Array, w_hh: Array,
                       cx: Array, state: Array, cell: Array, reverse: bool) -> None:
    """Fill the slopes of the gates' sums; gradients of the last states become those of the first ones. By NumPy."""
    steps, batch, hidden = cells.shape
    entry, forget, new, exit_ = (gates[..., i * hidden: (i + 1) * hidden] for i in range(4))
    through = exit_ * (1 - squashed * squashed)
    # How each gate's sum moves with the cell (first three) or with the output (last).
    pull = flat.reshape(steps, batch, 4, hidden)
    np.multiply(gates, 1 - gates, out=flat)
    pull[:, :, 0] *= new
    pull[:, :, 1] *= _previous(cells, cx, reverse)
    np.multiply(entry, 1 - new * new, out=pull[:, :, 2])
    pull[:, :, 3] *= squashed
    for time in _order(steps, not reverse):
        state += grad_output[time]
        cell += np.multiply(through[time], state, out=through[time])
        row = pull[time]
        row[:, :3] *= cell[:, None]
        row[:, 3] *= state
        cell *= forget[time]
        np.matmul(flat[time], w_hh, out=state)


def backward(grad_output: Array, grad_hy: Array, grad_cy: Array, data: Array, w_ih: Array, w_hh: Array,
             has_biases: bool, hx: Array, cx: Array, output: Array, workspace: Array,
             reverse: bool) -> tuple[Array, ...]:
    """Gradients of input, both weights, both biases (empty without them), hidden and cell state."""
    dtype = data.dtype
    grad_output, grad_hy, grad_cy = (g if g.flags.c_contiguous else contiguous_step(g)
                                     for g in (grad_output, grad_hy, grad_cy))
    grad_output, grad_hy, grad_cy, data, w_ih, w_hh, hx, cx, output = _wide(
        grad_output, grad_hy, grad_cy, data, w_ih, w_hh, hx, cx, output)
    steps, batch, features = data.shape
    hidden = cx.shape[1]
    gates, cells, squashed = _cut(workspace, steps, batch, hidden)
    flat, state, cell = np.empty(gates.shape, gates.dtype), grad_hy.copy(), grad_cy.copy()
    if providers.recurrent(grad_output, w_hh, cx, state, cell, gates):
        providers.native.lstm_back(flat, gates, w_hh, cx, cells, squashed, grad_output, state, cell, reverse)
    else:
        _back_step_by_step(flat, gates, cells, squashed, grad_output, w_hh, cx, state, cell, reverse)
    rows = flat.reshape(steps * batch, 4 * hidden)
    before = _previous(output, hx, reverse).reshape(steps * batch, hidden)
    inputs = data.reshape(steps * batch, features)
    made = [mm(rows, w_ih).reshape(data.shape), mm(rows.T, inputs), mm(rows.T, before),
            column_sums(rows) if has_biases else np.empty(0, rows.dtype), state, cell]
    made = [a.astype(dtype, copy=False) for a in made]
    return (*made[:4], preserving_clone_step(made[3]), *made[4:])
