"""The C kernels compute what NumPy's do: every level of instructions, odd and empty shapes, layouts, threads, forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from length import LONG
from mindtorch_v2._backends.cpu import elements, providers

pytestmark = pytest.mark.skipif(providers.native is None, reason=f"no C kernels: {providers.MISSING}")
functional = torch.nn.functional
LEVELS = providers.native.levels() if providers.native is not None else ()


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    before = providers.native.level()
    providers.native.set_level(request.param)
    yield request.param
    providers.native.set_level(before)


@pytest.fixture(params=[1, 2, 5] if LONG else [1, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(function: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Results and gradients."""
    tensors = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    made = function(*tensors)
    pull = torch.tensor(normal(*made.shape, seed=9)).to(made.dtype)
    if made.requires_grad:
        made.backward(pull)
    return [made.detach().double().numpy(), *(t.grad.double().numpy() for t in tensors if t.grad is not None)]


def compare(function: Callable[..., Any], *arrays: np.ndarray, tolerance: float = 2e-5) -> None:
    """By the C kernels, which must have run, and by NumPy."""
    before = sum(providers.native.calls().values())
    quick = run(function, list(arrays))
    assert sum(providers.native.calls().values()) > before
    with providers.numpy_only():
        slow = run(function, list(arrays))
    for got, want in zip(quick, slow, strict=True):
        size = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * size, equal_nan=True)


SIZES = [(1, 1), (1, 7), (3, 16), (5, 33), (2, 100), (64, 257), (300, 128)]


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str, shape: tuple[int, int]) -> None:
    compare(lambda x: getattr(functional, name)(x, -1), 5 * normal(*shape))


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize(("shape", "dim"), [((64, 33), 0), ((5, 40, 7), 1), ((3, 9, 31), 0), ((2, 3, 20, 9), -2)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_along_another_dimension(name: str, shape: tuple[int, ...], dim: int) -> None:
    x = 5 * normal(*shape)
    compare(lambda x: getattr(functional, name)(x, dim), x)
    with np.errstate(all="ignore"):
        x.reshape(-1)[:3] = np.nan, np.inf, -np.inf
        compare(lambda x: getattr(functional, name)(x, dim), x)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_what_is_not_finite(name: str) -> None:
    x = normal(6, 37)
    x[0, 3], x[1, 4], x[2, :], x[3, 36], x[4, :] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    with np.errstate(all="ignore"):
        compare(lambda x: getattr(functional, name)(x, -1), x)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(shape: tuple[int, int], affine: bool) -> None:
    arrays = [3 * normal(*shape) + 1] + ([normal(shape[1], seed=1), normal(shape[1], seed=2)] if affine else [])
    tolerance = 2e-5 if shape[1] > 7 else 1e-2  # the variance of a row of one is nothing but eps
    compare(lambda x, *rest: functional.layer_norm(x, (shape[1],), *rest), *arrays, tolerance=tolerance)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "exp": lambda x: torch.exp(x), "log": lambda x: torch.log(x.abs() + 0.1), "tanh": lambda x: torch.tanh(x),
    "sigmoid": lambda x: torch.sigmoid(x), "erf": lambda x: torch.erf(x), "silu": lambda x: functional.silu(x),
    "gelu": lambda x: functional.gelu(x), "gelu, tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu": lambda x: torch.relu(x), "sqrt": lambda x: torch.sqrt(x.abs() + 0.1), "neg": lambda x: -x,
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.1), "reciprocal": lambda x: torch.reciprocal(x.abs() + 0.1),
    "number": lambda x: (2 - x) / 3 + x * 5,
}


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("shape", [(1,), (), (7,), (3, 5, 11), (40_003,), (0, 4)])
def test_functions_of_elements(name: str, shape: tuple[int, ...]) -> None:
    compare(ELEMENTWISE[name], np.asarray(3 * normal(*shape), np.float32))  # NumPy 1 makes float64 of a single number


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize(("first", "second"), [((4, 4), (4, 4)), ((3, 5), (5,)), ((5,), (3, 5)), ((2, 3, 5), (3, 5)),
                                               ((3, 5), ()), ((), (3, 5)), ((70, 700), (700,)), ((90_001,), (90_001,))])
def test_two_operands(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    compare(lambda a, b: (a + b) * (a - b) / (b * b + 1), normal(*first), normal(*second, seed=1))


def test_operands_that_share_memory() -> None:
    x = np.arange(10, dtype=np.float32)
    wanted = x[1:] + x[:-1]
    np.testing.assert_array_equal(elements.add(x[1:], x[:-1], x[1:]), wanted)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = x + x[0]
    np.testing.assert_array_equal(elements.add(x, x[0], out=x), wanted)
    x = np.arange(10, dtype=np.float32)
    assert providers.native.update(elements.LERP, x[1:], x[1:], x[:-1], x[:-1], 0.25) is None
    np.testing.assert_array_equal(x, np.arange(10))


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps", "backwards"])
@pytest.mark.parametrize("size", [(4, 4, 4), (5, 7, 9), (13, 33, 65), (100, 130, 700), (257, 1100, 40), (6, 8, 0)])
def test_products(size: tuple[int, int, int], layout: str) -> None:
    rows, columns, inner = size
    a, b, c = normal(rows, inner), normal(inner, columns, seed=1), normal(columns, seed=2)
    if layout == "columns":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    elif layout == "gaps":
        a, b = normal(rows, 2 * inner)[:, ::2], normal(inner, 3 * columns, seed=1)[:, ::3]
    elif layout == "backwards":
        a, b = a[::-1], b[:, ::-1]
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(providers.native.matmul(a, b, None), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(providers.native.matmul(a, b, c), wanted + c, rtol=1e-4, atol=1e-4)
    into = np.ones((rows, columns), np.float32)
    providers.native.multiply_into(into, a, b, True)
    np.testing.assert_allclose(into, wanted + 1, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("size", [(1, 5, 6, 7), (3, 64, 65, 33), (9, 40, 8, 8), (2, 200, 220, 240)])
def test_products_of_batches(size: tuple[int, int, int, int]) -> None:
    count, rows, columns, inner = size
    compare(torch.bmm, normal(count, rows, inner), normal(count, inner, columns, seed=1))


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "groups", "rows", "keys", "features"), [
    (1, 1, 1, 1, 1), (4, 4, 64, 64, 32), (4, 2, 7, 7, 5), (3, 3, 130, 130, 17), (2, 1, 33, 70, 64), (8, 8, 100, 20, 8)])
def test_attention(heads: int, groups: int, rows: int, keys: int, features: int, causal: bool) -> None:
    arrays = [normal(2, heads, rows, features), normal(2, groups, keys, features, seed=1),
              normal(2, groups, keys, features, seed=2)]
    attend = functional.scaled_dot_product_attention
    compare(lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=True), *arrays)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("shape", [(40, 50), (2, 1, 40, 50), (2, 3, 1, 50), (1, 3, 40, 1)])
def test_attention_with_a_mask(shape: tuple[int, ...]) -> None:
    mask = np.where(np.random.default_rng(3).random(shape) < 0.3, -np.inf, 0.5).astype(np.float32)
    arrays = [normal(2, 3, 40, 16), normal(2, 3, 50, 16, seed=1), normal(2, 3, 50, 16, seed=2)]
    given = torch.tensor(mask)
    compare(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, given), *arrays)


def test_a_row_that_sees_nothing() -> None:
    mask = torch.zeros(4, 6)
    mask[1] = -np.inf
    arrays = [normal(1, 1, 4, 8), normal(1, 1, 6, 8, seed=1), normal(1, 1, 6, 8, seed=2)]
    compare(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, mask), *arrays)


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 5, 7, 9), (2, 16, 40, 96), (4, 3, 20, 100), (3, 61, 5, 50),
                                   (2, 64, 4, 300)])
@pytest.mark.parametrize(("kind", "kwargs"), [("LSTM", {}), ("LSTM", {"bidirectional": True}), ("GRU", {}),
                                              ("GRU", {"bidirectional": True, "bias": False}), ("RNN", {}),
                                              ("RNN", {"nonlinearity": "relu", "bidirectional": True})], ids=str)
def test_recurrent_layers(kind: str, kwargs: dict[str, Any], sizes: tuple[int, int, int, int]) -> None:
    steps, batch, features, hidden = sizes
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(features, hidden, **kwargs)

    def function(x: Any) -> Any:
        layer.zero_grad()
        made, states = layer(x)
        return torch.cat([made.flatten(), *(s.flatten() for s in (states if kind == "LSTM" else [states]))])

    compare(function, normal(steps, batch, features))
    compare(lambda x: (function(x).sum().backward(retain_graph=True),
                       torch.cat([p.grad.flatten() for p in layer.parameters()]))[1], normal(steps, batch, features),
            tolerance=1e-4)
    assert providers.native.calls()["recurrent_back"]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_sequences_do_not_depend_on_who_computes_them(kind: str) -> None:
    """Threads that compute whole sequences and threads that share each step compute the same bits."""
    found = []
    for count in (1, 2, 3, 5):
        torch.manual_seed(0)
        layer, x = getattr(torch.nn, kind)(40, 96), torch.randn(6, 16, 40, requires_grad=True)
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            output = layer(x)[0]
        finally:
            torch.set_num_threads(before)
        found.append(output.detach().numpy())
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(("sequence", "given"), [((7,), (300, 70)), ((1,), (5,)), ((4, 9), (4, 8000)), ((0,), (3,))])
def test_searchsorted(sequence: tuple[int, ...], given: tuple[int, ...], right: bool) -> None:
    edges, values = np.sort(normal(*sequence)).round(1), normal(*given, seed=1).round(1)
    values.flat[:2] = np.nan, np.inf
    found = torch.searchsorted(torch.tensor(edges), torch.tensor(values), right=right)
    with providers.numpy_only():
        np.testing.assert_array_equal(torch.searchsorted(torch.tensor(edges), torch.tensor(values), right=right), found)
    assert providers.native.calls()["search"]


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("size", [3, 1000, 70_001])
@pytest.mark.parametrize("to", ["bool", "uint8", "int32", "int64", "float32", "float64", "float16"])
@pytest.mark.parametrize("given", ["bool", "uint8", "int32", "int64", "float32", "float64"])
def test_conversions_between_types(given: str, to: str, size: int) -> None:
    made = (100 * normal(size)).clip(0, 250 if "uint8" in (given, to) else None).astype(given)
    found = torch.tensor(made).to(getattr(torch, to))
    with providers.numpy_only():
        np.testing.assert_array_equal(torch.tensor(made).to(getattr(torch, to)), found)


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shapes", [((300, 1), (300, 300)), ((1, 300), (300, 300)), ((1, 1), (300, 300)),
                                    ((5, 1, 1), (5, 40, 7)), ((1, 40, 7), (5, 40, 7)), ((5, 1, 7), (5, 40, 7))],
                         ids=str)
@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.mul, torch.div])
def test_operands_that_were_expanded(function: Any, shapes: tuple[Any, Any]) -> None:
    small, large = shapes
    compare(lambda x, y: function(x.expand(large), y), normal(*small), 3 + np.abs(normal(*large, seed=1)))
    compare(lambda x, y: function(y, x.expand(large)), 3 + np.abs(normal(*small)), normal(*large, seed=1))
    compare(lambda x, y: function(x.expand(large), x.expand(large)), 3 + np.abs(normal(*small)), normal(1),
            tolerance=1e-4)
    compare(lambda x, y: function(x.expand(large), 2.5) + y, normal(*small), normal(*large))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool"])
@pytest.mark.parametrize("function", [
    lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x.sin(), lambda x, y: x == y, lambda x, y: x >= y,
    lambda x, y: x & y if x.dtype is torch.bool else x.log1p(), lambda x, y: torch.maximum(x, y),
    lambda x, y: x.pow(y) if x.is_floating_point() else x | y,
    lambda x, y: x.floor() if x.is_floating_point() else x ^ y,
    lambda x, y: x.sum(), lambda x, y: torch.atan2(x, y), lambda x, y: torch.logical_xor(x, y)])
def test_loops_on_threads(function: Any, dtype: str) -> None:
    """NumPy's loops on parts of large arrays give the results of the whole."""
    arrays = [torch.tensor(np.abs(10 * normal(301, 233, seed=i)).astype(dtype)) for i in range(2)]
    found = function(*arrays)
    with providers.numpy_only():
        np.testing.assert_allclose(function(*arrays).double(), found.double(), rtol=2e-6)


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", [(3, 5), (60, 70), (1, 70_001), (40, 33, 17)])
def test_norms(shape: tuple[int, ...]) -> None:
    for dim in (None, 0, -1, tuple(range(len(shape)))):
        compare(lambda x, dim=dim: torch.linalg.vector_norm(x, dim=dim, keepdim=dim is not None) + 0 * x,
                normal(*shape))


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize(("images", "weight", "options"), [
    ((1, 1, 2, 2), (1, 1, 2, 2), {}),
    ((3, 1, 28, 28), (9, 1, 3, 3), {"padding": 1}),
    ((2, 5, 14, 13), (20, 5, 3, 3), {"padding": 1}),
    ((2, 3, 33, 31), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((2, 8, 9, 11), (12, 8, 3, 2), {"stride": (2, 3), "padding": (0, 1)}),
    ((2, 8, 15, 15), (12, 4, 3, 3), {"dilation": 2, "groups": 2, "padding": 1}),
    ((2, 12, 20, 20), (12, 1, 3, 3), {"groups": 12, "padding": 1}),
    ((2, 40, 2, 2), (50, 40, 3, 3), {"padding": 1}),
    ((2, 20, 6, 6), (30, 20, 1, 1), {"stride": 2}),
    ((2, 20, 5, 6), (30, 20, 1, 1), {}),
    ((3, 6, 9, 9), (4, 3, 1, 1), {"groups": 2}),
    ((1, 6, 3, 3), (4, 6, 1, 1), {}),
    ((2, 6, 10, 10), (8, 6, 2, 2), {"stride": 3}),
    ((2, 4, 50), (9, 4, 5), {"stride": 2, "padding": 2}),
    ((2, 3, 5, 6, 7), (9, 3, 2, 3, 2), {}),
    ((2, 8, 6, 5, 4), (8, 8, 3, 3, 3), {"padding": 1}),
    ((1, 3, 5, 7, 27), (3, 3, 2, 3, 3), {"padding": (0, 1, 1)}),
    ((3, 4, 9, 8, 7), (12, 2, 3, 2, 3), {"stride": (2, 3, 2), "padding": (1, 0, 2), "groups": 2}),
    ((2, 6, 7, 6, 30), (6, 1, 3, 3, 3), {"groups": 6, "dilation": (2, 1, 3), "padding": 1}),
])
def test_convolution(images: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]) -> None:
    convolve = getattr(functional, f"conv{len(images) - 2}d")
    compare(lambda x, w, b: convolve(x, w, b, **options), normal(*images), normal(*weight, seed=1),
            normal(weight[0], seed=2))


@pytest.mark.parametrize("options", [{"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"padding": 2}])
def test_transposed_convolution(options: dict[str, Any]) -> None:
    compare(lambda x, w: functional.conv_transpose2d(x, w, **options), normal(2, 6, 9, 9), normal(6, 10, 3, 3, seed=1))


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", [(1, 4, 1, 5), (3, 8, 7, 9), (2, 6, 33, 1), (5, 4, 40, 40)])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kind", ["train", "eval", "group"])
def test_norms_of_channels(kind: str, shape: tuple[int, ...], affine: bool) -> None:
    arrays = [3 * normal(*shape) + 1] + [normal(shape[1], seed=k) for k in (1, 2)] * affine
    mean, variance = torch.tensor(normal(shape[1], seed=3)), torch.tensor(normal(shape[1], seed=4) ** 2 + 0.1)

    def function(x: Any, weight: Any = None, bias: Any = None) -> Any:
        if kind == "group":
            return functional.group_norm(x, 2, weight, bias)
        moved = mean.clone(), variance.clone()
        made = functional.batch_norm(x, *moved, weight, bias, training=kind == "train")
        return torch.cat([made.flatten(), *moved])

    compare(function, *arrays, tolerance=1e-4)


MOVES: dict[str, Callable[..., Any]] = {
    "gather": lambda x, y, i: x.gather(1, i),
    "scatter_add": lambda x, y, i: x.scatter_add(1, i, y),
    "index_add": lambda x, y, i: x.index_add(0, i[0, :4] % 4, y),
    "embedding": lambda x, y, i: functional.embedding(i % 4, x),
    "embedding with padding": lambda x, y, i: functional.embedding(i % 4, x, padding_idx=2),
    "cumsum": lambda x, y, i: x.cumsum(1) * y.cumsum(-1),
}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("width", [70, 700])
def test_moves(name: str, width: int) -> None:
    index = torch.tensor(np.random.default_rng(5).integers(0, width, (4, width)))
    compare(lambda x, y: MOVES[name](x, y, index), normal(4, width), normal(4, width, seed=1))


@pytest.mark.parametrize("options", [
    {"name": "SGD", "momentum": 0.9}, {"name": "SGD", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    {"name": "SGD", "maximize": True}, {"name": "Adam"}, {"name": "Adam", "amsgrad": True, "weight_decay": 0.1},
    {"name": "AdamW", "maximize": True}, {"name": "Adagrad"}, {"name": "Adagrad", "lr_decay": 0.1, "weight_decay": 0.2},
    {"name": "Adagrad", "maximize": True, "eps": 1e-3}])
def test_fused_steps(options: dict[str, Any]) -> None:
    kind = getattr(torch.optim, options["name"])
    rest = {key: value for key, value in options.items() if key != "name"}

    def function(x: Any) -> Any:
        weight = torch.nn.Parameter(torch.tensor(normal(33, 7, seed=1)))
        optimizer = kind([weight], lr=0.1, fused=True, **rest)
        for k in range(3):
            weight.grad = (x * (k + 1)).detach()
            optimizer.step()
        return weight.detach() + 0 * x

    compare(function, normal(33, 7))


@pytest.mark.parametrize("draw", [
    lambda: torch.randn(1000), lambda: torch.randn(5), lambda: torch.randn(37), lambda: torch.rand(100),
    lambda: torch.rand(9, dtype=torch.float64), lambda: torch.randint(-3, 9, (100,)),
    lambda: torch.randint(0, 1 << 40, (100,)), lambda: torch.randperm(300), lambda: torch.randperm(1),
    lambda: torch.empty(77).bernoulli_(0.3), lambda: torch.empty(50).normal_(2.0, 0.5),
    lambda: torch.empty(0).normal_(), lambda: torch.empty(4, 5).long().random_(3, 17),
    lambda: torch.randperm(30, dtype=torch.int32), lambda: torch.rand(0, 3),
    lambda: torch.bernoulli(torch.tensor(np.linspace(0, 1, 5001, dtype=np.float32))),
    lambda: torch.multinomial(torch.tensor(np.abs(normal(9, 50))), 7, replacement=True),
    lambda: torch.multinomial(torch.tensor(np.abs(normal(50))), 300, replacement=True),
    lambda: torch.multinomial(torch.tensor([0.0, 1.0, 0.0, 3.0, 0.0]), 50, replacement=True)])
def test_draws_have_the_same_bits(draw: Callable[[], Any]) -> None:
    def run() -> tuple[bytes, ...]:
        torch.manual_seed(3)
        first = torch.randn(3)  # leaves half of a pair in the state
        return first.numpy().tobytes(), draw().numpy().tobytes(), torch.get_rng_state().numpy().tobytes()

    quick = run()
    with providers.numpy_only():
        assert run() == quick


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types_agree(dtype: Any) -> None:
    x = normal(9, 33)

    def function(x: Any) -> Any:
        y = functional.layer_norm(functional.gelu(x.to(dtype)), (33,))
        return functional.log_softmax(y @ y.T + torch.tanh(y).sum(), -1)

    quick = run(function, [x])
    with providers.numpy_only():
        slow = run(function, [x])
    for got, want in zip(quick, slow, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2)


def test_the_same_on_every_run(threads: int) -> None:
    x = torch.tensor(normal(500, 300))
    work = lambda: [(x @ x.T).numpy(), functional.softmax(x, 1).numpy(), torch.exp(x).numpy()]
    first = work()
    for _ in range(5):
        for got, want in zip(work(), first, strict=True):
            np.testing.assert_array_equal(got, want)


def test_python_threads_at_once(threads: int) -> None:
    inputs = [torch.tensor(normal(200, 220, seed=k)) for k in range(4)]
    wanted = [(x.T @ x).numpy() for x in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(30):
            if not np.array_equal((inputs[k].T @ inputs[k]).numpy(), wanted[k]):
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    program = (
        "import os, mindtorch_v2 as torch\n"
        "torch.set_num_threads(2)\n"
        "x = torch.randn(300, 300)\n"
        "y = x @ x\n"
        "for _ in range(3):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if torch.equal(x @ x, y) and torch.equal(x @ x, y) else 1)\n"
        "    assert torch.equal(x @ x, y)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_numpy_can_be_chosen() -> None:
    program = ("import mindtorch_v2 as torch\n"
               "from mindtorch_v2._backends.cpu import providers\n"
               "assert providers.native is None\n"
               "x = torch.randn(20, 20, requires_grad=True)\n"
               "torch.softmax(torch.nn.functional.gelu(x @ x), -1).sum().backward()\n")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MINDTORCH_KERNELS": "numpy"})
    wrong = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MINDTORCH_KERNELS": "fast"})
    assert "MINDTORCH_KERNELS='fast'" in wrong.stderr


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "kernels.md"
    assert page.read_text(encoding="utf-8") == providers.page(), "run `make docs`"


def test_a_recording_says_who_computed() -> None:
    x = torch.tensor(normal(20, 20))
    with torch.profiler.profile() as prof:
        torch.softmax(x @ x, -1)
    ran = prof.profiler.trace.metadata["kernel_providers"]["native"]
    assert ran["softmax"] == ran["matmul"] == 1
    assert "C kernels" in torch.__config__.show()


NATIVE_REFUSALS: list[Callable[[Any], Any]] = [
    lambda k: k.softmax(np.empty(3, np.float32), np.empty(4, np.float32), False),
    lambda k: k.softmax(np.empty(4), np.empty(4, np.float32), False),
    lambda k: k.softmax(np.empty((4, 4), np.float32).T, np.empty((4, 4), np.float32), False),
    lambda k: k.layer_norm(None, None, None, np.empty((2, 2), np.float32), None, None, 1e-5),
    lambda k: k.unary(99, np.empty(4, np.float32), np.empty(4, np.float32)),
    lambda k: k.matmul_batch(np.empty((1, 2, 2), np.float32), np.empty((1, 2, 3), np.float32),
                             np.empty((1, 2, 2), np.float32)),
    lambda k: k.multiply_into(np.empty((2, 2), np.float32), np.empty((2, 3), np.float32), np.empty((2, 2), np.float32),
                              False),
    lambda k: k.sgd(np.empty(4, np.float32), np.empty(5, np.float32), None, 0.1, 0, 1, 0, False, False, True),
    lambda k: k.convolve(*(np.empty((1, 1, 2, 2), np.float32) for _ in range(3)), None, (1,), (0, 0), (1, 1), 1),
    lambda k: k.convolve(*(np.empty((1, 1, 2), np.float32) for _ in range(3)), None, (1,), (0,), (1,), 1),
    lambda k: k.convolve(*(np.empty((1, 1), np.float32) for _ in range(3)), None, (), (), (), 1),
    lambda k: k.set_level("no such level"),
]


@pytest.mark.parametrize("call", NATIVE_REFUSALS)
def test_wrong_arguments_are_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        call(providers.native)


# -- functions of pieces, losses, and what is left of divisions --------------------------------------------------------

PIECES: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name: getattr(functional, name)(x) for name in (
        "hardsigmoid", "hardswish", "hardtanh", "relu6", "leaky_relu", "softshrink", "hardshrink", "elu", "selu",
        "celu", "softplus", "logsigmoid")},
    "softplus, sharp": lambda x: functional.softplus(x, beta=3.0, threshold=5.0),
    "elu in place": lambda x: functional.elu(x * 1, 0.7, inplace=True),
    "lgamma": lambda x: torch.lgamma(x), "digamma": lambda x: torch.digamma(x),
}
ODD_NUMBERS = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, np.inf, -np.inf, np.nan, 1e-20, 88.0, -88.0]


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("shape", [(1,), (), (3, 5, 11), (40_003,)])
def test_functions_of_pieces(name: str, shape: tuple[int, ...]) -> None:
    # Between poles slopes grow without bound, and an ulp of the argument is then much of the result.
    x = np.abs(3 * normal(*shape)) + 0.2 if "gamma" in name else 3 * normal(*shape)
    compare(PIECES[name], np.asarray(x, np.float32))


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", PIECES)
def test_functions_of_odd_numbers(name: str) -> None:
    x = np.array(ODD_NUMBERS, np.float32)
    if "gamma" in name:
        x = x[x != -88]  # at poles the two sides of the reflection round differently
    with np.errstate(all="ignore"):
        quick = PIECES[name](torch.tensor(x)).numpy()
        with providers.numpy_only():
            slow = PIECES[name](torch.tensor(x)).numpy()
    np.testing.assert_allclose(quick, slow, rtol=2e-5, atol=1e-6)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("shape", [(1,), (7, 33), (50_001,)])
def test_losses(name: str, reduction: str, shape: tuple[int, ...]) -> None:
    compare(lambda a, b: getattr(functional, name)(a, b.detach(), reduction=reduction), 2 * normal(*shape),
            normal(*shape, seed=1), tolerance=1e-4)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_rests_of_divisions_are_exact(name: str) -> None:
    a = normal(5000) * np.float32(10) ** np.random.default_rng(3).integers(-6, 9, 5000).astype(np.float32)
    b = normal(5000, seed=1)
    a[:8], b[:8] = [0, -0.0, 5, np.inf, np.nan, 6, -6, 3], [1, 1, 0, 1, 1, np.inf, np.inf, np.nan]
    a[8:12], b[8:12] = [6, -6, 6, -6], [3, 3, -3, -3]
    with np.errstate(all="ignore"):
        quick = getattr(torch, name)(torch.tensor(a), torch.tensor(b)).numpy()
        want = getattr(np, name)(a, b)
    np.testing.assert_array_equal(quick[np.isfinite(b)], want[np.isfinite(b)])
    exact = np.fmod(a.astype(np.float64), b.astype(np.float64)) if name == "fmod" else None
    if exact is not None:
        np.testing.assert_array_equal(quick, exact.astype(np.float32))


def test_sign() -> None:
    x = np.array(ODD_NUMBERS, np.float32)
    np.testing.assert_array_equal(torch.sign(torch.tensor(x)).numpy(), np.where(np.isnan(x), 0, np.sign(x)))


# -- reductions and scans ----------------------------------------------------------------------------------------------

REDUCED = [(1, 1), (7,), (5, 33), (2, 3, 100), (300, 129), (3, 1100, 5), (70_001,), (2, 2, 2, 700)]


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", REDUCED)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
def test_reductions(name: str, shape: tuple[int, ...]) -> None:
    x = normal(*shape) if name != "prod" else (1 + normal(*shape) / 100).astype(np.float32)
    for dims in (None, *range(len(shape))):
        for keep in (False, True):
            named = {} if dims is None else {"dim": dims, "keepdim": keep}
            if dims is None and name[0] == "a":
                named = {"dim": (), "keepdim": keep}
            quick = getattr(torch.tensor(x), name)(**named).numpy()
            want = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}[name](
                x.astype(np.float64), axis=dims, keepdims=keep and (dims is not None or name[0] == "a"))
            np.testing.assert_allclose(quick, want, rtol=2e-5, atol=1e-4)
            assert quick.shape == want.shape


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dims", [(0, 2, 3), (1, 3), (0, 1, 3), (3,), (0, 2)])
def test_sums_over_dimensions_that_are_not_neighbours(dims: tuple[int, ...], keep: bool) -> None:
    x = normal(5, 6, 9, 70)
    made = torch.tensor(x).sum(dims, keepdim=keep).numpy()
    np.testing.assert_allclose(made, x.astype(np.float64).sum(dims, keepdims=keep), rtol=2e-5, atol=1e-4)


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", [*REDUCED, (0, 3), ()])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_sums_of_integers(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-2**62, 2**62, shape).astype(dtype)
    for dims in (tuple(range(len(shape))), *((i,) for i in range(len(shape)))):
        made = torch.tensor(x).sum(dims).numpy()
        np.testing.assert_array_equal(made, x.astype(np.int64).sum(dims), strict=True)
        if len(dims) == 1:
            turned = torch.tensor(x).transpose(0, -1).sum(dims).numpy()
            np.testing.assert_array_equal(turned, x.astype(np.int64).swapaxes(0, -1).sum(dims))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("shape", [*REDUCED, (0, 3), (2, 0), (), (3, 8), (3, 4, 17)])
def test_positions_of_what_is_set(shape: tuple[int, ...], share: float) -> None:
    mask = np.random.default_rng(0).random(shape) < share
    made = torch.tensor(mask).nonzero()
    with providers.numpy_only():
        want = torch.tensor(mask).nonzero()
    assert made.shape == want.shape
    assert made.stride() == want.stride()
    np.testing.assert_array_equal(made.numpy(), want.numpy(), strict=True)


def test_flags_that_are_not_one() -> None:
    """Memory of another type may be viewed as bool: every value but 0 counts as 1."""
    flags = torch.tensor([2, 0, 128, 1] * 600, dtype=torch.uint8).view(torch.bool)
    assert flags.sum().item() == 1800
    assert flags.to(torch.int64).max().item() == 1
    assert len(flags.nonzero()) == 1800


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("shape", [(1,), (), (7, 9), (40_003,), (0, 4)])
@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_sums_with_products(name: str, shape: tuple[int, ...]) -> None:
    arrays = normal(*shape), normal(*shape, seed=1), normal(*shape, seed=2)
    compare(lambda a, b, c: getattr(torch, name)(a, b, c, value=0.5), *arrays)
    halves = [torch.tensor(a).to(torch.bfloat16) for a in arrays]
    made = getattr(torch, name)(*halves, value=0.5)
    with providers.numpy_only():
        want = getattr(torch, name)(*halves, value=0.5)
    np.testing.assert_allclose(made.float().numpy(), want.float().numpy(), rtol=1e-2)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("shape", REDUCED)
def test_extremes_and_where_they_are(shape: tuple[int, ...]) -> None:
    x = np.round(normal(*shape) * 3)  # with equal ones: the first counts
    spoilt = x.copy()
    spoilt.reshape(-1)[:: max(1, x.size // 5)] = np.nan
    for array in (x, spoilt):
        for dim in range(len(shape)):
            for name, want in (("max", np.argmax), ("min", np.argmin)):
                values, places = getattr(torch.tensor(array), name)(dim)
                np.testing.assert_array_equal(places.numpy(), want(array, dim))
                np.testing.assert_array_equal(values.numpy(), np.take_along_axis(
                    array, np.expand_dims(want(array, dim), dim), dim).squeeze(dim))
                np.testing.assert_array_equal(getattr(torch.tensor(array), f"arg{name}")(dim).numpy(), want(array, dim))
        np.testing.assert_array_equal(torch.tensor(array).max().numpy(), array.max())
        np.testing.assert_array_equal(torch.tensor(array).min().numpy(), array.min())


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("shape", REDUCED)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_scans(name: str, shape: tuple[int, ...]) -> None:
    for dim in range(len(shape)):
        def scanned(x: Any, dim: int = dim) -> Any:
            made = getattr(torch, name)(x, dim)
            return made if isinstance(made, torch.Tensor) else made[0]

        compare(scanned, (1 + normal(*shape) / 50).astype(np.float32), tolerance=1e-4)


def test_running_extremes_keep_what_is_no_number() -> None:
    x = np.array([[1, 3, 3, np.nan, 5, np.nan], [2, 2, -np.inf, np.inf, 0, 1]], np.float32)
    quick = torch.cummax(torch.tensor(x), 1)
    with providers.numpy_only():
        slow = torch.cummax(torch.tensor(x), 1)
    for got, want in zip(quick, slow, strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


# -- 16-bit floats -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_conversions_of_all_halves(name: str) -> None:
    dtype = getattr(torch, name)
    bits = np.arange(1 << 16, dtype=np.uint16).view(dtype.np if hasattr(dtype, "np") else np.float16)
    wide = torch.from_numpy(bits.astype(np.float32))
    np.testing.assert_array_equal(torch.from_numpy(bits).to(torch.float32).numpy(), bits.astype(np.float32))
    with np.errstate(all="ignore"):
        between = np.concatenate([wide.numpy(), wide.numpy() * np.float32(1 + 2.0 ** -9),
                                  np.array([0.1, 65519.9, 65520, 1e-8, 1e39], np.float32)])
        want = between.astype(bits.dtype).astype(np.float32)
    np.testing.assert_array_equal(torch.tensor(between).to(dtype).float().numpy(), want)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 15, 40_003])
def test_sums_of_halves_round_once(name: str, size: int) -> None:
    dtype = getattr(torch, name)
    a, b = (torch.tensor(normal(size, seed=i)).to(dtype) for i in (0, 1))
    for quick, want in ((a + b, a.float() + b.float()), (a * b, a.float() * b.float()),
                        (a - b, a.float() - b.float()), (a / b, a.float() / b.float())):
        np.testing.assert_array_equal(quick.float().numpy(), want.to(dtype).float().numpy())


# -- images ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("how", [{}, {"stride": 1}, {"padding": 1}, {"dilation": 2}, {"ceil_mode": True},
                                 {"stride": 2, "padding": 1, "dilation": 2, "ceil_mode": True}])
def test_max_pooling(how: dict[str, Any]) -> None:
    compare(lambda x: functional.max_pool2d(x, 3, **how), normal(2, 3, 13, 17))
    compare(lambda x: functional.max_pool1d(x, 3, **how), normal(3, 4, 29))
    compare(lambda x: functional.max_pool1d(x, 3, **how), normal(2, 1000))
    x = np.round(normal(2, 2, 9, 40))
    x[0, 0, 2:5, 2:5], x[1, 0, :4, :4] = np.nan, -np.inf
    quick = functional.max_pool2d(torch.tensor(x), 3, **how, return_indices=True)
    with providers.numpy_only():
        slow = functional.max_pool2d(torch.tensor(x), 3, **how, return_indices=True)
    for got, want in zip(quick, slow, strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("how", [{}, {"stride": 1}, {"padding": 1}, {"ceil_mode": True}, {"divisor_override": 5},
                                 {"padding": 1, "count_include_pad": False, "stride": 2, "ceil_mode": True}])
def test_mean_pooling(how: dict[str, Any]) -> None:
    compare(lambda x: functional.avg_pool2d(x, 3, **how), normal(2, 3, 13, 17))
    if "divisor_override" not in how:
        compare(lambda x: functional.avg_pool1d(x, 3, **how), normal(3, 4, 29))


@pytest.mark.parametrize("out", [1, 2, 3, 5, (3, 1), (13, 17), (20, 30)])
def test_adaptive_pooling(out: Any) -> None:
    if out != 1:  # that is a mean
        compare(lambda x: functional.adaptive_avg_pool2d(x, out), normal(2, 3, 13, 17))
    compare(lambda x: functional.adaptive_max_pool2d(x, out), normal(2, 3, 13, 17))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("how", [
    {"mode": "nearest"}, {"mode": "nearest-exact"}, {"mode": "bilinear"}, {"mode": "bilinear", "align_corners": True},
    {"mode": "bicubic"}])
@pytest.mark.parametrize("size", [(26, 34), (5, 40), (13, 17), (1, 1)])
def test_resizing(how: dict[str, Any], size: tuple[int, int]) -> None:
    compare(lambda x: functional.interpolate(x, size, **how), normal(2, 3, 13, 17))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("size", [1, 7, 22, 33])
@pytest.mark.parametrize("depth", [1, 3, 6])
def test_resizing_lines_and_volumes(size: int, depth: int) -> None:
    for mode in ("nearest", "nearest-exact", "linear"):
        compare(lambda x, mode=mode: functional.interpolate(x, size, mode=mode), normal(2, depth, 11))
        mode = mode.replace("lin", "trilin")
        compare(lambda x, mode=mode: functional.interpolate(x, (depth, size, 10), mode=mode), normal(2, 1, 3, 11, 5))


def test_resizing_as_the_kernel_is_asked() -> None:
    x, places = normal(2, 3, 4), np.zeros((1, 5), np.int64)
    resize = providers.native.resize
    np.testing.assert_array_equal(resize(x, -2, (places, None, 5), None), np.repeat(x[:, :1], 5, 1))
    assert resize(x.T, -2, None, None) is None
    for rows, columns in (((places + 3, None, 5), None), ((places, None, 6), None), (None, (places - 1, None, 5)),
                          ((places, np.ones((2, 5), np.float32), 5), None), (None, (places, None))):
        with pytest.raises(ValueError, match="kernels"):
            resize(x, -2, rows, columns)
    with pytest.raises(ValueError, match="columns after rows"):
        resize(x, 0, None, (np.zeros((1, 12), np.int64), None, 12))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_sampling_at_places(mode: str, padding_mode: str, align_corners: bool) -> None:
    grid = (1.3 * normal(2, 19, 17, 2, seed=1)).astype(np.float32)
    compare(lambda x, g: functional.grid_sample(x, g, mode, padding_mode, align_corners), normal(2, 3, 13, 11), grid,
            tolerance=1e-4)
    compare(lambda x, g: functional.grid_sample(x, g, mode, padding_mode, align_corners), normal(2, 1, 1, 1), grid)


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_first_of_a_row(k: int, largest: bool) -> None:
    x = np.round(normal(70, 40) * 4)
    x[3, 5:8], x[4] = np.nan, -np.inf
    quick = torch.topk(torch.tensor(x), k, largest=largest)
    with providers.numpy_only():
        slow = torch.topk(torch.tensor(x), k, largest=largest)
    for got, want in zip(quick, slow, strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("zero_infinity", [True, False])
def test_ctc(zero_infinity: bool) -> None:
    scores = normal(12, 4, 6)
    targets = np.random.default_rng(0).integers(1, 6, (4, 5))
    targets[1] = 2  # repeated, so that blanks between are needed
    for inputs, wanted in (([12, 12, 7, 3], [5, 5, 2, 0]), ([12, 4, 12, 12], [5, 5, 1, 1])):  # the second: impossible
        compare(lambda x, i=inputs, w=wanted: functional.ctc_loss(
            x.log_softmax(2), torch.tensor(targets), i, w, zero_infinity=zero_infinity, reduction="none"), scores)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("features", [1, 5, 64])
def test_distances(features: int) -> None:
    a, b = normal(30, features), normal(41, features, seed=1)
    b[3] = a[5]
    compare(lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"), a, b, tolerance=1e-4)


@pytest.mark.usefixtures("threads")
def test_slices_by_index() -> None:
    index = torch.tensor(np.random.default_rng(1).integers(0, 9, 14))
    for shape, dim in (((9,), 0), ((5, 9), 1), ((3, 9, 6), 1), ((4, 5, 9), 2)):
        compare(lambda x, dim=dim: torch.index_select(x, dim, index) * 2, normal(*shape))
        compare(lambda x, dim=dim: x.index_add(dim, index, torch.index_select(x, dim, index)) * 2, normal(*shape))


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", [(2, 1), (33, 7), (5, 130), (9, 64)])
def test_batch_norm_of_rows(shape: tuple[int, int]) -> None:
    for training in (True, False):
        compare(lambda x, w, b, training=training: functional.batch_norm(
            x, torch.zeros(shape[1]), torch.ones(shape[1]), w, b, training), normal(*shape), normal(shape[1], seed=1),
            normal(shape[1], seed=2), tolerance=1e-3)


@pytest.mark.usefixtures("level")
def test_columns_and_rows_of_operands() -> None:
    compare(lambda a, b: (a + b) * (b - a), normal(70, 33), normal(70, 1, seed=1))
    compare(lambda a, b: a[:, 0].outer(b), normal(70, 33), normal(40, seed=1))


@pytest.mark.parametrize("values", [[5, 3, 3, -2, 5], [2**40, 0, 2**40], [7], []])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_distinct_integers(values: list[int], dtype: str) -> None:
    array = np.array(values, np.int64).astype(dtype)
    distinct, inverse, counts = torch.unique(torch.tensor(array), return_inverse=True, return_counts=True)
    want = np.unique(array, return_inverse=True, return_counts=True)
    for got, wanted in zip((distinct, inverse, counts), want, strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)
    np.testing.assert_array_equal(torch.unique(torch.tensor(array)).numpy(), want[0])


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("columns", [5, 16, 32, 70])
def test_products_of_any_number_of_rows(columns: int) -> None:
    for rows in range(4, 27):
        compare(torch.mm, normal(rows, 40), normal(40, columns, seed=1))
        compare(lambda x, w, b: functional.linear(x, w, b), normal(rows, 40), normal(columns, 40, seed=1),
                normal(columns, seed=2))


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", [(2,), (4, 6), (3, 70), (2, 4, 8), (130, 300)])
def test_gated_halves(shape: tuple[int, ...]) -> None:
    for dim in range(-len(shape), len(shape)):
        if shape[dim] % 2 == 0:
            compare(lambda x, dim=dim: functional.glu(x, dim), 3 * normal(*shape))


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("shape", [(0,), (), (7,), (33, 65)])
def test_bytes_to_floats(shape: tuple[int, ...]) -> None:
    given = np.asarray(np.random.default_rng(0).integers(0, 256, shape), np.uint8)
    before = providers.native.calls().get("convert", 0)
    made = torch.tensor(given).float()
    assert providers.native.calls()["convert"] > before
    np.testing.assert_array_equal(made.numpy(), given.astype(np.float32))


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 7), (7, 3), (33, 33), (40, 70), (70, 40), (2, 3, 35, 33),
                                   (0, 3)])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_orthogonal_and_triangular(shape: tuple[int, ...], mode: str) -> None:
    given = normal(*shape)
    for layout in (given, np.ascontiguousarray(np.swapaxes(given, -1, -2)).swapaxes(-1, -2)):
        before = providers.native.calls().get("qr", 0)
        q, r = (made.numpy() for made in torch.linalg.qr(torch.from_numpy(layout), mode=mode))
        assert providers.native.calls().get("qr", 0) == before + (given.size > 0)
        with providers.numpy_only():
            want_q, want_r = (made.numpy() for made in torch.linalg.qr(torch.from_numpy(layout), mode=mode))
        np.testing.assert_allclose(q, want_q, atol=2e-5)
        np.testing.assert_allclose(r, want_r, atol=1e-4)


@pytest.mark.parametrize("given", [[[0, 0], [0, 0]], [[1, 2], [0, 0]], [[0, 1], [0, 0]], [[1e-40, 1], [1e-40, 1]]])
def test_orthogonal_and_triangular_of_what_needs_no_turning(given: list[list[float]]) -> None:
    q, r = (made.numpy() for made in torch.linalg.qr(torch.tensor(given, dtype=torch.float32)))
    np.testing.assert_allclose(q @ q.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(q @ r, np.array(given, np.float32), atol=1e-6)


@pytest.mark.usefixtures("level", "threads")
@pytest.mark.parametrize("sizes", [(1, 70, 50), (3, 1030, 67), (2, 5, 900), (50, 70, 1), (700, 33, 3), (90, 1, 70),
                                   (40, 3, 130), (1, 1, 40), (1, 40, 1), (3, 3, 3), (1, 600, 7)])
def test_products_with_a_short_side(sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    a, b, bias = normal(rows, inner), normal(inner, columns, seed=1), normal(columns, seed=2)
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 2, 1)[:, ::2]):
            want = left.astype(np.float64) @ right
            np.testing.assert_allclose(providers.native.matmul(left, right, None), want, rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(providers.native.matmul(left, right, bias), want + bias, rtol=1e-5, atol=1e-4)
            made = np.ones((rows, columns), np.float32)
            providers.native.multiply_into(made, left, right, True)
            np.testing.assert_allclose(made, want + 1, rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("level")
def test_products_with_a_short_side_do_not_depend_on_threads() -> None:
    a, b, before = normal(2, 3000), normal(3000, 700, seed=1), torch.get_num_threads()
    made = []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            pairs = (a, b), (a, np.asfortranarray(b)), (b.T, a.T)
            made.append([providers.native.matmul(*pair, None) for pair in pairs])
    finally:
        torch.set_num_threads(before)
    for others in made[1:]:
        for one, other in zip(made[0], others, strict=True):
            np.testing.assert_array_equal(one, other)
