"""Kernels in C that look at their arguments themselves: what they take, they compute as the functions they stand for;
what they leave, and every mistake, is the functions'. Rows of a profile do not depend on who computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu import providers

pytestmark = pytest.mark.skipif(providers.native is None, reason=f"no C kernels: {providers.MISSING}")
functional = torch.nn.functional


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def places(high: int, *shape: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(1).integers(0, high, shape))


def results(call: Callable[..., Any], given: list[Any]) -> list[np.ndarray]:
    """What a call makes of copies, and its gradients."""
    copies = [one.clone().requires_grad_(one.is_floating_point()) if isinstance(one, torch.Tensor) else one
              for one in given]
    made = call(*copies)
    found = [made] if isinstance(made, torch.Tensor) else list(made)
    if found[0].requires_grad:
        found[0].backward(normal(*found[0].shape, seed=7))
    grads = [one.grad for one in copies if isinstance(one, torch.Tensor) and one.grad is not None]
    return [one.detach().numpy() for one in found + grads]


def twice(call: Callable[[], torch.Tensor]) -> torch.Tensor:
    """A second call, which finds what the first one has made for others."""
    call()
    return call()


X, IMAGES = normal(4, 6), normal(2, 3, 6, 8)
WEIGHT, BIAS, RUNNING = normal(6, seed=2), normal(6, seed=3), normal(3).abs()
# What is called, on what, and the kernel that has to take it.
CASES: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    "gather": (lambda x, i: x.gather(-1, i), [X, places(6, 4, 5)], "gather"),
    "gather, expanded index": (lambda x, i: x.gather(0, i.expand(3, 6)), [X, places(4, 1, 6)], "gather"),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), [X, torch.arange(6).expand(4, 6).flip(1), normal(4, 6, seed=5)],
                "scatter"),
    "scatter a number": (lambda x, i: x.scatter(0, i, 2), [X, places(4, 2, 6)], "scatter_value"),
    "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), [X, places(6, 4, 3), normal(4, 3)], "scatter_add"),
    "index_select": (lambda x, i: x.index_select(1, i), [X, places(6, 9)], "index_select"),
    "index_select of bytes": (lambda x, i: x.index_select(0, i), [places(9, 3, 2).to(torch.uint8), places(3, 4)],
                              "index_select"),
    "index": (lambda x, i: x[i - 2], [X, places(4, 3, 2)], "index"),
    "index of the last dimension": (lambda x, i: x[:, :, :, i - 8], [IMAGES, places(16, 5)], "index"),
    "embedding": (lambda x, i: functional.embedding(i, x), [X, places(4, 2, 5)], "index_select"),
    "take": (lambda x, i: x.take(i - 24), [X, places(24, 2, 3)], "take"),
    "put_": (lambda x, i, y: x.clone().put_(i, y, True), [X, places(24, 5), normal(5)], "put"),
    "index_put": (lambda x, i, y: x.clone().index_put_((i - 4,), y, True), [X, places(4, 5), normal(5, 6)],
                  "index_put"),
    "layer_norm": (lambda x, w, b: functional.layer_norm(x, (6,), w, b), [X, WEIGHT, BIAS], "layer_norm"),
    "batch_norm": (lambda x, m, v: (functional.batch_norm(x, m.detach(), v.detach(), None, None, True), m, v),
                   [IMAGES, normal(3), RUNNING], "batch_norm"),
    "group_norm": (lambda x, w, b: functional.group_norm(x, 3, w, b), [normal(2, 6, 5), WEIGHT, BIAS], "group_norm"),
    "softmax": (lambda x: x.softmax(0), [X], "softmax"),
    "log_softmax": (lambda x: x.log_softmax(1), [IMAGES], "log_softmax"),
    "nll_loss": (lambda x, t, w: functional.nll_loss(x, t, w.detach(), ignore_index=2), [X, places(6, 4), WEIGHT],
                 "nll_loss_forward"),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 3, 2, 1, 2, True, True), [IMAGES], "max_pool2d_with_indices"),
    "max_pool2d, no overlap": (lambda x: functional.max_pool2d(x, (2, 3)), [IMAGES], "max_pool2d_with_indices"),
    "avg_pool2d": (lambda x: functional.avg_pool2d(x, 3, 2, 1, True, False), [IMAGES], "avg_pool2d"),
    "avg_pool2d, divisor": (lambda x: functional.avg_pool2d(x, (2, 3), (1, 2), (1, 1), divisor_override=5), [IMAGES],
                            "avg_pool2d"),
    "adaptive_avg_pool2d": (lambda x: functional.adaptive_avg_pool2d(x, (4, 3)), [IMAGES], "_adaptive_avg_pool2d"),
    "adaptive_max_pool2d": (lambda x: functional.adaptive_max_pool2d(x, (4, 3)), [IMAGES], "adaptive_max_pool2d"),
    "unfold": (lambda x: functional.unfold(x, (2, 3), (2, 1), 1, (1, 2)), [IMAGES], "im2col"),
    "fold": (lambda x: functional.fold(x, (5, 4), (2, 2), padding=1), [normal(2, 12, 30)], "col2im"),
    "reflect": (lambda x: functional.pad(x, (2, 1, 0, 3), "reflect"), [IMAGES], "reflection_pad2d"),
    "pad": (lambda x: functional.pad(x, (2, 1, 0, 3, 1, 0), value=1.5), [IMAGES], "constant_pad_nd"),
    "conv2d": (lambda x, w, b: functional.conv2d(x, w, b, (2, 1), (1, 0), (1, 2), 3),
               [IMAGES, normal(6, 1, 3, 2), BIAS], "convolution"),
    "conv1d": (lambda x, w: functional.conv1d(x, w, padding=1), [normal(2, 3, 7), normal(4, 3, 3)], "convolution"),
    "sum": (lambda x: x.sum((2, 1), True), [IMAGES], "sum.dim_IntList"),
    "mean": (lambda x: x.mean((-1, -2)), [IMAGES], "mean.dim"),
    "var": (lambda x: x.var(1, correction=0), [IMAGES], "var"),
    "std": (lambda x: x.std((0, 1), keepdim=True), [IMAGES], "std"),
    "norm": (lambda x: x.norm(dim=1), [X], "linalg_vector_norm"),
    "masked_fill_": (lambda x: x.clone().masked_fill_(x > 0, 2.0), [X], "masked_fill_"),
    "masked_fill_ by a column": (lambda x: x.clone().masked_fill_(x.sum((2, 3), True) > 0, 2.0),
                                 [normal(2, 3, 4, 5)], "masked_fill_"),
    "ctc_loss": (lambda x, t: functional.ctc_loss(x.log_softmax(2), t, [5, 4, 0], [2, 0, 3], reduction="none"),
                 [normal(5, 3, 6), places(5, 3, 3) + 1], "ctc_loss"),
    "ctc_loss, listed": (lambda x, t: functional.ctc_loss(x.log_softmax(2), t, [5, 5, 5], [2, 1, 3], 5, "sum", True),
                         [normal(5, 3, 6), places(5, 6)], "ctc_loss_backward"),
    "index_put, new": (lambda x, i, y: x.index_put((i,), y), [X, torch.tensor([3, -3, 0]), normal(3, 6)],
                       "index_put_copy"),
    "t": (lambda x: x.t() @ x, [X], "t"),
    "view": (lambda x: x.view(3, 8) * 2, [X], "view"),
    "split": (lambda x: [part * 2 for part in x.split(4, 1)][1], [X], "split"),
    "sigmoid_backward": (lambda x: (x.sigmoid()[:, 1:4].exp() * x.sigmoid()[:, 1:4]), [X], "sigmoid_backward"),
    "slopes of gates": (lambda x: torch.cat([x.chunk(2, 1)[0].tanh(), torch.sigmoid(x.chunk(2, 1)[1])], 1), [X],
                        "tanh_backward"),
    "rfft": (lambda x: twice(lambda: torch.view_as_real(torch.fft.rfft(x, norm="ortho"))), [IMAGES], "fft_r2c"),
    "fft": (lambda x: twice(lambda: torch.view_as_real(torch.fft.fft(x, norm="forward"))), [IMAGES], "fft_r2c"),
    "ifft": (lambda x: twice(lambda: torch.view_as_real(torch.fft.ifft(torch.complex(x, x * 2)))), [X],
             "fft_c2c"),
    "irfft": (lambda x: twice(lambda: torch.fft.irfft(torch.complex(x, x * 2), 9)), [normal(3, 5)], "fft_c2r"),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(4)), [normal(3, 4, 5)], "cholesky_ex"),
    "qr": (lambda x: (lambda q, r: q @ r.relu())(*torch.linalg.qr(x)), [normal(7, 4)], "qr"),
    "qr of a wide matrix": (lambda x: (lambda q, r: (q.abs(), r.abs()))(*torch.linalg.qr(x)), [normal(4, 7)], "qr"),
    "xlogy": (lambda x, y: torch.xlogy(x, y.abs()), [X.clamp(min=0), normal(4, 6, seed=4)], "xlogy"),
    "flip": (lambda x: x.flip((0, -1)), [IMAGES], "flip"),
    "where": (lambda x: torch.where(x > 0, x, torch.tensor(3.0)), [X], "where"),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), [X], "clamp"),
    "topk": (lambda x: x.topk(3, largest=False), [IMAGES], "topk"),
    "bool to float": (lambda x: (x > 0) * x, [X], "to"),
    "expand": (lambda x: x.unsqueeze(1).expand(-1, 3, 6) * 2, [X], "expand"),
    "permute": (lambda x: x.permute(0, -1, 1, 2).contiguous(), [IMAGES], "permute"),
    "transpose": (lambda x: x.transpose(1, -1) * 2, [IMAGES], "transpose"),
    "squeeze": (lambda x: x[:, :1].squeeze(1) * 2, [X], "squeeze"),
    "unsqueeze": (lambda x: x.t().unsqueeze(-2) * 2, [X], "unsqueeze"),
    "select": (lambda x: x.select(-2, -1) * 2, [IMAGES], "select"),
    "slice": (lambda x: x[:, -5:9:2] * 2, [X], "slice"),
    "cat": (lambda x, y: torch.cat([x, y, x], -1), [X, normal(4, 3)], "cat"),
    "stack": (lambda x, y: torch.stack([x, y], 1), [X, normal(4, 6, seed=5)], "stack"),
    "stack, last": (lambda x, y: torch.stack([x, y], -1), [X, normal(4, 6, seed=5)], "stack"),
    "aminmax": (lambda i: torch.aminmax(i[:, 1]), [places(50, 9, 3)], "aminmax"),
    "histc": (lambda x: x.histc(7, -1, 1.5), [X], "histc"),
    "histc, all": (lambda x: x.histc(5), [X], "histc"),
    "unique": (lambda i: torch.unique(i - 5, return_counts=True), [places(20, 6, 7)], "unique"),
    "bincount": (lambda i: torch.bincount(i, minlength=3), [places(20, 40)], "bincount"),
    "reshape": (lambda x: x[:, 1].reshape(2, -1) * 2, [X], "reshaped"),
    "clone": (lambda x: x[:, 1:, ::2].clone() * 2, [IMAGES], "preserving_copy"),
    "clone of a permuted array": (lambda x: x.permute(0, 2, 3, 1).clone() * 2, [IMAGES], "preserving_copy"),
    "contiguous": (lambda x: x[:, 1:].contiguous() * 2, [X], "row_major_copy"),
    "copy_": (lambda x, y: y.clone().copy_(x.t()) * 2, [X, normal(6, 4)], "copy_into"),
    "gradient that the leaf takes over": (lambda x: torch.cat([x, x.detach()], 1), [X], "suits"),
    "gradient in another order": (lambda x: torch.cat([x, x.detach()], 1).t().contiguous(), [X], "copied_as"),
    "reshape as strides": (lambda x: x[:, 2].reshape(4, 1) * 2, [X], "from_strides"),
}


@pytest.mark.parametrize("name", CASES)
def test_as_the_function_computes(name: str) -> None:
    call, given, kernel = CASES[name]
    before = providers.native.calls().get(kernel, 0)
    quick = results(call, given)
    assert providers.native.calls()[kernel] > before
    with providers.numpy_only():
        slow = results(call, given)
    for mine, other in zip(quick, slow, strict=True):
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)


def rows(call: Callable[..., Any], given: list[Any]) -> list[str]:
    with torch.profiler.profile() as recording:
        results(call, given)
    return [event.name for event in recording.events()]


# NumPy takes these in other steps: memory that has to be zero first, a convolution without a library.
OTHERWISE = {"layer_norm", "conv2d", "conv1d", "max_pool2d", "max_pool2d, no overlap", "adaptive_max_pool2d"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - OTHERWISE))
def test_rows_do_not_depend_on_who_computed(name: str) -> None:
    call, given, _ = CASES[name]
    names = rows(call, given)
    with providers.numpy_only():
        assert names == rows(call, given)


@pytest.mark.parametrize("name", CASES)
def test_watching_changes_no_bit(name: str) -> None:
    call, given, _ = CASES[name]
    plain = results(call, given)
    with torch.profiler.profile():
        watched = results(call, given)
    for one, other in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: X.gather(1, torch.tensor([[6]] * 4)), "out of bounds"),
    (lambda: X.clone().scatter_(1, torch.tensor([[-1]] * 4), 1.0), "out of bounds"),
    (lambda: X.index_select(0, torch.tensor([4])), "out of range"),
    (lambda: X.take(torch.tensor([24])), "out of range"),
    (lambda: X[torch.tensor([3, -5])], "out of bounds"),
    (lambda: X[:, torch.tensor([6])], "out of bounds"),
    (lambda: X.expand(4, 7), "must match the existing size"),
    (lambda: X.permute(0, 0), "duplicate dims"),
    (lambda: X.unsqueeze(4), "out of range"),
    (lambda: X.select(0, 4), "out of range"),
    (lambda: functional.nll_loss(X, torch.tensor([0, 1, 2, 6])), "out of bounds"),
    (lambda: functional.max_pool2d(IMAGES, 2, padding=2), "at most half"),
    (lambda: functional.conv2d(IMAGES, normal(2, 4, 1, 1)), "channels"),
    (lambda: functional.layer_norm(X, (5,)), "normalized_shape"),
    (lambda: X.sum((0, 0)), "multiple times"),
    (lambda: X.topk(7), "out of range"),
    (lambda: functional.pad(IMAGES, (8, 0, 0, 0), "reflect"), "Padding size should be less"),
])
def test_mistakes_are_the_functions(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((RuntimeError, IndexError), match=words):
        call()


def test_memory_that_is_read_is_not_written_to() -> None:
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:4].scatter_add_(0, torch.tensor([0, 1, 2, 3]), x[2:])
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:4].put_(torch.tensor([0, 1, 2, 3]), x[2:], True)
    with pytest.warns(UserWarning, match="on expanded tensors"):
        x[:1].expand(4).masked_fill_(torch.tensor([True, False, True, False]), 1.0)


def test_a_single_value_is_no_source() -> None:
    with pytest.raises(RuntimeError, match="same number of dimensions as src"):
        X.clone().scatter_(1, places(6, 4, 6), torch.tensor(1.0))


def test_half_precision_gradients_keep_their_type() -> None:
    x = X.to(torch.float16).requires_grad_()
    functional.softmax(x, 1, dtype=torch.float32).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.float16


def test_flags_that_are_not_one() -> None:
    flags = torch.tensor([2, 0, 128], dtype=torch.uint8).view(torch.bool)
    assert (flags * torch.ones(3)).tolist() == [1.0, 0.0, 1.0]
    assert torch.where(flags, 1.0, 0.0).tolist() == [1.0, 0.0, 1.0]


def test_views_lead_to_their_owner() -> None:
    x = torch.zeros(2, 3)
    shown = x.unsqueeze(0).transpose(1, 2).squeeze(0)[1:]
    shown += 1
    assert x.tolist() == [[0, 1, 1], [0, 1, 1]]
    assert shown.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert shown.storage_offset() == 1


def test_a_kernel_of_no_name() -> None:
    with pytest.raises(ValueError, match="no kernel 'nothing'"):
        providers.native.Direct("nothing", len)
    with pytest.raises(ValueError, match="no step 'nothing'"):
        providers.native.set_step("nothing", len)


@pytest.mark.parametrize("call", [
    lambda many: torch.select(torch.ones(4, 4), 0, many), lambda many: torch.ones(4, 4).var(0, correction=many),
    lambda many: torch.conv2d(torch.ones(1, 2, 4, 4), torch.ones(2, 2, 3, 3), None, 1, 0, 1, many),
    lambda many: torch.ops.aten.slice(torch.ones(4, 4), 0, 0, 2, many),
    lambda many: torch.topk(torch.ones(4, 4), many)], ids=["select", "var", "groups", "slice", "topk"])
def test_many_numbers_for_one(call):
    with pytest.raises(TypeError):
        call((1,) * 60)


def test_copies_of_arrays_that_show_memory_twice() -> None:
    """Strides that reach as far as those of an array without gaps would."""
    x = torch.arange(9.0).as_strided((3, 3), (2, 2))
    for made in (x.clone(), torch.empty_like(x), x.sin(), x.double()):
        assert made.stride() == (3, 1)
    assert x.clone().add_(1).tolist() == (x + 1).tolist() == [[1, 3, 5], [3, 5, 7], [5, 7, 9]]
