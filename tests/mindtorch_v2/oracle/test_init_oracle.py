"""`torch.nn.init` against PyTorch: the same seed gives the same values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check_error, ours, theirs  # noqa: E402

Fill = Callable[[Any, Any], Any]

FILLS: dict[str, Fill] = {
    "uniform_": lambda i, x: i.uniform_(x, -2.0, 3.0),
    "normal_": lambda i, x: i.normal_(x, 1.0, 0.5),
    "trunc_normal_": lambda i, x: i.trunc_normal_(x, 0.0, 1.0, -1.0, 1.5),
    "trunc_normal_ wide": lambda i, x: i.trunc_normal_(x, std=0.02),
    "trunc_normal_ tail": lambda i, x: i.trunc_normal_(x, 0.0, 1.0, 1.0, 2.0),
    "constant_": lambda i, x: i.constant_(x, 0.3),
    "ones_": lambda i, x: i.ones_(x),
    "zeros_": lambda i, x: i.zeros_(x),
    "xavier_uniform_": lambda i, x: i.xavier_uniform_(x, gain=1.5),
    "xavier_normal_": lambda i, x: i.xavier_normal_(x),
    "kaiming_uniform_": lambda i, x: i.kaiming_uniform_(x, a=math.sqrt(5)),
    "kaiming_uniform_ out": lambda i, x: i.kaiming_uniform_(x, mode="fan_out", nonlinearity="relu"),
    "kaiming_normal_": lambda i, x: i.kaiming_normal_(x, nonlinearity="tanh"),
}


def filled(torch: Any, fill: Fill, shape: tuple[int, ...], dtype: str) -> Any:
    torch.manual_seed(42)
    tensor = torch.empty(shape, dtype=getattr(torch, dtype))
    result = fill(torch.nn.init, tensor)
    assert result is tensor
    # What is drawn next shows that equally many random numbers were consumed.
    return tensor, torch.rand(3)


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("shape", [(3, 5), (20, 30), (4, 3, 2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fill(name: str, shape: tuple[int, ...], dtype: str) -> None:
    want, got = (filled(module, FILLS[name], shape, dtype) for module in (theirs, ours))
    assert_same(got[0], want[0], name, tolerance=1e-6 if dtype == "float32" else 1e-12)
    assert_same(got[1], want[1], "next random numbers", tolerance=0.0)


@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (6, 3), (4, 3, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    want, got = (filled(module, lambda i, x: i.orthogonal_(x, gain=2.0), shape, "float64") for module in (theirs, ours))
    assert_same(got[0], want[0], "orthogonal_", tolerance=1e-10)
    assert_same(got[1], want[1], "next random numbers", tolerance=0.0)


def test_sparse() -> None:
    want, got = (filled(module, lambda i, x: i.sparse_(x, 0.4), (6, 5), "float32") for module in (theirs, ours))
    assert_same(got[0], want[0], "sparse_", tolerance=1e-6)
    assert_same(got[1], want[1], "next random numbers", tolerance=0.0)
    assert np.count_nonzero(got[0].numpy() == 0) == 3 * 5


@pytest.mark.parametrize(("fill", "shape"), [
    (lambda i, x: i.eye_(x), (3, 5)),
    (lambda i, x: i.dirac_(x), (3, 2, 3)),
    (lambda i, x: i.dirac_(x, 2), (4, 3, 3, 4)),
    (lambda i, x: i.dirac_(x), (2, 2, 1, 2, 3)),
])
def test_patterns(fill: Fill, shape: tuple[int, ...]) -> None:
    want, got = (filled(module, fill, shape, "float32") for module in (theirs, ours))
    assert_same(got[0], want[0], "pattern", tolerance=0.0)


@pytest.mark.parametrize("arguments", [("linear",), ("conv2d",), ("sigmoid",), ("tanh",), ("relu",), ("selu",),
                                       ("leaky_relu",), ("leaky_relu", 0.3)])
def test_gain(arguments: tuple[Any, ...]) -> None:
    assert ours.nn.init.calculate_gain(*arguments) == theirs.nn.init.calculate_gain(*arguments)


@pytest.mark.parametrize("action", [
    lambda t: t.nn.init.calculate_gain("cosine"),
    lambda t: t.nn.init.calculate_gain("leaky_relu", True),
    lambda t: t.nn.init.xavier_uniform_(t.empty(3)),
    lambda t: t.nn.init.kaiming_uniform_(t.empty(3, 3), mode="fan_sideways"),
    lambda t: t.nn.init.eye_(t.empty(3)),
    lambda t: t.nn.init.dirac_(t.empty(3, 3)),
    lambda t: t.nn.init.dirac_(t.empty(3, 3, 3), 2),
    lambda t: t.nn.init.orthogonal_(t.empty(3)),
    lambda t: t.nn.init.sparse_(t.empty(3), 0.1),
])
def test_errors(action: Callable[[Any], Any]) -> None:
    check_error(action)


def test_generator_is_used() -> None:
    made = []
    for module in (theirs, ours):
        module.manual_seed(0)
        made.append(module.nn.init.normal_(module.empty(5), generator=module.Generator().manual_seed(9)))
    assert_same(made[1], made[0], "normal_", tolerance=1e-6)


def test_parameters_can_be_filled_and_old_names_warn() -> None:
    parameter = ours.nn.Parameter(ours.zeros(2, 2))
    assert ours.nn.init.ones_(parameter) is parameter
    assert parameter.is_leaf
    for module in (theirs, ours):
        with pytest.warns(FutureWarning, match="`nn.init.constant` is now deprecated"):
            module.nn.init.constant(module.zeros(2), 1.0)


def test_empty_tensor_warns() -> None:
    for module in (theirs, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="zero-element tensors is a no-op"):
                module.nn.init.kaiming_uniform_(module.empty(0, 3))
