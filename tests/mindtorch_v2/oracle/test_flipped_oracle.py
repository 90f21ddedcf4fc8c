"""Conjugate and negative views: they share memory, and what is written to either shows in both."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

ours = pytest.importorskip("mindtorch_v2")
theirs = pytest.importorskip("torch", reason="PyTorch is not installed")

from harness import DEVICE, check, data  # noqa: E402

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="on other devices conjugates are computed at once")


def numbers(torch: Any) -> Any:
    return torch.tensor([[1 + 2j, 3 - 4j, 5j], [-2 + 1j, 0.5 - 1j, 7]])


def shown(torch: Any, value: Any) -> Any:
    """What can be compared of a result: contents, and how they lie in memory."""
    if isinstance(value, torch.Tensor):
        contents = value.tolist()
        return contents, str(value.dtype), value.stride(), value.is_conj(), value.is_neg(), value._is_view()
    return [shown(torch, one) for one in value] if isinstance(value, (list, tuple)) else value


def compare(program: Callable[[Any], Any]) -> None:
    said = []
    for torch in (theirs, ours):
        try:
            said.append(shown(torch, program(torch)))
        except (RuntimeError, BufferError) as error:
            said.append((type(error).__name__, str(error)[:45]))
    assert said[1] == said[0]


VIEWS: list[Callable[[Any, Any], Any]] = [
    lambda torch, c: c, lambda torch, c: c.conj(), lambda torch, c: c.clone(), lambda torch, c: c[1:],
    lambda torch, c: c.t(),
    lambda torch, c: c.view(3, 2), lambda torch, c: c.reshape(6), lambda torch, c: c.t().reshape(6),
    lambda torch, c: c.mH,
    lambda torch, c: c.adjoint(), lambda torch, c: c.H, lambda torch, c: c.expand(2, 2, 3),
    lambda torch, c: c.unbind(1),
    lambda torch, c: c.split(2, 1), lambda torch, c: c.diagonal(), lambda torch, c: c.detach(),
    lambda torch, c: c.real,
    lambda torch, c: c.imag, lambda torch, c: c.imag.imag, lambda torch, c: c.contiguous(), lambda torch, c: c.data,
    lambda torch, c: c.as_strided((2, 2), (2, 1)), lambda torch, c: c.to(torch.complex128), lambda torch, c: c.cpu(),
    lambda torch, c: torch.empty_like(c).is_conj(), lambda torch, c: c.resolve_conj(),
    lambda torch, c: c.imag.resolve_neg(),
    lambda torch, c: c.conj().resolve_conj().data_ptr() == c.data_ptr(), lambda torch, c: torch.view_as_real(c),
    lambda torch, c: c.view(torch.float32), lambda torch, c: c.view(torch.complex64),
    lambda torch, c: c.imag.view(torch.int32),
    lambda torch, c: torch._neg_view(c.real), lambda torch, c: torch._neg_view(c),
    lambda torch, c: torch.view_as_real(torch._neg_view(c.conj())), lambda torch, c: c.__dlpack__(),
    lambda torch, c: c.numpy(), lambda torch, c: c.imag.numpy(),
    lambda torch, c: c.numpy(force=True).tolist(), lambda torch, c: torch.conj(c.real), lambda torch, c: c.flip(0),
    lambda torch, c: c.untyped_storage().data_ptr() == c.conj().data_ptr(), lambda torch, c: c[:, [0, 2]],
    lambda torch, c: c.T,
    lambda torch, c: [one.is_conj() for one in c], lambda torch, c: c.movedim(0, 1),
    lambda torch, c: c.unfold(1, 2, 1),
    lambda torch, c: torch.empty(0, dtype=c.dtype).set_(c), lambda torch, c: c[1:].detach_(),
    lambda torch, c: c.storage_offset(),
]


@pytest.mark.parametrize("view", range(len(VIEWS)))
def test_views_of_conjugates(view: int) -> None:
    compare(lambda torch: VIEWS[view](torch, numbers(torch).conj()))


OPERANDS: list[Callable[[Any, Any, Any], Any]] = [
    lambda torch, x, c: x * c, lambda torch, x, c: c * x, lambda torch, x, c: c + 1, lambda torch, x, c: 2 - c,
    lambda torch, x, c: x @ c.t(), lambda torch, x, c: c @ x.t(), lambda torch, x, c: torch.vdot(c[0], x[1]),
    lambda torch, x, c: torch.dot(x[0], c[1]), lambda torch, x, c: torch.cat([x, c]),
    lambda torch, x, c: torch.stack([c, x]),
    lambda torch, x, c: torch.where(x.real > 1, x, c), lambda torch, x, c: torch.where(x.real > 1, c, x),
    lambda torch, x, c: c.sum(0), lambda torch, x, c: c.cumsum(1), lambda torch, x, c: c.abs(),
    lambda torch, x, c: c.exp(),
    lambda torch, x, c: torch.einsum("ij,kj->ik", x, c), lambda torch, x, c: torch.outer(x[0], c[1]),
    lambda torch, x, c: torch.addmm(torch.ones(2, 2, dtype=c.dtype).conj(), c, x.t().conj()),
    lambda torch, x, c: torch.addcmul(x, c, c), lambda torch, x, c: torch.addcdiv(x, x, c),
    lambda torch, x, c: torch.lerp(x, c, 0.5),
    lambda torch, x, c: torch.baddbmm(x.view(1, 2, 3), c[None, :, :2], x[None, :, :].conj()),
    lambda torch, x, c: c == x.conj(),
    lambda torch, x, c: torch.kron(x, c), lambda torch, x, c: torch.equal(c, x.conj()),
    lambda torch, x, c: torch.isclose(x, c),
    lambda torch, x, c: torch._foreach_add([x, x], [c, c]),
    lambda torch, x, c: x.index_put((torch.tensor([1]),), c[:1]),
    lambda torch, x, c: x.scatter(1, torch.tensor([[0], [2]]), c),
    lambda torch, x, c: x.index_add(0, torch.tensor([1]), c[:1]),
    lambda torch, x, c: x.index_copy(0, torch.tensor([1]), c[:1]), lambda torch, x, c: torch.tensordot(x, c, 2),
    lambda torch, x, c: x.masked_scatter(x.real > 1, c), lambda torch, x, c: torch.block_diag(x, c),
    lambda torch, x, c: torch.mv(x, c[0]),
    lambda torch, x, c: torch.linalg.norm(c), lambda torch, x, c: c.gather(1, torch.tensor([[0], [1]])),
    lambda torch, x, c: -c,
    lambda torch, x, c: c.item() if c.numel() == 1 else c[0, 0].item(), lambda torch, x, c: repr(c),
    lambda torch, x, c: repr(c.imag),
    lambda torch, x, c: torch.nn.functional.linear(x, c), lambda torch, x, c: torch.diff(c),
    lambda torch, x, c: c.imag * x.real,
    lambda torch, x, c: x.real @ c.imag.t(), lambda torch, x, c: torch.maximum(x.real, c.imag),
    lambda torch, x, c: c.imag.sort(),
    lambda torch, x, c: torch.complex(x.real, c.imag), lambda torch, x, c: c.imag.sum(),
    lambda torch, x, c: torch.nn.functional.pad(c, (1, 1)),
]


@pytest.mark.parametrize("use", range(len(OPERANDS)))
def test_ops_read_what_a_view_shows(use: int) -> None:
    compare(lambda torch: OPERANDS[use](torch, numbers(torch), numbers(torch).conj()))


CHANGES: list[Callable[[Any, Any, Any], Any]] = [
    lambda torch, x, c: c.mul_(2j), lambda torch, x, c: x.mul_(2j), lambda torch, x, c: c[0].fill_(7 + 7j),
    lambda torch, x, c: c.zero_(),
    lambda torch, x, c: c.copy_(torch.full((2, 3), 1j)), lambda torch, x, c: x.copy_(c.clone()),
    lambda torch, x, c: c.imag.add_(10),
    lambda torch, x, c: c.real.mul_(3), lambda torch, x, c: torch.add(x.clone(), 1j, out=c),
    lambda torch, x, c: c.conj_physical_(),
    lambda torch, x, c: c.__setitem__((0, 1), 3j), lambda torch, x, c: c.__setitem__(x.real > 1, 1 + 1j),
    lambda torch, x, c: c.t().exp_(),
    lambda torch, x, c: c.index_fill_(1, torch.tensor([0]), 2j),
    lambda torch, x, c: c.addmm_(c.clone()[:, :2], x.clone()),
    lambda torch, x, c: c.masked_fill_(x.real > 1, 5j),
    lambda torch, x, c: c.index_copy_(0, torch.tensor([0]), x[1:].clone()),
    lambda torch, x, c: c.scatter_(1, torch.tensor([[1], [0]]), x.clone()),
    lambda torch, x, c: torch._neg_view(x.real).sub_(1),
    lambda torch, x, c: c.copy_(torch.arange(6.0).view(2, 3)),
]


@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_changes_show_on_both_sides(change: int) -> None:
    def program(torch: Any) -> Any:
        x = numbers(torch)
        c = x.conj()
        CHANGES[change](torch, x, c)
        return x, c, x._version, c._version

    compare(program)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_gradients_flow_through_flips(dtype: str) -> None:
    x, w = data(2, 3, dtype=dtype), data(2, 3, dtype=dtype, seed=3)
    check(lambda torch, x, w: x.conj() * w, x, w)
    check(lambda torch, x, w: (w @ x.mH).abs(), x, w)
    check(lambda torch, x, w: x.conj().imag * w.real, x, w)
    check(lambda torch, x, w: torch._neg_view(x) / w.conj(), x, w)


# What is done in place to a view of y, which needs a gradient.
INPLACE: list[Callable[[Any, Any, Any], Any]] = [
    lambda torch, y, w: y.conj().mul_(w), lambda torch, y, w: y.mH.mul_(w.t()), lambda torch, y, w: y.real.mul_(3),
    lambda torch, y, w: y.imag.mul_(w.real), lambda torch, y, w: torch.view_as_real(y).mul_(2),
    lambda torch, y, w: y.conj().imag.mul_(3),
    lambda torch, y, w: y[0].conj()[1:].mul_(2j), lambda torch, y, w: torch._neg_view(y).mul_(w),
    lambda torch, y, w: y.t().real[1:].zero_(),
    lambda torch, y, w: y.conj().conj().mul_(w), lambda torch, y, w: torch.view_as_real(y)[..., 1].exp_(),
]


@pytest.mark.parametrize("inplace", range(len(INPLACE)))
def test_gradients_follow_changes_of_views(inplace: int) -> None:
    def program(torch: Any, x: Any, w: Any) -> Any:
        y = x * (1 + 1j)
        INPLACE[inplace](torch, y, w)
        return y

    check(program, data(2, 3, dtype="complex64"), data(2, 3, dtype="complex64", seed=5), nodes=False)


def test_gradients_follow_changes_of_complex_views_of_pairs() -> None:
    def program(torch: Any, x: Any) -> Any:
        y = x * 2
        torch.view_as_complex(y)[1:].mul_(1j)
        return y * y

    check(program, data(3, 2), nodes=False)


def test_files_keep_flips_and_what_is_shared() -> None:
    def program(torch: Any) -> Any:
        x = numbers(torch)
        file = io.BytesIO()
        torch.save([x, x.conj(), x.conj().imag], file)
        file.seek(0)
        loaded = torch.load(file)
        loaded[0].mul_(2j)
        return [(t.tolist(), t.is_conj(), t.is_neg()) for t in loaded]

    compare(program)


def test_pickles_and_copies_have_what_is_shown() -> None:
    def program(torch: Any) -> Any:
        x = numbers(torch)
        pickled = pickle.loads(pickle.dumps([x, x.conj(), x.conj().imag[1:]]))
        made = [*pickled, copy.copy(x.conj()), copy.deepcopy(x.conj()), *copy.deepcopy([x, x.conj().real]),
                copy.deepcopy(torch.nn.Parameter(x.conj())).detach()]
        return [(t.tolist(), t.is_conj(), t.is_neg()) for t in made]

    compare(program)
