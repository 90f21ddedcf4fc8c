"""Memory order of results: elementwise ops of permuted, sliced and mixed operands, copies, and reductions."""

from __future__ import annotations

from itertools import permutations

import pytest
from both import ours, theirs

from mindtorch_v2._backends.cpu import providers

BINARY = ("add", "mul", "eq", "lt", "pow", "atan2", "maximum")
UNARY = ("exp", "neg", "abs", "isnan", "round", "clone", "zeros_like", "empty_like", "contiguous")
REDUCTIONS = ("sum", "mean", "amax", "prod", "var", "std", "all", "any", "argmax", "count_nonzero", "norm")
pytestmark = pytest.mark.skipif(providers.native is None, reason="without the C kernels results lie as NumPy lays them")


def layouts(torch):
    """Tensors of one shape each, and others that lie differently."""
    yield torch.ones(2, 3, 4), torch.ones(4)
    yield torch.ones(2, 3, 8)[:, :, ::2], torch.ones(3, 1)
    yield torch.ones(1, 1, 4, 12)[..., ::2], torch.ones(6)
    yield torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.ones(1, 3, 1, 1)
    yield torch.ones(3, 1).expand(3, 4), torch.ones(4)
    yield torch.ones(9).as_strided((3, 3), (2, 2)), torch.ones(3)


def elementwise(torch):
    found = {}
    for place, (x, row) in enumerate(layouts(torch)):
        for order in permutations(range(x.dim())):
            a = x.permute(order)
            plain = torch.ones(a.shape)
            operands = [(a, a), (a, plain), (plain, a), (a, torch.tensor(2.0))]
            if order == tuple(range(x.dim())):
                operands += [(a, row), (row, a)]
            for name in BINARY:
                for number, (left, right) in enumerate(operands):
                    found[place, order, name, number] = getattr(torch, name)(left, right).stride()
    return found


def copies(torch):
    found = {}
    for place, (x, _) in enumerate(layouts(torch)):
        for order in permutations(range(x.dim())):
            a = x.permute(order)
            for name in UNARY:
                function = getattr(torch, name, None) or getattr(torch.Tensor, name)
                found[place, order, name] = function(a).stride()
            found[place, order, "out"] = torch.exp(a, out=torch.empty(0)).stride()
            found[place, order, "to"] = a.to(torch.float64).stride()
    return found


def reductions(torch):
    x = torch.ones(4, 3, 5)
    return {(order, name, dim): getattr(torch, name)(x.permute(order), dim=dim).stride()
            for order in permutations(range(3)) for name in REDUCTIONS for dim in (0, 1, 2)}


@pytest.mark.parametrize("family", [elementwise, copies, reductions], ids=lambda family: family.__name__)
def test_strides(family):
    mine, other = family(ours), family(theirs)
    assert {key: value for key, value in mine.items() if value != other[key]} == {}
