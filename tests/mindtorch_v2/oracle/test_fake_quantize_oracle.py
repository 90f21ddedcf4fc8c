"""Rounding to quantized values, and the statistics of batch normalisation."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours, theirs


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("scale", "zero", "low", "high"), [(0.1, 0, -8, 7), (0.02, 128, 0, 255), (1.0, 3, 0, 15)])
def test_per_tensor(dtype, scale, zero, low, high):
    check(lambda torch, x: torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high), data(5, 7, dtype=dtype))
    check(lambda torch, x: torch.fake_quantize_per_tensor_affine(
        x, torch.tensor(scale), torch.tensor(zero, dtype=torch.int32), low, high), data(5, 7, dtype=dtype), nodes=False)


@pytest.mark.parametrize("axis", [0, 1])
def test_per_channel(axis):
    scales, zeros = [0.1, 0.05, 0.5], [0, 4, -3]
    check(lambda torch, x: torch.fake_quantize_per_channel_affine(
        x, torch.tensor(scales), torch.tensor(zeros, dtype=torch.int32), axis, -8, 7), data(3, 3, 2))


def test_errors():
    check_error(lambda torch, x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 7, -8), data(3), words=False)
    check_error(lambda torch, x: torch.fake_quantize_per_tensor_affine(x, 0.1, 9, -8, 7), data(3))
    check_error(lambda torch, x: torch.fake_quantize_per_channel_affine(
        x, torch.ones(2), torch.zeros(2, dtype=torch.int32), 0, -8, 7), data(3), words=False)


def test_batch_norm_update_stats():
    def run(torch, x, mean, variance):
        found = torch.batch_norm_update_stats(x, mean, variance, 0.1)
        return (*found, mean, variance)

    check(run, data(4, 3, 2), data(3), data(3, low=0.5, seed=1), grad=False)
    check(lambda torch, x: torch.batch_norm_update_stats(x, None, None, 0.1), data(4, 3), grad=False)


def test_slice_inverse():
    for torch in (ours, theirs):
        base = torch.arange(6.0).reshape(2, 3)
        whole = torch.slice_inverse(base[:, 0:2], base, 1, 0, 2)
        assert whole.tolist() == base.tolist()
        assert whole.data_ptr() == base.data_ptr()
    with pytest.raises(RuntimeError, match="slice"):
        ours.slice_inverse(ours.ones(2), ours.ones(4), 0, 0, 3)
