"""Recurrent layers step by step, out of small ops, arranged as PyTorch arranges them.

The products with the input weights are taken for all steps at once. A step gets its share of them (`drive`) and the
states, and returns the new states, of which the first one is its output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._autograd.api import grad
from .._backends.cpu.recurrent import GRU, LSTM, RELU, TANH
from .._dispatch.namespace import aten
from .._tensor import Tensor

States = list[Tensor]
Step = Callable[[Tensor, States], States]


def lstm_step(drive: Tensor, states: States, w_hh: Tensor, b_hh: Any, w_hr: Any = None) -> States:
    """Four gates; the cell state is kept apart from what is shown of it."""
    hidden, cell = states
    gates = aten.unsafe_chunk(aten.add_(aten.linear(hidden, w_hh, b_hh), drive), 4, 1)
    entry, forget = aten.sigmoid_(gates[0]), aten.sigmoid_(gates[1])
    new, shown = aten.tanh_(gates[2]), aten.sigmoid_(gates[3])
    cell = aten.add_(aten.mul(forget, cell), aten.mul(entry, new))
    hidden = aten.mul(shown, aten.tanh(cell))
    return [hidden if w_hr is None else aten.matmul(hidden, aten.t(w_hr)), cell]


def gru_step(drive: Tensor, states: States, w_hh: Tensor, b_hh: Any) -> States:
    """Two gates: how much of the state the new value sees, and how much of it stays."""
    (hidden,) = states
    driven = aten.unsafe_chunk(drive, 3, 1)
    held = aten.unsafe_chunk(aten.linear(hidden, w_hh, b_hh), 3, 1)
    reset = aten.sigmoid_(aten.add_(held[0], driven[0]))
    update = aten.sigmoid_(aten.add_(held[1], driven[1]))
    new = aten.tanh_(aten.add(driven[2], aten.mul_(held[2], reset)))
    return [aten.add_(aten.mul_(aten.sub(hidden, new), update), new)]


def plain_step(activation: str) -> Callable[[Tensor, States, Tensor, Any], States]:
    """No gates."""

    def apply(drive: Tensor, states: States, w_hh: Tensor, b_hh: Any) -> States:
        return [getattr(aten, activation)(aten.add_(aten.linear(states[0], w_hh, b_hh), drive))]

    return apply


def _padded(drives: Sequence[Tensor], states: States, step: Step, reverse: bool) -> tuple[Tensor, States]:
    outputs = []
    for drive in reversed(drives) if reverse else drives:
        states = step(drive, states)
        outputs.append(states[0])
    return aten.stack(outputs[::-1] if reverse else outputs, 0), states


def _packed(drive: Tensor, states: States, step: Step, sizes: Sequence[int]) -> tuple[Tensor, States]:
    """Longer sequences come first: at every step some rows at the end may be over, and their states are final."""
    outputs, done, row, running = [], [], 0, sizes[0]
    for size in sizes:
        part = aten.narrow(drive, 0, row, size)
        row += size
        if size < running:
            done.append([aten.narrow(state, 0, size, running - size) for state in states])
            states = [aten.narrow(state, 0, 0, size) for state in states]
            running = size
        states = step(part, states)
        outputs.append(states[0])
    done.append(states)
    return aten.cat(outputs, 0), [aten.cat(parts, 0) for parts in zip(*done[::-1])]


def _packed_backwards(drive: Tensor, initial: States, step: Step, sizes: Sequence[int]) -> tuple[Tensor, States]:
    """From the last step to the first, sequences join in with their initial states."""
    outputs, row, running = [], drive._a.shape[0], sizes[-1]
    states = [aten.narrow(state, 0, 0, running) for state in initial]
    for size in reversed(sizes):
        if size > running:
            states = [aten.cat([state, aten.narrow(first, 0, running, size - running)], 0)
                      for state, first in zip(states, initial)]
            running = size
        row -= size
        states = step(aten.narrow(drive, 0, row, size), states)
        outputs.append(states[0])
    return aten.cat(outputs[::-1], 0), states


def run_layer(mode: int, data: Tensor, weights: Sequence[Any], has_biases: bool, states: States,
              batch_sizes: Sequence[int] | None, reverse: bool) -> tuple[Tensor, States]:
    """One direction of one layer: the output of all steps and the final states."""
    w_ih, w_hh = weights[:2]
    b_ih, b_hh = weights[2:4] if has_biases else (None, None)
    w_hr = weights[-1] if len(weights) % 2 else None
    drive = aten.linear(data, w_ih, b_ih)

    def step(part: Tensor, states: States) -> States:
        if mode == LSTM:
            return lstm_step(part, states, w_hh, b_hh, w_hr)
        return STEPS[mode](part, states, w_hh, b_hh)

    if batch_sizes is None:
        return _padded(aten.unbind(drive, 0), states, step, reverse)
    return (_packed_backwards if reverse else _packed)(drive, states, step, batch_sizes)


STEPS = {GRU: gru_step, TANH: plain_step("tanh"), RELU: plain_step("relu")}


def differentiable_gradients(mode: int, grads: Sequence[Tensor], tensors: Sequence[Tensor | None],
                             reverse: bool) -> tuple[Tensor | None, ...]:
    """Gradients with a graph for input, weights, biases and states of a layer; None where none is wanted.

    The fused layer's backward is a kernel that nothing is known about. When its result is to be differentiated again,
    the layer is computed once more in small ops, and the engine finds the gradients, which then have a graph.
    """
    # Through views, so that hooks on the tensors themselves do not see this inner search for gradients.
    seen: Any = [None if t is None else aten.view(t, t._a.shape) if t.requires_grad else t for t in tensors]
    data, w_ih, w_hh, b_ih, b_hh, *initial = seen
    weights = (w_ih, w_hh) if b_ih is None else (w_ih, w_hh, b_ih, b_hh)
    output, states = run_layer(mode, data, weights, b_ih is not None, initial, None, reverse)
    wanted = [i for i, t in enumerate(seen) if t is not None and t.requires_grad]
    found = grad([output, *states], [seen[i] for i in wanted], list(grads), create_graph=True, allow_unused=True)
    made: list[Tensor | None] = [None] * len(tensors)
    for i, one in zip(wanted, found):
        made[i] = one
    return tuple(made)
