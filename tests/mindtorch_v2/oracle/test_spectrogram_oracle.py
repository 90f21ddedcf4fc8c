"""Windows, and the short-time Fourier transform and its inverse."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours

WINDOWS = ["hann", "hamming", "blackman", "bartlett", "kaiser"]


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 16])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_windows(name, length, periodic, dtype):
    check(lambda torch: getattr(torch, f"{name}_window")(length, periodic, dtype=getattr(torch, dtype)),
          tolerance={"float32": 1e-6, "float64": 1e-12, "float16": 4e-3}[dtype])


def test_window_parameters_and_errors():
    check(lambda torch: torch.hamming_window(9, True, 0.6, 0.3))
    check(lambda torch: torch.hamming_window(9, True, alpha=0.6))
    check(lambda torch: torch.kaiser_window(9, True, 5.0))
    check(lambda torch: torch.kaiser_window(9, periodic=False, beta=3.0))
    assert ours.hann_window(4, requires_grad=True).requires_grad
    for name in WINDOWS:
        check_error(lambda torch, name=name: getattr(torch, f"{name}_window")(-1))
        check_error(lambda torch, name=name: getattr(torch, f"{name}_window")(4, dtype=torch.int64), words=False)
    with pytest.raises(TypeError, match="hann_window"):
        ours.hann_window(4, True, 3.0)


CASES = [{}, {"hop_length": 5}, {"win_length": 11}, {"center": False}, {"pad_mode": "constant"}, {"normalized": True},
         {"onesided": False}]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("shape", [(50,), (2, 64)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stft(case, shape, dtype):
    def run(torch, x):
        window = torch.hann_window(case.get("win_length", 16), dtype=x.dtype)
        return torch.stft(x, 16, window=window, return_complex=True, **case)

    check(run, data(*shape, dtype=dtype), nodes=False, tolerance=1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.filterwarnings("ignore:stft with return_complex=False is deprecated")
def test_stft_in_other_forms():
    check(lambda torch, x: x.stft(8, window=torch.ones(8), return_complex=False), data(20), nodes=False,
          tolerance=1e-4)
    check(lambda torch, x: torch.stft(x, 8, window=torch.ones(8)), data(20, dtype="complex64"), nodes=False,
          tolerance=1e-4)
    check(lambda torch, x: torch.stft(x, 8, win_length=6, window=torch.ones(6), center=False, align_to_window=True,
                                      return_complex=True), data(20), nodes=False, tolerance=1e-4)


def test_stft_errors():
    check_error(lambda torch, x: torch.stft(x, 16, window=torch.ones(16)), data(50))
    check_error(lambda torch, x: torch.stft(x, 16, hop_length=0, window=torch.ones(16), return_complex=True), data(50),
                words=False)
    check_error(lambda torch, x: torch.stft(x, 16, win_length=20, window=torch.ones(16), return_complex=True), data(50),
                words=False)
    check_error(lambda torch, x: torch.stft(x, 16, window=torch.ones(7), return_complex=True), data(50), words=False)
    check_error(lambda torch, x: torch.stft(x, 160, window=torch.ones(160), return_complex=True), data(50), words=False)
    check_error(lambda torch, x: torch.stft(x, 16, window=torch.ones(16), onesided=True), data(50, dtype="complex64"))


@pytest.mark.filterwarnings("ignore:The length of signal is shorter")
@pytest.mark.parametrize("case", [{}, {"normalized": True}, {"onesided": False}, {"hop_length": 3}], ids=str)
@pytest.mark.parametrize("length", [None, 40, 70])
@pytest.mark.parametrize("shape", [(50,), (2, 50)])
def test_istft(case, length, shape):
    def run(torch, x):
        window = torch.hamming_window(16, dtype=torch.float64)
        made = torch.stft(x, 16, window=window, return_complex=True, **case)
        return torch.istft(made * 1.5, 16, window=window, length=length, **case)

    check(run, data(*shape, dtype="float64"), nodes=False, tolerance=1e-9)


def test_istft_gives_the_signal_back():
    x = ours.randn(2, 64, dtype=ours.float64)
    window = ours.hann_window(16, dtype=ours.float64)
    again = ours.stft(x, 16, window=window, return_complex=True).istft(16, window=window, length=64)
    assert ours.allclose(x, again)


def test_istft_complex_and_errors():
    def both_sides(torch, x):
        window = torch.ones(8, dtype=torch.float64)
        made = torch.stft(x, 8, window=window, return_complex=True)
        return torch.istft(made, 8, window=window, return_complex=True)

    check(both_sides, data(30, dtype="complex128"), nodes=False, tolerance=1e-9)
    check_error(lambda torch, x: torch.istft(x, 16, window=torch.ones(16)), data(9, 5, 2))
    check_error(lambda torch, x: torch.istft(x, 16, window=torch.ones(16)), data(5, 9, dtype="complex64"), words=False)
    check_error(lambda torch, x: torch.istft(x, 16, window=torch.hann_window(16), center=False),
                data(9, 9, dtype="complex64"), words=False)
