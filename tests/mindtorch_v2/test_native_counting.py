"""Counting, joining and finding in C, beside NumPy: sizes that threads share, odd and empty shapes, ends of ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu import providers

pytestmark = pytest.mark.skipif(providers.native is None, reason=f"no C kernels: {providers.MISSING}")
DRAWN = np.random.default_rng(3)


def both(call: Callable[..., Any], *given: Any) -> None:
    """The same values, dtypes and shapes, whoever computes."""
    quick = call(*given)
    with providers.numpy_only():
        slow = call(*given)
    if isinstance(quick, torch.Tensor):
        quick, slow = [quick], [slow]
    for mine, other in zip(quick, slow, strict=True):
        assert (mine.shape, mine.dtype, mine.stride()) == (other.shape, other.dtype, other.stride())
        np.testing.assert_array_equal(mine.numpy(), other.numpy())


@pytest.mark.parametrize("shape", [(1,), (40_003,), (0,), (7, 0), (1, 1), (301, 517), (3, 40_001), (5, 17, 9, 31)])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_nonzero(shape: tuple[int, ...], share: float) -> None:
    both(torch.nonzero, torch.tensor(DRAWN.random(shape) < share))


def test_nonzero_of_bytes_that_are_no_flags() -> None:
    both(torch.nonzero, torch.tensor(DRAWN.integers(0, 4, (60, 90)).astype(np.uint8)).view(torch.bool))


@pytest.mark.parametrize("high", [1, 2, 1000, 1 << 17, 1 << 40])
@pytest.mark.parametrize("count", [1, 7, 40_001, 131_075])
def test_bincount(high: int, count: int) -> None:
    given = torch.tensor(DRAWN.integers(0, min(high, 1 << 22), count))
    both(torch.bincount, given)
    both(lambda x: torch.bincount(x, minlength=1001), given)


def test_bincount_refuses_negative_numbers() -> None:
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([3, -1]))
    assert torch.bincount(torch.tensor([], dtype=torch.int64), minlength=2).tolist() == [0, 0]


@pytest.mark.parametrize("values", [
    [5], [3, 3, 3], [-9, 4, -9, 0], [1 << 62, -(1 << 62)], [(1 << 63) - 1, -(1 << 63)],
    list(range(2000, 0, -1)), [*range(2049)], []])
def test_unique_of_integers(values: list[int]) -> None:
    given = torch.tensor(values, dtype=torch.int64)
    for counts in (False, True):
        both(lambda x, counts=counts: torch.unique(x, return_counts=counts), given)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-1, 1), (-0.25, 0.3), (2, 2), (-50, 50), (5, 6)])
@pytest.mark.parametrize("bins", [1, 3, 50])
def test_histc(low: float, high: float, bins: int) -> None:
    drawn = DRAWN.standard_normal(997).astype(np.float32)
    both(lambda x: torch.histc(x, bins, low, high), torch.tensor(drawn))
    both(lambda x: torch.histc(x, bins, low, high), torch.tensor(np.full(5, 2, np.float32)))
    if low != high:
        both(lambda x: torch.histc(x, bins, low, high), torch.tensor([0.1, float("nan"), float("inf"), 0.2]))


def test_histc_refuses_what_is_not_finite() -> None:
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="not finite"):
            torch.histc(torch.tensor([1.0, wrong]))


@pytest.mark.parametrize("given", [
    np.arange(9) - 4, np.float32([1, np.nan, -3]), np.float32([-0.5]), np.float32([np.inf, -np.inf]),
    DRAWN.standard_normal((8, 9)).astype(np.float32), DRAWN.integers(-9, 9, 5000), np.arange(12).astype(np.int32)])
def test_aminmax(given: np.ndarray) -> None:
    both(torch.aminmax, torch.tensor(given))
    both(lambda x: torch.aminmax(x[..., ::2]), torch.tensor(given))


SHAPES = [[(3, 4), (3, 4)], [(300, 500), (300, 500)], [(2, 0), (2, 5)], [(0, 3), (0, 3)], [(5,), (0,), (7,)],
          [(2, 3, 4), (2, 3, 4), (2, 3, 4)], [(1,)], [(40, 1, 3), (40, 1, 3)], [(70_000,), (70_000,), (70_000,)]]


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "bool", "complex128"])
def test_joins(shapes: list[tuple[int, ...]], dtype: str) -> None:
    given = [torch.tensor(DRAWN.integers(0, 9, shape)).to(getattr(torch, dtype)) for shape in shapes]
    same = len(set(shapes)) == 1
    for dim in range(-len(shapes[0]) - 1, len(shapes[0]) + 1):
        if same:
            stacked, other = torch.stack(given, dim), np.stack([one.float().numpy() for one in given], dim)
            assert stacked.dtype is getattr(torch, dtype)
            assert stacked.is_contiguous()
            np.testing.assert_array_equal(stacked.float().numpy(), other)
        if -len(shapes[0]) <= dim < len(shapes[0]) and (same or dim in (-1, len(shapes[0]) - 1)):
            joined = torch.cat(given, dim)
            np.testing.assert_array_equal(
                joined.float().numpy(), np.concatenate([one.float().numpy() for one in given], dim))


def test_joins_of_many_and_of_gaps() -> None:
    x = torch.tensor(DRAWN.standard_normal((70, 5)).astype(np.float32))
    both(lambda x: torch.cat(list(x.split(1)), 1), x)
    both(lambda x: torch.stack([x[:, 0], x[:, 3]], 1), x)
    both(lambda x: torch.cat([x.t(), x.t()], 1), x)


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 4), (1, 5, 1), (12,), ()])
def test_reshape_of_views(shape: tuple[int, ...]) -> None:
    whole = torch.arange(max(1, int(np.prod(shape)))).reshape(shape) if shape else torch.tensor(3)
    views = [whole]
    if shape:
        views += [whole.transpose(0, -1), whole[::2], whole[..., ::2], whole[..., :1], whole.flip(0)]
    for view in views:
        count = view.numel()
        for wanted in [(-1,), (count,), (1, count), (count, 1), (1, 1, -1), (2, -1), (-1, 3), (count // 2, 2)]:
            if np.prod([n for n in wanted if n > 0]) and count % int(np.prod([n for n in wanted if n > 0])) == 0:
                both(lambda x, wanted=wanted: x.reshape(wanted), view)
                assert (view.reshape(wanted).data_ptr() == view.data_ptr()) == shares(view, wanted)


def shares(view: torch.Tensor, wanted: tuple[int, ...]) -> bool:
    with providers.numpy_only():
        return view.reshape(wanted).data_ptr() == view.data_ptr()


@pytest.mark.parametrize("mask", [(3, 4, 5), (3, 4, 1), (3, 1, 1), (1, 1, 1), (1, 4, 5), (3, 1, 5), (5,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_masked_fill_of_rows(mask: tuple[int, ...], dtype: torch.dtype) -> None:
    given = torch.tensor(DRAWN.integers(0, 9, (3, 4, 5))).to(dtype)
    where = torch.tensor(DRAWN.random(mask) < 0.5)
    both(lambda: given.clone().masked_fill_(where, 77))


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (300, 7), (3, 5, 200), (2, 40_000), (130, 1)])
@pytest.mark.parametrize("dim", [0, -1])
def test_logcumsumexp(shape: tuple[int, ...], dim: int) -> None:
    drawn = DRAWN.standard_normal(shape).astype(np.float32) * 30
    drawn.reshape(-1)[::11] = -np.inf
    for extra in (0.0, np.inf, np.nan):
        if extra:
            drawn.reshape(-1)[drawn.size // 2] = extra
        given = torch.tensor(drawn)
        with providers.numpy_only():
            slow = torch.logcumsumexp(given, dim)
        np.testing.assert_allclose(torch.logcumsumexp(given, dim).numpy(), slow.numpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_loss(listed: bool, zero_infinity: bool) -> None:
    heard, wanted = [9, 4, 0, 0, 2, 9], [3, 4, 0, 2, 1, 4]
    scores = torch.tensor(DRAWN.standard_normal((9, 6, 5)).astype(np.float32)).log_softmax(2)
    targets = torch.tensor(DRAWN.integers(0, 2, sum(wanted) if listed else (6, 4))) + 1

    def run() -> tuple[torch.Tensor, ...]:
        given = scores.clone().requires_grad_()
        loss = torch.nn.functional.ctc_loss(given, targets, heard, wanted, 0, "none", zero_infinity)
        loss.backward(torch.arange(1.0, 7.0))
        return loss.detach(), given.grad

    quick = run()
    with providers.numpy_only():
        slow = run()
    for mine, other in zip(quick, slow, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wrong", [([10, 1], [1, 1]), ([-1, 1], [1, 1]), ([2, 2], [4, 1]), ([2], [1, 1]),
                                   ([2, 2], [1.5, 1])])
def test_ctc_loss_leaves_mistakes(wrong: tuple[list[int], list[int]]) -> None:
    with pytest.raises((RuntimeError, TypeError)):
        torch.nn.functional.ctc_loss(torch.zeros(9, 2, 5), torch.ones(2, 3, dtype=torch.int64), *wrong)


@pytest.mark.parametrize("wide", [False, True])
def test_index_put_of_a_copy(wide: bool) -> None:
    given = torch.tensor(DRAWN.standard_normal((6, 2, 3))).to(torch.float64 if wide else torch.float32)
    index = torch.tensor([[5, -6], [2, 5]])
    for values in (given[index].clone() * 2, torch.tensor(3.0, dtype=given.dtype)):
        for add in (False, True):
            both(lambda values=values, add=add: given.index_put((index,), values, add))
    before = given.clone()
    with pytest.raises(IndexError):
        given.index_put((torch.tensor([6]),), torch.tensor(3.0, dtype=given.dtype))
    assert torch.equal(before, given)


@pytest.mark.parametrize("shape", [(2, 8, 3, 5), (8, 1, 1), (1, 4, 64, 64), (3, 2, 12, 7, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.complex64, torch.bool])
def test_pixel_shuffle(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    given = torch.tensor(DRAWN.integers(0, 99, shape)).to(dtype)
    if shape[-3] % 4 == 0:
        both(torch.nn.functional.pixel_shuffle, given, 2)
        both(lambda x: torch.nn.functional.pixel_unshuffle(torch.nn.functional.pixel_shuffle(x, 2), 2), given)
    both(torch.nn.functional.pixel_shuffle, given, 1)
    assert not np.shares_memory(torch.nn.functional.pixel_shuffle(given, 1).numpy(), given.numpy())


def test_reshape_keeps_what_may_be_written() -> None:
    column = torch.zeros(3, 4)[:, 1]
    column.reshape(3, 1)[1] = 5
    assert column.tolist() == [0, 5, 0]
    with pytest.raises(RuntimeError):
        torch.zeros(3, 4)[:, 1].reshape(2, 2)
