"""Recurrent layers: plain, LSTM and GRU, over whole sequences. The cells for single steps are in `rnn_cell`."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import DType
from ..._tensor import Tensor
from .. import init
from ..utils.rnn import PackedSequence
from ._affine import parameter
from ._homes import elsewhere
from .module import Module
from .rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
OP = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def permuted(states: Tensor, order: Tensor | None) -> Tensor:
    """States with their batch in another order."""
    return states if order is None else aten.index_select(states, 1, order)


class RNNBase(Module):
    """What recurrent layers share: parameters named by layer and direction, and the checks of input and states."""

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: DeviceLike = None, dtype: DType | None = None) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings(dropout)
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._add_layer(layer, direction, device, dtype)
        self.reset_parameters()

    def _check_settings(self, dropout: Any) -> None:
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element "
                             "being zeroed")
        if dropout > 0 and self.num_layers == 1:  # type: ignore[operator]
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                          f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                          stacklevel=4)
        for name, kind in (("input_size", int), ("hidden_size", int), ("bias", bool), ("batch_first", bool)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(getattr(self, name)).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_layer(self, layer: int, direction: int, device: DeviceLike, dtype: DType | None) -> None:
        rows = GATES[self.mode] * self.hidden_size
        shown = self.proj_size or self.hidden_size
        width = self.input_size if layer == 0 else shown * (2 if self.bidirectional else 1)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, shown)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{'_reverse' if direction else ''}" for name in shapes]
        for name, shape in zip(names, shapes.values()):
            setattr(self, name, parameter(shape, device, dtype))
        self._all_weights.append(names)
        self._flat_weights_names += names

    @property
    def _flat_weights(self) -> list[Any]:
        """The parameters in the order the op wants them; None for one that was taken away."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters, by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: only other devices want all weights in one piece of memory."""

    def reset_parameters(self) -> None:
        """Draw new first values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # -- checks ----------------------------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise if the input does not fit the layer."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert "
                             f"input: input.to({weight.dtype}), or convert model: model.to({input.dtype})")
        expected = 2 if batch_sizes is not None else 3
        if input.ndim != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.ndim}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                               f"{input.shape[-1]}")

    def _expected_size(self, input: Tensor, batch_sizes: Tensor | None, width: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.shape[0 if self.batch_first else 1]
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state for this input."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Raise if a state has another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if input or state do not fit the layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch in another order."""
        return permuted(hx, permutation)

    # -- forward ---------------------------------------------------------------------------------------------------

    def _unbatched_state(self, hx: Any, batched: bool) -> Any:
        """Check a given state's dimensions; without a batch it gets one."""
        if batched:
            if hx.ndim != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.ndim}-D tensor")
            return hx
        if hx.ndim != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.ndim}-D tensor")
        return aten.unsqueeze(hx, 1)

    def _first_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        size = self.get_expected_hidden_size(input, batch_sizes)
        return aten.zeros(size, dtype=input.dtype, device=input.device)

    def _checked(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> Any:
        """The given state, or the first one if none is given, after checking that it fits."""
        hx = self._first_state(input, batch_sizes) if hx is None else hx
        self.check_forward_args(input, hx, batch_sizes)
        for state in hx if isinstance(hx, (tuple, list)) else (hx,):
            if state.dtype != input.dtype:
                raise RuntimeError(f"{self.mode}: the state has an unsupported data type: expected {input.dtype}, as "
                                   f"the input, but got {state.dtype}")
        return hx

    def _without_batch(self, hidden: Any) -> Any:
        return aten.squeeze(hidden, 1)

    def _run(self, input: Any, hx: Any) -> Any:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D "
                             f"{'tensor ' * (self.mode.startswith('RNN'))}instead")
        batched = input.ndim == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = aten.unsqueeze(input, batch_dim)
        hx = self._checked(input, None if hx is None else self._unbatched_state(hx, batched), None)
        made = getattr(aten, OP[self.mode])(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
                                            self.training, self.bidirectional, self.batch_first)
        output, hidden = made[0], made[1:] if len(made) == 3 else made[1]
        if not batched:
            return aten.squeeze(output, batch_dim), self._without_batch(hidden)
        return output, hidden

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        # States come in the order of the sequences as the user had them.
        hx = self._checked(data, None if hx is None else self.permute_hidden(hx, sorted_indices), batch_sizes)
        made = getattr(aten, OP[self.mode])(data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers,
                                            self.dropout, self.training, self.bidirectional)
        hidden = made[1:] if len(made) == 3 else made[1]
        return (PackedSequence(made[0], batch_sizes, sorted_indices, unsorted_indices),
                self.permute_hidden(hidden, unsorted_indices))

    def extra_repr(self) -> str:
        """Sizes, and settings that are not the default."""
        shown = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            shown.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            shown.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            shown.append(f"bias={self.bias}")
        if self.batch_first is not False:
            shown.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            shown.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            shown.append(f"bidirectional={self.bidirectional}")
        return ", ".join(shown)


class RNN(RNNBase):
    """`h' = tanh(W x + b + W' h + b')`, or `relu`, over the steps of a sequence.

    >>> import mindtorch_v2 as torch
    >>> output, last = torch.nn.RNN(3, 4)(torch.ones(5, 2, 3))
    >>> output.shape, last.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `RNNBase` without `mode`, with `nonlinearity` ("tanh" or "relu") after `num_layers`."""
        if kwargs.get("proj_size"):
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """`(output, last state)` of `(time, batch, features)` input, or `(batch, time, features)` with `batch_first`.

        Input may have no batch dimension, or be a `PackedSequence`, in which case the output is one too.
        """
        return self._run(input, hx)


class GRU(RNNBase):
    """Gated recurrent units over the steps of a sequence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `RNNBase` without `mode` and `proj_size`."""
        if kwargs.get("proj_size"):
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """`(output, last state)` of `(time, batch, features)` input, or `(batch, time, features)` with `batch_first`.

        Input may have no batch dimension, or be a `PackedSequence`, in which case the output is one too.
        """
        return self._run(input, hx)


class LSTM(RNNBase):
    """Long short-term memory over the steps of a sequence; its state is a pair of hidden and cell state."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `RNNBase` without `mode`."""
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """`(output, last state)` of `(time, batch, features)` input, or `(batch, time, features)` with `batch_first`.

        Input may have no batch dimension, or be a `PackedSequence`, in which case the output is one too.
        """
        return self._run(input, hx)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state for this input."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if input or states do not fit the layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes),
                               "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes),
                               "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states with their batch in another order."""
        return hx if permutation is None else (permuted(hx[0], permutation), permuted(hx[1], permutation))

    def _unbatched_state(self, hx: Any, batched: bool) -> Any:
        hidden, cell = hx[0], hx[1]
        wanted = 3 if batched else 2
        if hidden.ndim != wanted or cell.ndim != wanted:
            raise RuntimeError(f"For {'batched' if batched else 'unbatched'} {wanted}-D input, hx and cx should also "
                               f"be {wanted}-D but got ({hidden.ndim}-D, {cell.ndim}-D) tensors")
        return hx if batched else (aten.unsqueeze(hidden, 1), aten.unsqueeze(cell, 1))

    def _first_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else batch_sizes[0]
        layers = self.num_layers * (2 if self.bidirectional else 1)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)
        return tuple(aten.zeros((layers, int(batch), width), dtype=input.dtype, device=input.device)
                     for width in widths)

    def _checked(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> Any:
        if hx is not None:
            return super()._checked(input, hx, batch_sizes)
        self.check_input(input, batch_sizes)
        return self._first_state(input, batch_sizes)

    def _without_batch(self, hidden: Any) -> Any:
        return aten.squeeze(hidden[0], 1), aten.squeeze(hidden[1], 1)


__getattr__ = elsewhere(__name__)
