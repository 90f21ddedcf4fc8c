"""C kernels that copy, fill, index and transform compute what NumPy's do: dtypes, layouts, empty and odd shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_native_kernels import compare, level, normal, threads

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu import providers

pytestmark = pytest.mark.skipif(providers.native is None, reason=f"no C kernels: {providers.MISSING}")
functional = torch.nn.functional
__all__ = ["level", "threads"]


def both(function: Callable[[], Any], kernel: str = "") -> None:
    """The same values and dtype by the C kernels, of which this one must have run, and by NumPy."""
    before = providers.native.calls().get(kernel, 0)
    quick = function()
    assert not kernel or providers.native.calls()[kernel] > before
    with providers.numpy_only():
        slow = function()
    assert (quick.dtype, quick.shape) == (slow.dtype, slow.shape)
    np.testing.assert_array_equal(quick.double().numpy() if quick.is_floating_point() else quick.numpy(),
                                  slow.double().numpy() if slow.is_floating_point() else slow.numpy())


# -- spectra ---------------------------------------------------------------------------------------------------------

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 30, 31, 49, 62, 64, 100, 512]


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("length", LENGTHS)
def test_transforms(length: int) -> None:
    real = torch.tensor(normal(3, length, 5))
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        given = real if name in ("rfft", "ihfft") else torch.complex(real, torch.tensor(normal(3, length, 5, seed=1)))
        function = getattr(torch.fft, name)
        for dim, rows, norm in ((1, given, "backward"), (-1, given.transpose(1, 2), "ortho"),
                                (-1, given[:2].transpose(1, 2).contiguous(), "forward")):
            before = providers.native.calls().get("fourier", 0)
            quick = function(rows, length, dim=dim, norm=norm).resolve_conj().numpy()
            assert providers.native.calls()["fourier"] > before
            with providers.numpy_only():
                slow = function(rows, length, dim=dim, norm=norm).resolve_conj().numpy()
            assert quick.dtype == slow.dtype
            np.testing.assert_allclose(quick, slow, rtol=1e-5, atol=2e-6 * max(1.0, float(np.abs(slow).max())))


@pytest.mark.parametrize("rows", [1, 7, 8, 16, 17, 31, 33, 100])
def test_transforms_of_any_number_of_rows(rows: int, level: str, threads: int) -> None:
    x = torch.tensor(normal(rows, 24))
    for function in (torch.fft.rfft, torch.fft.fft, torch.fft.fft2, torch.fft.rfft2):
        quick = function(x).numpy()
        with providers.numpy_only():
            slow = function(x).numpy()
        np.testing.assert_allclose(quick, slow, rtol=1e-5, atol=2e-6 * float(np.abs(slow).max()))
    np.testing.assert_allclose(torch.fft.irfft2(torch.fft.rfft2(x), x.shape).numpy(), x.numpy(), atol=1e-5)


def test_transforms_that_are_left_to_numpy() -> None:
    before = providers.native.calls().get("fourier", 0)
    torch.fft.fft(torch.tensor(normal(4, 37)))  # a large prime
    torch.fft.rfft(torch.tensor(normal(4, 8)).double())
    torch.fft.fft(torch.tensor(normal(1, 8192)))  # one long row
    assert providers.native.calls().get("fourier", 0) == before


# -- copies ----------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "exchanged": lambda x: x.transpose(-1, -2), "permuted": lambda x: x.permute(2, 0, 1),
    "turned": lambda x: x.permute(1, 2, 0), "gaps": lambda x: x[:, :, ::3], "fewer": lambda x: x[1:, 2:-1],
    "one": lambda x: x[:, 1:2].transpose(0, 2), "spread": lambda x: x[:, :1].expand(-1, 40, -1),
    "repeated": lambda x: x[:, :, :1].expand(-1, -1, 66), "one number": lambda x: x[:1, :1, :1].expand(9, 11, 13),
    "repeated first": lambda x: x[:1].expand(7, -1, -1), "repeated columns": lambda x: x[:1, :, ::2].expand(4, -1, -1),
}


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "complex64", "int16"])
def test_copies_in_another_order(dtype: str) -> None:
    x = torch.tensor(10 * normal(5, 37, 66)).to(getattr(torch, dtype))
    for layout in LAYOUTS.values():
        both(lambda layout=layout: layout(x).contiguous())


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "complex64", "int16"])
@pytest.mark.parametrize("shape", [(512, 3), (512, 70), (3, 256, 33), (1024, 130), (5, 2048, 9), (7, 2048)])
def test_copies_to_rows_that_are_far_apart(dtype: str, shape: tuple[int, ...]) -> None:
    """Distances of 512 bytes or a multiple, and shorter ones, with tiles that are not full."""
    x = torch.tensor(1000 * normal(*shape)).to(getattr(torch, dtype))
    both(lambda: x.transpose(-1, -2).contiguous(), "row_major_copy")
    both(lambda: x[..., 1:].transpose(-1, -2).contiguous(), "row_major_copy")
    both(lambda: x.transpose(-1, -2).flip(-1), "copy")


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "complex64", "int16"])
@pytest.mark.parametrize("columns", [1, 5, 16, 31, 64, 131])
def test_reversals_and_repetitions(dtype: str, columns: int) -> None:
    x = torch.tensor(1000 * normal(47, 3, columns)).to(getattr(torch, dtype))
    for dims in ((2,), (0, 2), (1,), (0, 1, 2)):
        both(lambda dims=dims: x.flip(dims))
        both(lambda dims=dims: x[:, :, 1:].flip(dims))
    both(lambda: x[:, :, :1].expand(-1, -1, columns + 1).contiguous())


def test_numbers_whose_bits_say_more_are_copied_bit_by_bit() -> None:
    x = np.arange(0x7fa00000, 0x7fa00000 + 4096, dtype=np.uint32).view(np.float32).reshape(64, 64)  # not a number
    for given in (x.T, x[:, ::-1], np.broadcast_to(x[:, 3:4], x.shape)):
        made = np.empty((64, 64), np.float32)
        assert providers.native.copy(made, given)
        np.testing.assert_array_equal(made.view(np.uint32), np.ascontiguousarray(given).view(np.uint32))


def test_large_copies_are_shared_by_threads(threads: int) -> None:
    x = normal(512, 1030)
    made = np.empty((1030, 512), np.float32)
    assert providers.native.copy(made, x.T)
    np.testing.assert_array_equal(made, x.T)
    assert not providers.native.copy(x[:, :512], x[:, :512].T[::1])  # the same memory
    for shape in ((3, 40_000), (40_000, 3), (2, 70, 1030), (3, 1030, 65), (33, 5000)):  # pieces of the longer side
        given = normal(*shape).swapaxes(-1, -2)
        for view in (given, given[..., ::-1]):
            made = np.empty(view.shape, np.float32)
            assert providers.native.copy(made, view)
            np.testing.assert_array_equal(made, view)
    for length in (2 * 8192, 2 * 8192 + 1, 5 * 8192, 100_003):  # one long row, in pieces
        row = normal(2 * length)[1::2]
        made = np.empty(length, np.float32)
        assert providers.native.copy(made, row)
        np.testing.assert_array_equal(made, row)
        assert providers.native.copy(made[::-1], row)
        np.testing.assert_array_equal(made, row[::-1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "float16", "complex64", "uint8"])
@pytest.mark.parametrize("value", [0, 1, -0.0, 0.0, 2.5, True, float("nan"), float("inf")])
def test_filling(dtype: str, value: Any) -> None:
    kind = getattr(torch, dtype)
    if kind in (torch.int64, torch.uint8) and not np.isfinite(value):
        return  # refused
    for shape in ((), (0, 3), (5, 7), (3000,), (200, 700)):
        def filled(shape: tuple[int, ...] = shape) -> Any:
            return torch.ones(shape, dtype=kind).fill_(value)

        def strided(shape: tuple[int, ...] = shape) -> Any:
            return torch.ones((*shape, 2), dtype=kind)[..., 1].fill_(value)

        for make in (filled, strided):
            quick = make()
            with providers.numpy_only():
                slow = make()
            assert quick.contiguous().numpy().tobytes() == slow.contiguous().numpy().tobytes() if dtype != "bfloat16" \
                else torch.equal(quick.isnan(), slow.isnan()) and torch.equal(quick.nan_to_num(), slow.nan_to_num())


@pytest.mark.parametrize("ends", [(0, 0, 1), (5, 5, 2), (0, 10, 1), (3, -9, -2), (-5, 40_000, 3),
                                  (2**62, 2**62 + 9, 4)])
def test_ranges(ends: tuple[int, int, int]) -> None:
    both(lambda: torch.arange(*ends), "fill_range")
    assert torch.arange(*ends).tolist() == list(range(*ends))
    both(lambda: torch.arange(float(ends[0] % 1000), 1000.0, 0.7))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4), (3, 5, 5), (0, 4), (2, 0), (150, 130)])
def test_triangles(dtype: str, shape: tuple[int, ...]) -> None:
    x = torch.tensor(10 * normal(*shape)).to(getattr(torch, dtype))
    for diagonal in (0, 1, -2, 50, -50):
        both(lambda diagonal=diagonal: x.tril(diagonal), "triangle")
        both(lambda diagonal=diagonal: x.triu(diagonal), "triangle")
    assert torch.equal(x.tril(2**40), x)
    both(lambda: x.transpose(-1, -2).tril(1))


@pytest.mark.parametrize(("shape", "padding"), [
    ((2, 5), (1, 2)), ((3, 2, 5), (0, 0)), ((2, 3, 6, 5), (1, 2, 3, 0)), ((3, 6, 5), (2, -1, -2, 1)),
    ((2, 4, 5, 6), (1, 1, 1, 1, 2, 0)), ((1, 2, 4, 5, 6), (2, 1, 0, 3, 1, 1)), ((8, 8, 20, 30), (3, 3, 3, 3))])
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_margins(mode: str, shape: tuple[int, ...], padding: tuple[int, ...]) -> None:
    compare(lambda x: functional.pad(x, padding, mode=mode), normal(*shape))


# -- elements and slices by index ------------------------------------------------------------------------------------

MOVES: dict[str, Callable[..., Any]] = {
    "gather": lambda x, i, d: x.gather(d, i),
    "scatter": lambda x, i, d: x.scatter(d, i, 3.0),
    "scatter from": lambda x, i, d: x.scatter(d, i.clamp(max=0), x.narrow(d, 0, i.shape[d])),
    "scatter_add": lambda x, i, d: x.scatter_add(d, i, x.narrow(d, 0, i.shape[d])),
}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (13, 40, 50)])
def test_elements_by_index(name: str, dim: int, shape: tuple[int, ...]) -> None:
    count = max(1, shape[dim] - 1)
    sizes = tuple(count if d == dim else n for d, n in enumerate(shape))
    index = np.random.default_rng(1).integers(0, shape[dim], sizes)
    compare(lambda x: MOVES[name](x, torch.tensor(index), dim), normal(*shape))


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "float16", "bool"])
def test_elements_of_other_types_by_index(dtype: str) -> None:
    x = torch.tensor(10 * normal(6, 7)).to(getattr(torch, dtype))
    index = torch.tensor(np.random.default_rng(1).integers(0, 6, (6, 7)))
    both(lambda: x.gather(0, index))
    both(lambda: x.gather(1, index.t().contiguous().view(6, 7)))
    both(lambda: x.t().gather(1, index.t()))
    both(lambda: x.scatter(0, index, 1))
    both(lambda: x.scatter_add(0, index[:3], x))
    both(lambda: functional.one_hot(index, 9), "along")


@pytest.mark.parametrize("bad", [-1, 4, 2**62])
def test_indices_out_of_range(bad: int) -> None:
    x, index = torch.tensor(normal(4, 4)), torch.zeros(4, 4, dtype=torch.int64)
    index[2, 3] = bad
    before = x.clone()
    for wrong in (lambda: x.gather(1, index), lambda: x.scatter_(1, index, 2.0),
                  lambda: x.scatter_add_(0, index, before)):
        with pytest.raises(RuntimeError, match="out of bounds"):
            wrong()
    assert torch.equal(x, before)


def test_added_columns_may_repeat() -> None:
    index = np.array([3, 0, 3, 3, 1])
    compare(lambda x: x.index_add(1, torch.tensor(index), 2 * x), normal(70, 5))
    compare(lambda x: x.index_select(1, torch.tensor(index)), normal(70, 5))
    compare(lambda x: x.index_select(1, torch.tensor(index)), normal(70, 5, 3))


# -- losses and counts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(7, 5), (2, 5, 3, 4), (1, 5), (400, 5)])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_likelihoods(shape: tuple[int, ...], weighted: bool, reduction: str, ignored: int) -> None:
    target = torch.tensor(np.random.default_rng(3).integers(0, 5, (shape[0], *shape[2:])))
    weight = torch.tensor([1.0, 0.0, 2.0, 0.5, 3.0]) if weighted else None
    compare(lambda x: functional.nll_loss(x, target, weight, reduction=reduction, ignore_index=ignored), normal(*shape))


def test_likelihoods_that_count_nothing() -> None:
    x = torch.tensor(normal(3, 4))
    assert functional.nll_loss(x, torch.full((3,), -100)).isnan()
    x[1, 2] = float("-inf")
    assert functional.nll_loss(x, torch.tensor([0, 2, 1]), ignore_index=2).isfinite()
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        functional.nll_loss(x, torch.tensor([0, 4, 1]))


def test_wrong_chances_draw_nothing() -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    for wrong in (lambda: torch.bernoulli(torch.tensor([0.5, 1.5])),
                  lambda: torch.multinomial(torch.tensor([1.0, -1.0]), 3, replacement=True),
                  lambda: torch.multinomial(torch.tensor([1.0, float("nan")]), 3, replacement=True),
                  lambda: torch.multinomial(torch.tensor([0.0, 0.0]), 3, replacement=True)):
        with pytest.raises(RuntimeError):
            wrong()
    assert torch.equal(torch.get_rng_state(), state)


FOUR = np.empty(4, np.complex64)
REFUSED: list[Callable[[Any], Any]] = [
    lambda k: k.fourier(0, FOUR, FOUR, FOUR[:3], 0, False, 1.0),
    lambda k: k.fourier(9, FOUR, FOUR, FOUR, 0, False, 1.0),
    lambda k: k.fourier(1, FOUR, np.empty(4, np.float32), FOUR, 0, False, 1.0),
    lambda k: k.along(0, np.empty((2, 3), np.float32), np.zeros((3, 3), np.int64), np.empty((3, 3), np.float32), 1),
    lambda k: k.along(1, np.empty((2, 3)), np.zeros((2, 3), np.int64), np.empty((2, 3)), 1),
    lambda k: k.along(0, np.empty((2, 3), np.int16), np.zeros((2, 3), np.int64), np.empty((2, 3), np.int16), 1),
    lambda k: k.pad(np.empty((1, 1, 1, 4), np.float32), np.empty((1, 1, 1, 2), np.float32), np.zeros(1, np.int64),
                    np.zeros(1, np.int64), np.array([0, 1, 2, 1])),
    lambda k: k.triangle(np.empty(4, np.float32), np.empty(4, np.float32), 0, False),
    lambda k: k.fill_range(np.empty(4, np.float32), 0, 1),
    lambda k: k.likelihoods(np.empty((2, 3, 1), np.float32), np.zeros((3, 1), np.int64), None, -1,
                            np.empty((3, 1), np.float32)),
    lambda k: k.adagrad(*(np.empty(n, np.float32) for n in (4, 3, 4)), 0.1, 0.1, 0.0, False),
    lambda k: k.address(3),
]


@pytest.mark.parametrize("call", REFUSED)
def test_wrong_arguments_are_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        call(providers.native)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(300, 700), (40, 30, 50), (9, 5000), (4, 3, 4), (4, 2, 2)])
def test_slices_by_indices(dtype: str, shape: tuple[int, ...]) -> None:
    x = torch.tensor(1000 * normal(*shape)).to(getattr(torch, dtype))
    for dim, extent in enumerate(shape):
        index = torch.tensor(np.random.default_rng(dim).integers(0, extent, 2 * extent))
        both(lambda dim=dim, index=index: x.index_select(dim, index), "index_select")
        both(lambda dim=dim, index=index: x.index_select(dim, index[:0]), "index_select")
        key = (slice(None),) * dim + (index.view(2, -1) - extent,)
        both(lambda key=key: x[key], "index")
