"""One direction of one recurrent layer over all its time steps, and its backward.

Everything that does not depend on the previous step is done for all steps at once: the products with the input weights,
all weight gradients, and in NumPy the derivatives of an LSTM's gates. The values that the backward needs are kept in
one flat workspace; a plain layer needs only its output.
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

# PyTorch's and C's numbers for the kinds of layers.
RELU, TANH, LSTM, GRU = range(4)
# The numbers that a step keeps for each unit. An LSTM: input, forget, cell, output. A GRU: reset, update, new, and the
# state's part of the new value before the reset. A plain layer: its output.
KEPT = {RELU: 1, TANH: 1, LSTM: 4, GRU: 4}


@step("aten::add", "Tensor", lambda a, b: (a, b, 1))
def _add(a: Array, b: Array) -> Array:
    return np.add(a, b)


def _order(steps: int, reverse: bool) -> Sequence[int]:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _wide(*arrays: Array) -> list[Array]:
    return [a.astype(np.float32) if a is not None and a.dtype in HALF_TYPES else a for a in arrays]


def _cut(mode: int, workspace: Array, shown: Array) -> tuple[Array, Array | None, Array | None]:
    """Gates, and an LSTM's cells and squashed cells, of all steps. The gates of a plain layer are its output."""
    if KEPT[mode] == 1:
        return shown, None, None
    steps, batch, hidden = shown.shape
    size = shown.size
    gates = workspace[: 4 * size].reshape(steps, batch, 4 * hidden)
    if mode == GRU:
        return gates, None, None
    return gates, workspace[4 * size: 5 * size].reshape(shown.shape), workspace[5 * size:].reshape(shown.shape)


def _previous(states: Array, initial: Array, reverse: bool) -> Array:
    """For every step the state with which it began."""
    return np.concatenate((states[1:], initial[None]) if reverse else (initial[None], states[:-1]))


def _biases(mode: int, biases: tuple[Array, Array] | None) -> Array | None:
    """The initial values of a step's gates."""
    if biases is None:
        return None
    if mode != GRU:
        return _add(*biases)
    ours, states = biases
    two = 2 * (len(ours) // 3)
    return np.concatenate((_add(ours[:two], states[:two]), ours[two:], states[two:]))


# -- NumPy -------------------------------------------------------------------------------------------------------------


def _lstm_steps(gates: Array, cells: Array, squashed: Array, shown: Array, w_hh: Array, hx: Array, cx: Array,
                reverse: bool) -> None:
    """Input, forget, cell, output. All but the third are logistic: s(x) = tanh(x / 2) / 2 + 1 / 2, so that one tanh
    does all four."""
    _, batch, hidden = shown.shape
    # Full arrays, because operations with a broadcast row are several times slower.
    scales, shifts = np.full((2, batch, 4 * hidden), 0.5, shown.dtype)
    scales[:, 2 * hidden: 3 * hidden] = 1
    shifts[:, 2 * hidden: 3 * hidden] = 0
    turned = np.ascontiguousarray(w_hh.T)
    state, cell = hx, cx
    product, scratch = np.empty((batch, 4 * hidden), shown.dtype), np.empty((batch, hidden), shown.dtype)
    for time in _order(len(shown), reverse):
        gate = gates[time]
        gate += np.matmul(state, turned, out=product)
        gate *= scales
        np.tanh(gate, gate)
        gate *= scales
        gate += shifts
        cell = np.multiply(gate[:, hidden: 2 * hidden], cell, out=cells[time])
        cell += np.multiply(gate[:, :hidden], gate[:, 2 * hidden: 3 * hidden], out=scratch)
        state = np.multiply(gate[:, 3 * hidden:], np.tanh(cell, squashed[time]), out=shown[time])


def _gru_steps(gates: Array, shown: Array, w_hh: Array, hx: Array, reverse: bool) -> None:
    hidden = shown.shape[2]
    turned = np.ascontiguousarray(w_hh.T)
    state = hx
    for time in _order(len(shown), reverse):
        logistic, new, held = np.split(gates[time], [2 * hidden, 3 * hidden], axis=1)
        product = np.matmul(state, turned)
        logistic += product[:, : 2 * hidden]
        held += product[:, 2 * hidden:]
        logistic *= 0.5
        np.tanh(logistic, logistic)
        logistic *= 0.5
        logistic += 0.5
        new += logistic[:, :hidden] * held
        np.tanh(new, new)
        state = np.add(logistic[:, hidden:] * (state - new), new, out=shown[time])


def _plain_steps(mode: int, shown: Array, w_hh: Array, hx: Array, reverse: bool) -> None:
    turned = np.ascontiguousarray(w_hh.T)
    state = hx
    for time in _order(len(shown), reverse):
        sums = shown[time]
        sums += np.matmul(state, turned)
        state = np.tanh(sums, sums) if mode == TANH else np.maximum(sums, 0, out=sums)


def _lstm_steps_back(slopes: Array, gates: Array, cells: Array, squashed: Array, grad_output: Array, w_hh: Array,
                     cx: Array, state: Array, cell: Array, reverse: bool) -> None:
    steps, batch, hidden = cells.shape
    entry, forget, new, exit_ = (gates[..., i * hidden: (i + 1) * hidden] for i in range(4))
    through = exit_ * (1 - squashed * squashed)
    # How each gate's sum moves with the cell (first three) or with the output (last).
    pull = slopes.reshape(steps, batch, 4, hidden)
    np.multiply(gates, 1 - gates, out=slopes)
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
        np.matmul(slopes[time], w_hh, out=state)


def _gru_steps_back(slopes: Array, gates: Array, shown: Array, grad_output: Array, w_hh: Array, hx: Array,
                    state: Array, reverse: bool) -> None:
    hidden = shown.shape[2]
    reset, update, new, held = (gates[..., i * hidden: (i + 1) * hidden] for i in range(4))
    before = _previous(shown, hx, reverse)
    for time in _order(len(shown), not reverse):
        state += grad_output[time]
        r, z, n, row = reset[time], update[time], new[time], slopes[time]
        inner = state * (1 - z) * (1 - n * n)
        row[:, :hidden] = inner * held[time] * r * (1 - r)
        row[:, hidden: 2 * hidden] = state * (before[time] - n) * z * (1 - z)
        row[:, 2 * hidden: 3 * hidden] = inner
        row[:, 3 * hidden:] = inner * r
        state *= z
        state += row[:, : 2 * hidden] @ w_hh[: 2 * hidden] + row[:, 3 * hidden:] @ w_hh[2 * hidden:]


def _plain_steps_back(mode: int, slopes: Array, shown: Array, grad_output: Array, w_hh: Array, state: Array,
                      reverse: bool) -> None:
    for time in _order(len(shown), not reverse):
        y = shown[time]
        np.multiply(state + grad_output[time], 1 - y * y if mode == TANH else ~(y <= 0), out=slopes[time])
        np.matmul(slopes[time], w_hh, out=state)


# -- both --------------------------------------------------------------------------------------------------------------


def _fill(mode: int, gates: Array, cells: Array | None, squashed: Array | None, shown: Array, data: Array, w_ih: Array,
          w_hh: Array, bias: Array | None, hx: Array, cx: Array | None, reverse: bool) -> None:
    """Fill gates, cells, squashed cells and outputs."""
    steps, batch, features = data.shape
    sums = gates.reshape(steps * batch, gates.shape[2])
    np.copyto(sums, 0 if bias is None else bias)
    driven, rows = sums[:, : len(w_ih)], data.reshape(steps * batch, features)
    if providers.recurrent(data, w_ih, w_hh, hx, shown, *(() if cx is None else (cx,))):
        native = providers.native
        native.multiply_into(driven, rows, w_ih.T, True)
        native.recurrent(mode, gates, w_hh, hx, cx, cells, squashed, shown, reverse)
        return
    driven += rows @ w_ih.T
    if mode == LSTM:
        _lstm_steps(gates, cells, squashed, shown, w_hh, hx, cx, reverse)
    elif mode == GRU:
        _gru_steps(gates, shown, w_hh, hx, reverse)
    else:
        _plain_steps(mode, shown, w_hh, hx, reverse)


def forward(mode: int, data: Array, w_ih: Array, w_hh: Array, biases: tuple[Array, Array] | None, hx: Array,
            cx: Array | None, reverse: bool) -> tuple[Array, Array, Array, Array]:
    """`(output, last hidden state, last cell state, workspace)`; the cell state is empty if there is none."""
    dtype = data.dtype
    steps, batch, _ = data.shape
    output, last = empty((steps, batch, hx.shape[1]), dtype), empty(hx.shape, dtype)
    last_cell = empty((0,) if cx is None else cx.shape, dtype)
    bias = _biases(mode, biases)
    data, w_ih, w_hh, bias, hx, cx = _wide(data, w_ih, w_hh, bias, hx, cx)
    workspace = empty((output.size * {LSTM: 6, GRU: 4}.get(mode, 0),), data.dtype)
    shown = output if dtype == data.dtype else np.empty(output.shape, data.dtype)
    gates, cells, squashed = _cut(mode, workspace, shown)
    _fill(mode, gates, cells, squashed, shown, data, w_ih, w_hh, bias, hx, cx, reverse)
    if shown is not output:
        output[...] = shown
    end = 0 if reverse else -1
    last[...] = shown[end]
    if cells is not None:
        last_cell[...] = cells[end]
    return output, last, last_cell, workspace


def _slopes(mode: int, gates: Array, cells: Array | None, squashed: Array | None, grad_output: Array, w_hh: Array,
            hx: Array, cx: Array | None, output: Array, state: Array, cell: Array | None, reverse: bool) -> Array:
    """The slopes of the gates' sums; gradients of the last states become those of the first ones."""
    slopes = np.empty(gates.shape, gates.dtype)
    if providers.recurrent(grad_output, w_hh, hx, output, state, gates, *(() if cx is None else (cx, cell))):
        providers.native.recurrent_back(mode, slopes, gates, w_hh, hx, cx, cells, squashed, output, grad_output, state,
                                        cell, reverse)
    elif mode == LSTM:
        _lstm_steps_back(slopes, gates, cells, squashed, grad_output, w_hh, cx, state, cell, reverse)
    elif mode == GRU:
        _gru_steps_back(slopes, gates, output, grad_output, w_hh, hx, state, reverse)
    else:
        _plain_steps_back(mode, slopes, output, grad_output, w_hh, state, reverse)
    return slopes


def backward(mode: int, grad_output: Array, grad_hy: Array, grad_cy: Array | None, data: Array, w_ih: Array,
             w_hh: Array, has_biases: bool, hx: Array, cx: Array | None, output: Array, workspace: Array,
             reverse: bool) -> tuple[Array, ...]:
    """Gradients of input, both weights, both biases (empty without them), hidden and cell state (empty without one)."""
    dtype = data.dtype
    grad_output, grad_hy, grad_cy = (g if g is None or g.flags.c_contiguous else contiguous_step(g)
                                     for g in (grad_output, grad_hy, grad_cy))
    grad_output, grad_hy, grad_cy, data, w_ih, w_hh, hx, cx, output = _wide(
        grad_output, grad_hy, grad_cy, data, w_ih, w_hh, hx, cx, output)
    steps, batch, features = data.shape
    hidden = hx.shape[1]
    gates, cells, squashed = _cut(mode, workspace, output)
    state, cell = grad_hy.copy(), None if grad_cy is None else grad_cy.copy()
    slopes = _slopes(mode, gates, cells, squashed, grad_output, w_hh, hx, cx, output, state, cell, reverse)
    rows = slopes.reshape(steps * batch, slopes.shape[2])
    before = _previous(output, hx, reverse).reshape(steps * batch, hidden)
    inputs = data.reshape(steps * batch, features)
    sums = column_sums(rows) if has_biases else np.empty(0, rows.dtype)
    driven = rows[:, : len(w_ih)]
    made = [mm(driven, w_ih).reshape(data.shape), mm(driven.T, inputs)]
    if mode == GRU:
        two, three = 2 * hidden, 3 * hidden
        made += [np.concatenate((mm(rows[:, :two].T, before), mm(rows[:, three:].T, before))), sums[:three],
                 np.concatenate((sums[:two], sums[three:]))]
    else:
        made += [mm(rows.T, before), sums, preserving_clone_step(sums)]
    made += [state, np.empty(0, rows.dtype) if cell is None else cell]
    return tuple(a.astype(dtype, copy=False) for a in made)
