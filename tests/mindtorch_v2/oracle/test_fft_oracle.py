"""Fourier transforms against PyTorch."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours, theirs

NORMS = [None, "forward", "backward", "ortho"]
TO_COMPLEX = ["fft", "ifft"]
FROM_REAL = ["rfft", "ihfft"]
TO_REAL = ["irfft", "hfft"]


def transform(name, **options):
    return lambda torch, x: getattr(torch.fft, name)(x, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", TO_COMPLEX + FROM_REAL + TO_REAL)
def test_one_dimension(name, norm, dtype):
    if name in FROM_REAL and dtype.startswith("complex"):
        check_error(transform(name, norm=norm), data(3, 5, dtype=dtype))
        return
    for size in (4, 5):
        check(transform(name, norm=norm), data(3, size, dtype=dtype), nodes=name != "ihfft")


@pytest.mark.parametrize("n", [1, 3, 5, 8])
@pytest.mark.parametrize("dim", [0, -1, 1])
@pytest.mark.parametrize("name", TO_COMPLEX + FROM_REAL + TO_REAL)
def test_size_and_dimension(name, dim, n):
    dtype = "float64" if name in FROM_REAL else "complex128"
    check(transform(name, n=n, dim=dim), data(5, 4, 2, dtype=dtype), nodes=False)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
@pytest.mark.parametrize("name", [*TO_COMPLEX, *FROM_REAL, *TO_REAL, "fftn", "rfftn"])
def test_integers_become_floats(name, dtype):
    check(transform(name), data(3, 4, dtype=dtype))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_several_dimensions(name, norm):
    dtype = "float64" if name.startswith("rfft") else "complex128"
    check(transform(name, norm=norm), data(2, 3, 4, dtype=dtype), tolerance=1e-9)


@pytest.mark.parametrize("options", [{"s": (2, 5)}, {"dim": (0, 2)}, {"s": (4, 3), "dim": (2, 0)}, {"dim": (1,)},
                                     {"s": (-1, 6), "dim": (0, 1)}])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2"])
def test_shapes_of_several_dimensions(name, options):
    dtype = "float64" if name.startswith("rfft") else "complex128"
    check(transform(name, **options), data(2, 3, 4, dtype=dtype), nodes=False, tolerance=1e-9)


def test_real_input_of_fftn():
    check(transform("fftn"), data(2, 3, dtype="float32"), nodes=False)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("options", [{}, {"dim": 0}, {"dim": (0, 1)}, {"dim": -1}])
def test_shift(name, options):
    check(transform(name, **options), data(3, 4))


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(name, n):
    check(lambda torch: getattr(torch.fft, name)(n))
    check(lambda torch: getattr(torch.fft, name)(n, 0.1, dtype=torch.float64))


def test_non_contiguous_input_and_out():
    check(lambda torch, x: torch.fft.fft(x.t()), data(3, 4, dtype="complex64"))
    for torch in (ours, theirs):
        out = torch.empty(3, dtype=torch.complex64)
        assert torch.fft.fft(torch.ones(3), out=out) is out
        assert out.tolist() == [3, 0, 0]


ERRORS = [
    lambda torch: torch.fft.fft(torch.ones(3), norm="x"),
    lambda torch: torch.fft.fft(torch.ones(3), n=0),
    lambda torch: torch.fft.fft(torch.tensor(1.0)),
    lambda torch: torch.fft.rfft(torch.ones(3, dtype=torch.complex64)),
    lambda torch: torch.fft.fft(torch.ones(4, dtype=torch.float16)),
    lambda torch: torch.fft.fft2(torch.ones(3)),
    lambda torch: torch.fft.fftn(torch.ones(3, 3), dim=(0, 0)),
    lambda torch: torch.fft.irfft(torch.ones(1)),
    lambda torch: torch.fft.fft(torch.ones(3), dim=2),
]


@pytest.mark.parametrize("position", range(len(ERRORS)))
def test_errors(position):
    with pytest.raises(Exception) as want:  # noqa: PT011
        ERRORS[position](theirs)
    with pytest.raises(type(want.value)) as got:
        ERRORS[position](ours)
    assert str(got.value) == str(want.value)
