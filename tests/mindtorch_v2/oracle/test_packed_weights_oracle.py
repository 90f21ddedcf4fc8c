"""Products with weights of 4 and 8 bits: values and refusals as PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from harness import data, make, ours, theirs, to_numpy


def parts(torch, dtype="float32"):
    a, scales = make(torch, data(3, 64, dtype=dtype), False), make(torch, data(48, dtype=dtype, low=0.01), False)
    weight = torch.tensor(np.arange(48 * 64).reshape(48, 64) % 16, dtype=torch.int32)
    return a, scales, weight


def by_bytes(torch, dtype="float32"):
    a, scales, weight = parts(torch, dtype)
    return torch._weight_int8pack_mm(a, (weight * 7 - 50).to(torch.int8), scales)


def by_halves(torch, dtype="float32", group=32):
    a, _, weight = parts(torch, dtype)
    packed = torch._convert_weight_to_int4pack_for_cpu(weight, 2)
    both = make(torch, data(64 // group, 48, 2, dtype=dtype), False)
    return torch._weight_int4pack_mm_for_cpu(a, packed, group, both)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("product", [by_bytes, by_halves, lambda *given: by_halves(*given, 64)])
def test_products(product, dtype):
    got, want = (product(torch, dtype) for torch in (ours, theirs))
    assert str(got.dtype) == str(want.dtype)
    largest = float(want.abs().max())
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), atol=largest * (1e-5 if dtype == "float32" else 2e-2))


REFUSED = [
    lambda torch, a, scales, weight: torch._convert_weight_to_int4pack_for_cpu(weight.long(), 2),
    lambda torch, a, scales, weight: torch._convert_weight_to_int4pack_for_cpu(weight[0], 2),
    lambda torch, a, scales, weight: torch._convert_weight_to_int4pack_for_cpu(weight[:15], 2),
    lambda torch, a, scales, weight: torch._convert_weight_to_int4pack_for_cpu(weight[:, :31], 2),
    lambda torch, a, scales, weight: torch._weight_int8pack_mm(a.double(), weight.to(torch.int8), scales.double()),
    lambda torch, a, scales, weight: torch._weight_int8pack_mm(a, weight, scales),
    lambda torch, a, scales, weight: torch._weight_int8pack_mm(a, weight.to(torch.int8), scales[:3]),
    lambda torch, a, scales, weight: torch._weight_int4pack_mm_for_cpu(a.double(), weight, 32, scales.double()),
    lambda torch, a, scales, weight: torch._weight_int4pack_mm_for_cpu(
        a, torch._convert_weight_to_int4pack_for_cpu(weight, 2), 31, torch.ones(2, 48, 2)),
]


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call):
    errors = []
    for torch in (ours, theirs):
        with pytest.raises(RuntimeError) as caught:
            call(torch, *parts(torch))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
