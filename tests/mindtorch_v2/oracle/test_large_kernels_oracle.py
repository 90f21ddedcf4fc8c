"""Kernels that compute many elements differently than few, against PyTorch, on enough elements."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check, data, values

NAN, INF = float("nan"), float("inf")
ROWS = (40, 300)


def positions(*shape: int, below: int):
    return values(np.random.default_rng(below).integers(0, below, shape), "int64")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "float16", "bool"])
def test_choosing_by_a_mask(dtype):
    x, y = data(*ROWS, dtype=dtype), data(*ROWS, dtype=dtype, seed=1)
    mask = data(*ROWS, dtype="bool", seed=2)
    check(lambda torch, x, y, m: torch.where(m, x, y), x, y, mask, second=False)
    check(lambda torch, x, y, m: torch.where(m, x, y[0, 0]), x, y, mask, second=False)
    check(lambda torch, x, y, m: torch.where(m.t(), x.t(), y.t()), x, y, mask, second=False)
    check(lambda torch, x, m: x.masked_fill(m, 1), x, mask, second=False)
    check(lambda torch, x, m: x.masked_fill(m[:1], 1), x, mask, second=False)
    check(lambda torch, x, m: (x * 1).masked_fill_(m, 1), x, mask, second=False)
    check(lambda torch, x, m: x[m], x, mask, second=False)
    check(lambda torch, x, m: x.t()[m.t()], x, mask, second=False)
    check(lambda torch, x, m: torch.masked_select(x, m), x, mask, second=False)


def test_choosing_special_values():
    special = values(np.resize([NAN, INF, -INF, 0.0, -0.0, 1.0], (80, 75)))
    plain = data(80, 75)
    check(lambda torch, x, y: torch.where(y > 0, x, y), special, plain, second=False)
    for name in ("leaky_relu", "elu", "selu", "hardshrink", "hardsigmoid", "hardswish", "logsigmoid"):
        # Gradients at NaN depend on how many elements PyTorch's vectors left over.
        for given in (values(np.nan_to_num(special[0], nan=2.0, posinf=INF, neginf=-INF)), plain):
            check(lambda torch, x, name=name: getattr(torch.nn.functional, name)(x), given, second=False)
    check(lambda torch, x: torch.nn.functional.leaky_relu(x, 2.0), plain, second=False)
    check(lambda torch, x: torch.nn.functional.elu(x, 0.5), plain, second=False)
    check(lambda torch, x: torch.sign(x), special, grad=False)
    check(lambda torch, x: torch.nan_to_num(x), special, second=False)
    check(lambda torch, x: torch.nan_to_num(x), plain, second=False)


@pytest.mark.parametrize("shape", [(40, 300), (600, 70), (7, 5, 90), (5, 90, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16"])
def test_adding_slices(shape, dtype):
    tolerance = 0.1 if dtype == "bfloat16" else 1e-4
    for dim, extent in enumerate(shape):
        more = tuple(2 * extent if d == dim else n for d, n in enumerate(shape))
        check(lambda torch, x, y, i, dim=dim: x.index_add(dim, i, y), data(*shape, dtype=dtype),
              data(*more, dtype=dtype, seed=1), positions(2 * extent, below=extent), second=False, tolerance=tolerance)
        check(lambda torch, x, y, i, dim=dim: x.scatter_add(dim, i, y), data(*shape, dtype=dtype),
              data(*shape, dtype=dtype, seed=1), positions(*shape, below=extent), second=False, tolerance=tolerance)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_many_rows(name, scale):
    for shape, dim in (((300, 250), 1), ((300, 250), 0), ((3, 100, 250), 2), ((100, 30, 5), 1)):
        # Gradients of large logarithms are large; those of their elements that are small have the same errors.
        check(lambda torch, x, dim=dim: getattr(torch, name)(x * scale, dim).square() / scale, data(*shape),
              second=False, tolerance=2e-4)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("channels", [1, 3, 6, 9])
def test_sampling_few_and_many_channels(channels, mode, padding):
    grid = np.random.default_rng(channels).uniform(-1.3, 1.3, (2, 5, 7, 2))
    grid[0, 0, 0] = NAN
    check(lambda torch, x, g: torch.nn.functional.grid_sample(x, g, mode, padding, False), data(2, channels, 6, 4),
          values(grid[:, 1:]), second=False)


@pytest.mark.parametrize("size", [(3, 3), (4, 2), (8, 8), (5, 16)])
def test_adaptive_maxima_of_even_and_uneven_windows(size):
    image = data(2, 3, 16, 16)
    image[0][0, 0, 3, 4:8] = NAN
    image[0][1, 2] = 1.0  # the first of equals
    check(lambda torch, x: torch.nn.functional.adaptive_max_pool2d(x, size, return_indices=True), image, second=False)


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_group_norm_of_large_images(groups):
    check(lambda torch, x, w, b: torch.nn.functional.group_norm(x, groups, w, b).square(), data(4, 6, 70, 60), data(6),
          data(6, seed=1), second=False, tolerance=2e-3)


def test_functions_block_by_block():
    many = data(3, 7000, low=0.1, high=4)
    for name in ("erf", "erfc", "lgamma"):
        check(lambda torch, x, name=name: getattr(torch, name)(x), many, second=False, tolerance=2e-3)
    check(lambda torch, x: torch.cumsum(x, 1), many, second=False, tolerance=1e-4)
    check(lambda torch, x: torch.cumsum(x.t(), 0), many, second=False, tolerance=1e-4)
    check(lambda torch, x: torch.cumprod(x / 4, 0), many, second=False)


@pytest.mark.parametrize("shape", [(70, 20), (3, 20, 4)])
def test_bilinear(shape):
    lead = shape[:-1]
    check(lambda torch, x, y, w, b: torch.nn.functional.bilinear(x, y, w, b), data(*lead, 8), data(*lead, 6, seed=1),
          data(5, 8, 6), data(5), tolerance=1e-3)


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_signs_of_zeros(count, dtype):
    def signs(torch, x):
        return torch.where(x.isnan(), 0.0, torch.copysign(torch.ones_like(x), x))

    zeros = values(np.resize([-0.0, 0.0, 1.0], count), dtype)
    for name in ("relu", "relu6", "elu", "selu", "celu", "hardtanh", "leaky_relu", "silu", "gelu", "tanh"):
        check(lambda torch, x, name=name: signs(torch, getattr(torch.nn.functional, name)(x)), zeros, grad=False)
    for name in ("relu_", "tanh_", "abs_", "neg_", "sqrt_"):
        check(lambda torch, x, name=name: signs(torch, getattr(x.clone(), name)()), zeros, grad=False)
    for name in ("mul", "div", "add", "sub"):
        for number in (0.0, -0.0):
            check(lambda torch, x, name=name, number=number: signs(torch, getattr(torch, name)(
                x, torch.tensor(number, dtype=x.dtype))), zeros, grad=False)
            check(lambda torch, x, name=name, number=number: signs(torch, getattr(torch, name)(
                x[:, None] + torch.ones(2, dtype=x.dtype), torch.full((count, 1), number, dtype=x.dtype))), zeros,
                grad=False)
