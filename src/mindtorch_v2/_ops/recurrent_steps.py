"""A recurrent layer step by step, out of small ops: the way to gradients of gradients.

The fused layer's backward is a kernel that nothing is known about. When its result is to be differentiated again, the
layer is computed once more in small ops, and the engine finds the gradients, which then have a graph of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.api import grad
from .._backends.cpu.recurrent import GRU, LSTM, TANH
from .._dispatch.namespace import aten
from .._tensor import Tensor


def unrolled(input: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, w_hr: Any, hx: Tensor, cx: Any,
             batch_sizes: Sequence[int] | None, reverse: bool, mode: int) -> list[Tensor]:
    """Output, last hidden state and, for an LSTM, last cell state of one direction of one layer."""
    shape = input._a.shape
    sizes = [shape[1]] * shape[0] if batch_sizes is None else list(batch_sizes)
    rows = aten.reshape(input, (sum(sizes), shape[-1]))
    states = [hx] if cx is None else [hx, cx]
    batch = hx._a.shape[0]
    outputs: list[Any] = [None] * len(sizes)
    for time in range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes)):
        size = sizes[time]
        row = aten.narrow(rows, 0, sum(sizes[:time]), size)
        active = [aten.narrow(state, 0, 0, size) for state in states]
        if mode == LSTM:
            hidden, cell = aten.lstm_cell(row, active, w_ih, w_hh, b_ih, b_hh)
            made = [hidden if w_hr is None else aten.matmul(hidden, aten.t(w_hr)), cell]
        else:
            step = aten.gru_cell if mode == GRU else aten.rnn_tanh_cell if mode == TANH else aten.rnn_relu_cell
            made = [step(row, active[0], w_ih, w_hh, b_ih, b_hh)]
        outputs[time] = made[0]
        # Sequences that are over keep their state.
        states = made if size == batch else [aten.cat([new, aten.narrow(state, 0, size, batch - size)])
                                             for new, state in zip(made, states)]
    output = aten.cat(outputs)
    return [aten.reshape(output, (*shape[:-1], output._a.shape[1])), *states]


def differentiable_gradients(grads: Sequence[Tensor], tensors: Sequence[Tensor | None],
                             batch_sizes: Sequence[int] | None, reverse: bool, mode: int) -> tuple[Tensor | None, ...]:
    """Gradients for the eight tensors of a layer, with a graph; None where none is wanted."""
    # Through views, so that hooks on the tensors themselves do not see this inner search for gradients.
    seen: Any = [None if t is None else aten.view(t, t._a.shape) if t.requires_grad else t for t in tensors]
    data, w_ih, w_hh, b_ih, b_hh, w_hr, hx, cx = seen
    results = unrolled(data, w_ih, w_hh, b_ih, b_hh, w_hr, hx, cx, batch_sizes, reverse, mode)
    wanted = [i for i, t in enumerate(seen) if t is not None and t.requires_grad]
    found = grad(results, [seen[i] for i in wanted], list(grads[: len(results)]), create_graph=True, allow_unused=True)
    made: list[Tensor | None] = [None] * len(tensors)
    for i, one in zip(wanted, found):
        made[i] = one
    return tuple(made)
