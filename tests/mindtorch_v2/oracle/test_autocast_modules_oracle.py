"""Whole modules under autocast: outputs, gradients and all their dtypes as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness import assert_same, ours, theirs

Maker = Callable[[Any], Any]


def after_linear(*layers: Callable[[Any], Any]) -> Maker:
    """Layers that get what a linear layer makes, in low precision."""
    return lambda nn: nn.Sequential(nn.Linear(4, 6), *(layer(nn) for layer in layers))


def after_convolution(*layers: Callable[[Any], Any]) -> Maker:
    return lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3), *(layer(nn) for layer in layers))


MODULES: dict[str, tuple[Maker, list[tuple[int, ...]]]] = {
    "GRU": (lambda nn: nn.GRU(4, 5), [(3, 2, 4)]),
    "GRU, two layers, both directions": (
        lambda nn: nn.GRU(4, 5, 2, bidirectional=True, batch_first=True), [(3, 2, 4)]),
    "RNN": (lambda nn: nn.RNN(4, 5), [(3, 2, 4)]),
    "RNN, relu": (lambda nn: nn.RNN(4, 5, nonlinearity="relu"), [(3, 2, 4)]),
    "LSTM, two layers, both directions": (lambda nn: nn.LSTM(4, 5, 2, bidirectional=True), [(3, 2, 4)]),
    "LSTM with a projection": (lambda nn: nn.LSTM(4, 5, proj_size=3), [(3, 2, 4)]),
    "LSTM without biases": (lambda nn: nn.LSTM(4, 5, bias=False), [(3, 2, 4)]),
    "GRUCell": (lambda nn: nn.GRUCell(4, 5), [(2, 4)]),
    "LSTMCell": (lambda nn: nn.LSTMCell(4, 5), [(2, 4)]),
    "RNNCell": (lambda nn: nn.RNNCell(4, 5), [(2, 4)]),
    "MultiheadAttention": (lambda nn: nn.MultiheadAttention(8, 2), [(3, 2, 8)] * 3),
    "TransformerDecoderLayer": (lambda nn: nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0), [(3, 2, 8), (4, 2, 8)]),
    "TransformerEncoderLayer": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0).eval(), [(3, 2, 8)]),
    "Bilinear": (lambda nn: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)]),
    "BatchNorm1d": (after_linear(lambda nn: nn.BatchNorm1d(6)), [(5, 4)]),
    "LayerNorm": (after_linear(lambda nn: nn.LayerNorm(6)), [(5, 4)]),
    "RMSNorm": (after_linear(lambda nn: nn.RMSNorm(6)), [(5, 4)]),
    "activations": (after_linear(lambda nn: nn.SiLU(), lambda nn: nn.Mish(), lambda nn: nn.GELU(), lambda nn: nn.ELU(),
                                 lambda nn: nn.Softplus(), lambda nn: nn.Softmax(1)), [(5, 4)]),
    "GroupNorm": (after_convolution(lambda nn: nn.GroupNorm(2, 4)), [(2, 3, 6, 6)]),
    "InstanceNorm2d": (after_convolution(lambda nn: nn.InstanceNorm2d(4, affine=True)), [(2, 3, 6, 6)]),
    "PReLU": (after_convolution(lambda nn: nn.PReLU(4)), [(2, 3, 6, 6)]),
    "pooling": (after_convolution(lambda nn: nn.MaxPool2d(2), lambda nn: nn.AdaptiveAvgPool2d(1)), [(2, 3, 6, 6)]),
    "Upsample": (after_convolution(lambda nn: nn.Upsample(scale_factor=2, mode="bilinear")), [(2, 3, 6, 6)]),
    "depthwise convolution": (lambda nn: nn.Conv2d(4, 4, 3, groups=4, padding="same"), [(2, 4, 6, 6)]),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), [(2, 3, 6, 6)]),
    "weight_norm": (lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), [(5, 4)]),
    "spectral_norm": (lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), [(5, 4)]),
}


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [] if value is None else [value]


def run(torch: Any, maker: Maker, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Outputs, then the gradients of inputs and parameters."""
    torch.manual_seed(0)
    module = maker(torch.nn)
    inputs = [torch.randn(*shape).requires_grad_() for shape in shapes]
    with torch.autocast("cpu"):
        outputs = flat(module(*inputs))
    sum(out.float().square().mean() for out in outputs).backward()
    return [*outputs, *(tensor.grad for tensor in [*inputs, *module.parameters()] if tensor.grad is not None)]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning", "ignore:Mismatch dtype:UserWarning")
def test_module(name: str) -> None:
    want, got = run(theirs, *MODULES[name]), run(ours, *MODULES[name])
    assert len(got) == len(want)
    for i, (one, other) in enumerate(zip(got, want, strict=True)):
        assert_same(one, other, f"{name}, result {i}", tolerance=2e-2)
