"""Fast CPU kernels give the results of the obvious code: sums, maxima, gelu, softmax, blocks."""

from __future__ import annotations

import importlib
import itertools
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu import columns, linalg
from mindtorch_v2._backends.cpu.attention import forward as attention
from mindtorch_v2._backends.cpu.blocks import BLOCK, SpreadInPlace, blocks, parts
from mindtorch_v2._backends.cpu.gelu import gelu, gelu_backward
from mindtorch_v2._backends.cpu.maxima import window_maxima
from mindtorch_v2._backends.cpu.softmax import MODERATE, log_softmax, softmax
from mindtorch_v2._backends.cpu.stretches import sum_stretches
from mindtorch_v2._backends.cpu.sums import sum_over


@pytest.fixture(autouse=True)
def numpy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(importlib.import_module("mindtorch_v2._backends.cpu.onednn.library")._state, "opened", None)


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_over_any_dimensions(keepdim: bool) -> None:
    a = random(7, 13, 50, 11)
    for count in range(a.ndim + 1):
        for axes in itertools.combinations(range(a.ndim), count):
            got, want = sum_over(a, axes, keepdim), a.astype(np.float64).sum(axes, keepdims=keepdim)
            assert got.dtype == np.float32
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4, err_msg=str(axes))


@pytest.mark.parametrize("size", [2047, 2048, 2049, 1_000_003])
def test_long_sums_keep_their_digits(size: int) -> None:
    a = np.random.default_rng(0).random(size).astype(np.float32)
    assert float(sum_over(a, None, False)) == pytest.approx(a.astype(np.float64).sum(), rel=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_sums_of_special_values(value: float) -> None:
    a = np.ones((64, 64), np.float32)
    a[3, 4] = value
    np.testing.assert_equal(sum_over(a, (1,), False)[3], np.float32(value))
    assert sum_over(a, (1,), False)[2] == 64


GEOMETRIES = [((2,), (2,), (1,)), ((3,), (2,), (1,)), ((3,), (1,), (2,)), ((2, 2), (2, 2), (1, 1)),
              ((3, 3), (2, 2), (1, 1)), ((3, 2), (2, 3), (1, 2)), ((2, 3, 2), (2, 1, 2), (1, 1, 1)),
              ((17, 17), (3, 3), (1, 1))]


@pytest.mark.parametrize(("kernel", "stride", "dilation"), GEOMETRIES)
@pytest.mark.parametrize("margin", [0, 1])
def test_window_maxima(kernel: Any, stride: Any, dilation: Any, margin: int) -> None:
    sizes = (20, 21, 22)[: len(kernel)]
    # Few different values, so that ties are common: the first in row-major order counts.
    x = np.random.default_rng(0).integers(0, 5, (2, 3, *sizes)).astype(np.float32)
    margins = (margin,) * len(kernel)
    padded = np.pad(x, ((0, 0), (0, 0), *((margin, margin),) * len(kernel)), constant_values=-np.inf)
    out = tuple((n + 2 * margin - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(sizes, kernel, stride, dilation))
    views = np.stack([padded[(..., *(slice(t * d, t * d + (o - 1) * s + 1, s)
                                     for t, d, o, s in zip(tap, dilation, out, stride)))]
                      for tap in itertools.product(*map(range, kernel))])
    best, chosen = window_maxima(x, kernel, stride, dilation, out, margins, margins, -np.inf)
    np.testing.assert_array_equal(best, views.max(0))
    np.testing.assert_array_equal(chosen, views.argmax(0))


def exact_gelu(x: float) -> float:
    return 0.5 * x * math.erfc(-x / math.sqrt(2))


def exact_slope(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2)) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def test_gelu_is_exact_to_float32() -> None:
    x = np.linspace(-15, 15, BLOCK + 4321, dtype=np.float32)
    error = np.abs(gelu(x) - np.vectorize(exact_gelu)(x.astype(np.float64)))
    assert (error <= 1.3e-7 * (0.1 + np.abs(x))).all()
    slopes = gelu_backward(np.ones_like(x), x)
    assert np.abs(slopes - np.vectorize(exact_slope)(x.astype(np.float64))).max() < 3e-7


def test_gelu_at_the_ends() -> None:
    x = np.array([0.0, -0.0, 1e19, -1e19, 1e38, -1e38, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(gelu(x), np.array([0, -0.0, 1e19, -0.0, 1e38, -0.0, np.inf, np.nan], np.float32))
    assert np.signbit(gelu(x)[1])


@pytest.mark.parametrize("size", [MODERATE - 1, MODERATE + 1, 1e4])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_any_size(size: float, dim: int) -> None:
    x = np.random.default_rng(0).uniform(-size, size, (30, 300)).astype(np.float32)
    wide = x.astype(np.float64)
    logs = wide - wide.max(dim, keepdims=True)
    logs -= np.log(np.exp(logs).sum(dim, keepdims=True))
    np.testing.assert_allclose(softmax(x, dim, False), np.exp(logs), rtol=2e-5, atol=1e-30)
    np.testing.assert_allclose(log_softmax(x, dim, False), logs, rtol=1e-6, atol=3e-6)


def test_softmax_sees_nan_and_infinity() -> None:
    x = random(3, 40)
    x[0, 0], x[1, 0] = np.nan, -np.inf
    made = softmax(x, 1, False)
    assert np.isnan(made[0]).all()
    assert made[1, 0] == 0
    assert made[1:].sum(1) == pytest.approx(1)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_small_and_large_scores(scale: float, causal: bool) -> None:
    q, k, v = (random(2, 3, 10, 8, seed=s) for s in range(3))
    made, logs = attention(q, k, v, 0.0, causal, None, scale)
    scores = np.einsum("bhre,bhke->bhrk", q.astype(np.float64), k.astype(np.float64)) * scale
    if causal:
        scores[..., np.arange(10) > np.arange(10)[:, None]] = -np.inf
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    np.testing.assert_allclose(logs, top[..., 0] + np.log(weights.sum(-1)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(made, weights / weights.sum(-1, keepdims=True) @ v, rtol=2e-3, atol=1e-4)


def test_blocks_cover_everything_once() -> None:
    a = np.zeros((5, BLOCK // 2 + 3), np.float32)
    for (one,) in blocks(a):
        one += 1
    assert (a == 1).all()
    strided = np.zeros((BLOCK, 4), np.float32)[:, ::2]
    for (one,) in blocks(strided):
        one += 1
    assert (strided == 1).all()
    for count, width in ((0, 5), (7, 0), (1, 10 * BLOCK), (1000, 1000)):
        assert [i for part in parts(count, width) for i in range(part.start, part.stop)] == list(range(count))


def test_buffer_size_is_put_back() -> None:
    before = np.getbufsize()
    with SpreadInPlace(1000):
        assert np.getbufsize() < before
    assert np.getbufsize() == before
    with pytest.raises(ValueError, match="broadcast"), SpreadInPlace(1000):
        np.add(np.ones(3), np.ones(4))
    assert np.getbufsize() == before


@pytest.mark.parametrize("layout", ["plain", "turned"])
def test_batch_norm_of_any_layout(layout: str) -> None:
    x = random(4, 6, 30, 20) + 3
    tensor = torch.tensor(x.transpose(0, 1, 3, 2).copy()).transpose(2, 3) if layout == "turned" else torch.tensor(x)
    made = torch.nn.functional.batch_norm(tensor, None, None, training=True).numpy()
    want = (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5)


def keeps_memory(**variables: str) -> bool:
    program = ("from mindtorch_v2._backends.cpu.heap import keep_freed_memory as keep; print(keep())")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "MINDTORCH_KEEP"))}
    made = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                          env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), **variables})
    return made.stdout.strip() == "True"


def test_the_allocator_is_left_alone_if_asked() -> None:
    assert not keeps_memory(MINDTORCH_KEEP_MEMORY="0")
    assert not keeps_memory(MALLOC_TRIM_THRESHOLD_="100000")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_freed_memory_is_kept() -> None:
    if os.confstr("CS_GNU_LIBC_VERSION"):
        assert keeps_memory()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_the_first_arrays_find_memory_that_was_touched() -> None:
    program = """if True:
        import resource, numpy as np
        from mindtorch_v2._backends.cpu.heap import touch_reserve
        reserved = touch_reserve()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        np.ones(1 << 19)  # 4 MiB, half of the reserve
        print(reserved, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "MINDTORCH_KEEP"))}
    made = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                          env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)})
    reserved, pages = made.stdout.split()
    if reserved == "False":
        pytest.skip("this system does not provide pages ahead")
    assert int(pages) < 100  # of 1024


@pytest.mark.parametrize(("count", "groups", "width"), [(3000, 200, 16), (3000, 2, 16), (20, 10, 4), (3000, 200, 3)])
@pytest.mark.parametrize("uneven", [False, True])
def test_sums_of_stretches(count: int, groups: int, width: int, uneven: bool) -> None:
    random = np.random.default_rng(0)
    owner = np.sort(random.integers(0, groups, count))
    if uneven:
        owner[: count * 3 // 4] = owner[0]
    rows = random.standard_normal((count, width))
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    np.testing.assert_allclose(sum_stretches(rows, starts), np.add.reduceat(rows, starts, 0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("with_loops", [True, False])
def test_single_precision_in_linear_algebra(dtype: Any, with_loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_loops:
        monkeypatch.setattr(columns, "_loops", None)  # a NumPy that has put them elsewhere
    half = random(2, 6, 6, dtype=dtype)
    if half.dtype.kind == "c":
        half += 1j * random(2, 6, 6, seed=1)
    given = half @ linalg.adjoint(half) + 6 * np.eye(6, dtype=dtype)
    factor, infos = linalg.cholesky_ex(given, False, True)
    assert factor.dtype == dtype
    assert not infos.any()
    np.testing.assert_allclose(factor @ linalg.adjoint(factor), given, rtol=1e-4, atol=1e-3)
    for side in "LU":
        values, vectors = linalg.eigh(given, side, True)
        assert (values.dtype, vectors.dtype) == (np.float32, dtype)
        back = (vectors * values[..., None, :]) @ linalg.adjoint(vectors)
        np.testing.assert_allclose(back, given, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(linalg.eigh(given, side, False)[0], values, rtol=1e-4)
    wide = half[..., :4, :]
    for full in (True, False):
        u, s, vh = linalg.svd(wide, full, True, None)
        assert (u.dtype, s.dtype, vh.shape) == (dtype, np.float32, (2, 6 if full else 4, 6))
        np.testing.assert_allclose((u * s[..., None, :]) @ vh[..., :4, :], wide, atol=1e-4)
    np.testing.assert_allclose(linalg.svd(wide, True, False, None)[1], s, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_values_of_what_is_not_finite(dtype: Any) -> None:
    given = np.eye(3, dtype=dtype)
    given[1, 1] = np.nan
    for with_vectors in (True, False):
        with pytest.raises(RuntimeError, match="contained non-finite values"):
            linalg.svd(given, True, with_vectors, None)


def test_a_matrix_without_cholesky_factor_in_single_precision() -> None:
    given = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    factor, infos = linalg.cholesky_ex(given, False, False)
    assert infos.tolist() == [0, 1]
    np.testing.assert_array_equal(factor[0], np.eye(3))
