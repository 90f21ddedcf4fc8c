"""Views against PyTorch: values, strides, gradients, errors."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours, theirs

CASES = {
    "view": lambda x: x.view(4, 6),
    "view with -1": lambda x: x.view(-1, 8),
    "view to 1-d": lambda x: x.view(-1),
    "view of a transpose": lambda x: x.transpose(0, 1).view(3, 2, 2, 2),
    "reshape": lambda x: x.reshape(6, 4),
    "reshape of a transpose": lambda x: x.transpose(0, 2).reshape(-1),
    "reshape varargs": lambda x: x.reshape(2, -1),
    "transpose": lambda x: x.transpose(0, -1),
    "permute": lambda x: x.permute(2, 0, 1),
    "permute negative": lambda x: x.permute(-1, 0, -2),
    "expand": lambda x: x[:, :1].expand(2, 3, 4),
    "expand new dims": lambda x: x.expand(5, 2, 3, 4),
    "expand -1": lambda x: x[:1].expand(3, -1, -1),
    "expand_as": lambda x: x[:1].expand_as(x),
    "squeeze": lambda x: x[:, :1].squeeze(),
    "squeeze dim": lambda x: x[:, :1].squeeze(1),
    "squeeze dim that stays": lambda x: x.squeeze(0),
    "squeeze dims": lambda x: x[:1, :1].squeeze((0, 1)),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unsqueeze negative": lambda x: x.unsqueeze(-1),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "select": lambda x: x.select(1, 2),
    "select negative": lambda x: x.select(-1, -1),
    "split": lambda x: x.split(2, dim=2),
    "split uneven": lambda x: x.split(3, 2),
    "split sizes": lambda x: x.split([1, 3], dim=-1),
    "chunk": lambda x: x.chunk(3, 2),
    "tensor_split": lambda x: x.tensor_split(3, 2),
    "tensor_split at": lambda x: x.tensor_split((1, 3), -1),
    "unbind": lambda x: x.unbind(1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "diagonal offset": lambda x: x.diagonal(1, 2, 1),
    "movedim": lambda x: x.movedim(0, 2),
    "movedim lists": lambda x: x.movedim((0, 1), (1, 2)),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "t": lambda x: x[0].t(),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "flatten": lambda x: x.flatten(1),
    "flatten all": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(2, (2, -1)),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unfold step": lambda x: x.unfold(2, 2, 2),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 1), 1),
    "as_strided overlapping": lambda x: x.as_strided((4, 3), (1, 1)),
    "ravel": lambda x: x.ravel(),
    "view_as": lambda x: x.view_as(x.reshape(4, 6)),
    "contiguous": lambda x: x.transpose(0, 1).contiguous(),
}


@pytest.mark.parametrize("name", CASES)
def test_views(name):
    check(lambda torch, x: CASES[name](x), data(2, 3, 4))


@pytest.mark.parametrize("name", CASES)
def test_strides_and_sharing(name):
    """Same strides, offset, and the same answer to "is it the same memory?"."""
    facts = []
    for torch in (ours, theirs):
        x = torch.arange(24.0).reshape(2, 3, 4)
        result = CASES[name](x)
        first = result[0] if isinstance(result, (tuple, list)) else result
        facts.append((tuple(first.stride()), first.is_contiguous(), first.storage_offset(),
                      first.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()))
    assert facts[0] == facts[1]


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (1, 1, 1)])
def test_edge_shapes(shape):
    for f in (lambda x: x.flatten(), lambda x: x.unsqueeze(0), lambda x: x.squeeze(), lambda x: x.reshape(-1, 1)
              if x.numel() else x, lambda x: x.contiguous()):
        check(lambda torch, x, f=f: f(x), data(*shape))


@pytest.mark.parametrize("call", [
    lambda x: x.view(5), lambda x: x.view(-1, -1), lambda x: x.transpose(0, 1).view(-1), lambda x: x.transpose(0, 3),
    lambda x: x.permute(0, 1), lambda x: x.permute(0, 0, 1), lambda x: x.expand(2, 4, 4), lambda x: x.select(0, 2),
    lambda x: x.narrow(0, 1, 2), lambda x: x.split([1, 1], 2), lambda x: x.chunk(0), lambda x: x.unsqueeze(5),
    lambda x: x.unfold(0, 3, 1), lambda x: x.reshape(7), lambda x: x.as_strided((100,), (1,)), lambda x: x.t(),
    lambda x: x.flatten(2, 1), lambda x: x.expand(3, 4),
])
def test_errors(call):
    check_error(lambda torch, x: call(x), data(2, 3, 4))


@pytest.mark.parametrize("change", [
    lambda x, w: x[0].mul_(w), lambda x, w: x.t()[1].mul_(w[:3]), lambda x, w: x.view(-1)[2:6].add_(w),
    lambda x, w: x[1:, ::2].mul_(w[:2]), lambda x, w: x.diagonal().add_(w[:3]), lambda x, w: x[:, None, 1].copy_(w[:1]),
    lambda x, w: x.select(1, 2).fill_(3.0), lambda x, w: x.narrow(0, 0, 2).zero_(),
])
def test_in_place_on_views_keeps_history(change):
    def program(torch, x, w):
        y = x * 2
        before = y.view(-1)
        change(y, w)
        return y * 3, before * 1

    check(program, data(3, 4), data(4, seed=3), nodes=False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_a_view_of_a_strided_slice_knows_its_storage(dtype):
    def facts(torch):
        whole = torch.arange(72).reshape(3, 2, 12).to(getattr(torch, dtype))
        view = whole.transpose(0, 1).select(0, 1).view(3, 3, 4)
        return (view.storage_offset(), view.stride(), view.untyped_storage().nbytes(),
                view.as_strided((3,), (1,), 0).float().tolist())

    assert facts(ours) == facts(theirs)
