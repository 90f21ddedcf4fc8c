"""Recurrent cells: one step of one layer."""

from __future__ import annotations

import math

from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import DType
from ..._tensor import Tensor
from .. import init
from ._affine import parameter
from ._homes import settle
from .module import Module

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What cells share: parameters, and input with or without a batch."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: DeviceLike = None,
                 dtype: DType | None = None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = parameter((rows, input_size), device, dtype)
        self.weight_hh = parameter((rows, hidden_size), device, dtype)
        self.register_parameter("bias_ih", parameter((rows,), device, dtype) if bias else None)
        self.register_parameter("bias_hh", parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new first values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """Sizes, and settings that are not the default."""
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"

    def _check(self, tensor: Tensor, label: str) -> None:
        if tensor.ndim not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {label} to be 1D or 2D, got {tensor.ndim}D instead")

    def _zeros(self, input: Tensor) -> Tensor:
        return aten.zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device)

    def _step(self, op: str, input: Tensor, hx: Tensor | None) -> Tensor:
        """One step of a cell with one state."""
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        batched = input.ndim == 2
        if not batched:
            input = aten.unsqueeze(input, 0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = aten.unsqueeze(hx, 0)
        made = getattr(aten, op)(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return made if batched else aten.squeeze(made, 0)


class RNNCell(RNNCellBase):
    """`tanh(W x + b + W' h + b')`, or `relu`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: DeviceLike = None, dtype: DType | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        self._check(input, "input")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: DeviceLike = None,
                 dtype: DType | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        return self._step("gru_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: DeviceLike = None,
                 dtype: DType | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next hidden and cell state."""
        self._check(input, "input")
        for number, state in enumerate(() if hx is None else hx):
            self._check(state, f"hx[{number}]")
        batched = input.ndim == 2
        if batched and isinstance(hx, Tensor):
            raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
        if not batched:
            input = aten.unsqueeze(input, 0)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        elif not batched:
            hx = (aten.unsqueeze(hx[0], 0), aten.unsqueeze(hx[1], 0))
        hidden, cell = aten.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (hidden, cell) if batched else (aten.squeeze(hidden, 0), aten.squeeze(cell, 0))


settle(__name__)
