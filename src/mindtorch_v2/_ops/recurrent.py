"""Recurrent layers and cells.

An LSTM layer of padded sequences is one op, and so are its gradients, as in PyTorch. PyTorch runs GRU and plain layers
step by step. Here they are the same one op where no gradient is needed, inside the layer's own row. With gradients they
go step by step here too: the nodes of the steps are rows of their own in a profile of the backward. So do packed
sequences, projections and other dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.grad_mode import is_grad_enabled
from .._backends.base import has_kernel, to_host
from .._backends.cpu import recurrent as kernels
from .._backends.cpu.memory import zeros_like
from .._backends.cpu.recurrent import GRU, LSTM, RELU, TANH
from .._backends.cpu.view import split
from .._dispatch.autocast import casts
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._shape import wrap_dim
from .._tensor import Tensor
from .recurrent_steps import STEPS, differentiable_gradients, lstm_step, run_layer

# -- one direction of a layer ----------------------------------------------------------------------------------------


def _mkldnn_layer(input: Any, weight0: Any, weight1: Any, weight2: Any, weight3: Any, hx: Any, cx: Any, reverse: bool,
                  batch_sizes: Any, mode: int, hidden_size: int, num_layers: int, has_biases: bool,
                  bidirectional: bool, batch_first: bool, train: bool) -> Any:
    biases = (weight2, weight3) if has_biases else None
    return kernels.forward(mode, input, weight0, weight1, biases, hx, cx if mode == LSTM else None, reverse)


def _mkldnn_layer_backward(input: Any, weight1: Any, weight2: Any, weight3: Any, weight4: Any, hx: Any, cx: Any,
                           output: Any, hy: Any, cy: Any, grad_output: Tensor, grad_hy: Any, grad_cy: Any,
                           reverse: bool, mode: int, hidden_size: int, num_layers: int, has_biases: bool, train: bool,
                           bidirectional: bool, batch_sizes: Any, batch_first: bool, workspace: Any) -> Any:
    first, second, third = (zeros_like(made) if grad is None else grad
                            for grad, made in ((grad_output, output), (grad_hy, hy), (grad_cy, cy)))
    if mode != LSTM:
        third = cx = None
    return kernels.backward(mode, first, second, third, input, weight1, weight2, has_biases, hx, cx, output, workspace,
                            reverse)


def _mkldnn_gradients(given_grads: Any, input: Tensor, weight0: Tensor, weight1: Tensor, weight2: Tensor,
                      weight3: Tensor, hx_: Tensor, cx_: Tensor, result0: Tensor, result1: Tensor, result2: Tensor,
                      result3: Tensor, reverse: bool, batch_sizes: Any, mode: int, hidden_size: int, num_layers: int,
                      has_biases: bool, bidirectional: bool, batch_first: bool, train: bool) -> Any:
    if is_grad_enabled():
        biases = (weight2, weight3) if has_biases else (None, None)
        states = (hx_, cx_) if mode == LSTM else (hx_,)
        grads = [aten.zeros_like(made) if grad is None else grad
                 for grad, made in zip(given_grads, (result0, result1, result2)[: 1 + len(states)])]
        found = differentiable_gradients(mode, grads, (input, weight0, weight1, *biases, *states), reverse)
    else:
        found = aten.mkldnn_rnn_layer_backward(
            input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, *given_grads[:3],
            reverse, mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3)
    return found if mode == LSTM else (*found[:6], None)


def layer_flops(mode: int, back: bool, data: Sequence[int], w_ih: Sequence[int], w_hh: Sequence[int]) -> int:
    """Those of the products that PyTorch runs for such a layer step by step; it counts none of an LSTM."""
    if mode == LSTM:
        return 0
    return (4 if back else 2) * data[0] * data[1] * w_ih[0] * (w_ih[1] + w_hh[1])


# Layers without cells get their state a second time for `cx_`, which they do not use.
FUSED_LAYER = declare(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, "
    "Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, "
    "bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
    cpu=_mkldnn_layer, where="f", differentiable=(0, 1, 2),
    flops=lambda shapes, arguments: layer_flops(arguments[9], False, *shapes[:3]) or -1,
    grad={("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"): _mkldnn_gradients},
)
declare(
    "mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, "
    "Tensor hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, "
    "Tensor? grad_cy, bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, "
    "bool bidirectional, int[] batch_sizes, bool batch_first, Tensor workspace) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    cpu=_mkldnn_layer_backward, where="n",
    flops=lambda shapes, arguments: layer_flops(arguments[14], True, *shapes[:3]) or -1,
)

# -- layers on top of each other -----------------------------------------------------------------------------------


class Stack:
    """Layers on top of each other, each in one or two directions."""

    def __init__(self, mode: int, states: Sequence[Any], params: Sequence[Any], has_biases: bool, num_layers: int,
                 dropout: float, train: bool, bidirectional: bool) -> None:
        self.mode, self.states, self.params, self.has_biases = mode, states, params, has_biases
        self.num_layers, self.dropout, self.train = num_layers, dropout, train
        self.directions = 2 if bidirectional else 1
        self.projects = mode == LSTM and states[0]._a.shape[2] != states[1]._a.shape[2]
        self.stride = 2 + 2 * has_biases + self.projects
        expected = num_layers * self.directions * self.stride
        if len(params) != expected:
            raise RuntimeError(f"got an incorrect number of RNN parameters: {len(params)} instead of {expected}")

    def fuses(self, data: Tensor) -> bool:
        """Whether a layer of padded sequences is one op: not where PyTorch's steps round to 16 bits."""
        if self.mode == LSTM:
            fits = not self.projects and data.dtype.name in ("float32", "bfloat16")
        else:
            learns = is_grad_enabled() and any(t.requires_grad for t in (data, *self.states, *self.params))
            fits = data.dtype.name == "float32" and not learns and not casts((data,))
        return fits and has_kernel(FUSED_LAYER, data._a)

    def run(self, data: Tensor, batch_sizes: Sequence[int] | None) -> list[Any]:
        """The output of the last layer, then the final states of all layers, stacked."""
        fused = batch_sizes is None and self.fuses(data)
        initial = None if fused else [aten.unbind(state, 0) for state in self.states]
        final: list[list[Any]] = [[] for _ in self.states]
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self.directions):
                number = layer * self.directions + direction
                weights = self.params[number * self.stride: (number + 1) * self.stride]
                if initial is None:
                    states = [aten.select(state, 0, number) for state in self.states]
                    made = self.fused_layer(data, weights, states, direction == 1)
                else:
                    states = [state[number] for state in initial]
                    made = run_layer(self.mode, data, weights, self.has_biases, states, batch_sizes, direction == 1)
                outputs.append(made[0])
                for kept, state in zip(final, made[1]):
                    kept.append(state)
            data = outputs[0] if self.directions == 1 else aten.cat(outputs, data.ndim - 1)
            if self.dropout and self.train and layer < self.num_layers - 1:
                data = aten.dropout(data, self.dropout, True)
        return [data, *(aten.stack(states, 0) for states in final)]

    def fused_layer(self, data: Tensor, weights: Sequence[Any], states: Sequence[Any], reverse: bool) -> Any:
        """One direction of one layer."""
        w_ih, w_hh = weights[:2]
        if self.has_biases:
            b_ih, b_hh = weights[2:4]
        else:
            b_ih = b_hh = aten.zeros((w_ih._a.shape[0],), dtype=w_ih.dtype, device=w_ih.device)
        made = aten.mkldnn_rnn_layer(data, w_ih, w_hh, b_ih, b_hh, states[0], states[-1], reverse, [], self.mode,
                                     states[0]._a.shape[1], self.num_layers, self.has_biases, self.directions == 2,
                                     False, self.train)
        return made[0], made[1: 1 + len(states)]


def _padded(mode: int) -> Any:
    def apply(input: Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
              bidirectional: bool, batch_first: bool) -> tuple[Tensor, ...]:
        if input.ndim != 3:
            raise RuntimeError(f"input must have 3 dimensions, got {input.ndim}")
        if not input._a.shape[1 if batch_first else 0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        states = list(hx) if mode == LSTM else [hx]
        if mode == LSTM and len(states) != 2:
            raise RuntimeError("lstm expects two hidden states")
        stack = Stack(mode, states, params, has_biases, num_layers, dropout, train, bidirectional)
        fused = stack.fuses(input)
        data = aten.transpose(input, 0, 1) if batch_first else input
        made = stack.run(aten.contiguous(data) if fused else data, None)
        if batch_first:
            made[0] = aten.transpose(made[0], 0, 1) if fused else aten.transpose_(made[0], 0, 1)
        return tuple(made)

    return apply


def _packed(mode: int) -> Any:
    def apply(data: Tensor, batch_sizes: Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int,
              dropout: float, train: bool, bidirectional: bool) -> tuple[Tensor, ...]:
        states = list(hx) if mode == LSTM else [hx]
        if mode == LSTM and len(states) != 2:
            raise RuntimeError("lstm expects two hidden states")
        stack = Stack(mode, states, params, has_biases, num_layers, dropout, train, bidirectional)
        return tuple(stack.run(data, to_host(batch_sizes._a).tolist()))

    return apply


def _face(name: str) -> Any:
    def apply(*arguments: Any, **named: Any) -> Any:
        packed = "batch_sizes" in named or (len(arguments) > 3 and isinstance(arguments[3], (list, tuple)))
        return getattr(aten, f"{name}__{'data' if packed else 'input'}")(*arguments, **named)

    apply.__name__ = name
    apply.__doc__ = f"`{name}(input, hx, params, …)` or, if packed, `{name}(data, batch_sizes, hx, params, …)`."
    return apply


SETTINGS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
for _name, _mode in (("lstm", LSTM), ("gru", GRU), ("rnn_tanh", TANH), ("rnn_relu", RELU)):
    _state = "Tensor[] hx" if _mode == LSTM else "Tensor hx"
    _returns = "(Tensor, Tensor, Tensor)" if _mode == LSTM else "(Tensor, Tensor)"
    declare(f"{_name}.input(Tensor input, {_state}, {SETTINGS}, bool batch_first) -> {_returns}",
            composite=_padded(_mode), where="f")
    declare(f"{_name}.data(Tensor data, Tensor batch_sizes, {_state}, {SETTINGS}) -> {_returns}",
            composite=_packed(_mode), where="f")
    choose(_name, where="f")(_face(_name))

# -- cells ---------------------------------------------------------------------------------------------------------


# "Unsafe" because the pieces share memory while the graph takes them for separate tensors: whoever uses this may change
# pieces in place, but must not use the whole again.
declare("unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", cpu=split, where="fm",
        grad={"self": lambda grads, dim: aten.cat(grads, dim)})


def _unsafe_chunk(self: Tensor, chunks: int, dim: int) -> Any:
    extent = self._a.shape[wrap_dim(dim, self.ndim)]
    return aten.unsafe_split__Tensor(self, -(-extent // chunks), dim)


declare("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", composite=_unsafe_chunk)


def _check_cell(input: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor) -> None:
    """The sizes that a cell's products would complain about less clearly."""
    if input._a.shape[1] != w_ih._a.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input._a.shape[1]} expected {w_ih._a.shape[1]}")
    if input._a.shape[0] != hidden._a.shape[0]:
        raise RuntimeError(f"Input batch size {input._a.shape[0]} doesn't match hidden0 batch size "
                           f"{hidden._a.shape[0]}")
    if hidden._a.shape[1] != w_hh._a.shape[1]:
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {hidden._a.shape[1]}, expected "
                           f"{w_hh._a.shape[1]}")


def _lstm_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> tuple[Tensor, Tensor]:
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    hidden, cell = hx
    _check_cell(input, hidden, w_ih, w_hh)
    hidden, cell = lstm_step(aten.linear(input, w_ih, b_ih), [hidden, cell], w_hh, b_hh)
    return hidden, cell


def _other_cell(mode: int) -> Any:
    def apply(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
        _check_cell(input, hx, w_ih, w_hh)
        return STEPS[mode](aten.linear(input, w_ih, b_ih), [hx], w_hh, b_hh)[0]

    return apply


CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
declare(f"lstm_cell(Tensor input, Tensor[] hx, {CELL}) -> (Tensor, Tensor)", composite=_lstm_cell, where="f")
declare(f"gru_cell(Tensor input, Tensor hx, {CELL}) -> Tensor", composite=_other_cell(GRU), where="f")
declare(f"rnn_tanh_cell(Tensor input, Tensor hx, {CELL}) -> Tensor", composite=_other_cell(TANH), where="f")
declare(f"rnn_relu_cell(Tensor input, Tensor hx, {CELL}) -> Tensor", composite=_other_cell(RELU), where="f")
