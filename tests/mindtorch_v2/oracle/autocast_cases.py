"""One call of every listed op that a program can call: `overload: (function on a module and tensors, shapes)`.

A shape is that of a floating point tensor, whose dtype the test chooses; everything else is made in the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = tuple[Callable[..., Any], list[tuple[int, ...]]]

SQUARE = (3, 3)
IMAGE = (2, 3, 6, 6)
VOLUME = (1, 2, 4, 4, 4)


def positive(torch: Any, x: Any) -> Any:
    """A symmetric positive definite matrix, made without listed ops so that autocast leaves the dtype alone."""
    return x.detach() * 0 + torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], dtype=x.dtype)


def unit(x: Any) -> Any:
    """Numbers inside (0, 1)."""
    return x.sigmoid()


def signs(torch: Any) -> Any:
    return torch.tensor([1.0, -1.0, 1.0])


def functional(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A call of `torch.nn.functional.name` on the given tensors and then `args`."""
    return lambda torch, *tensors: getattr(torch.nn.functional, name)(*tensors, *args, **kwargs)


def function(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The same for `torch.name`, which may be in a submodule."""

    def call(torch: Any, *tensors: Any) -> Any:
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        return found(*tensors, *args, **kwargs)

    return call


def on_positive(name: str) -> Callable[..., Any]:
    """`torch.name` of a positive definite matrix."""
    return lambda torch, x: function(name)(torch, positive(torch, x))


def lstm(torch: Any, x: Any, *parameters: Any) -> Any:
    zeros = torch.zeros(1, 2, 3, dtype=x.dtype)
    return torch.lstm(x, (zeros, zeros), list(parameters), True, 1, 0.0, False, False, False)


LOWER: dict[str, Case] = {
    "mm": (function("mm"), [(3, 4), (4, 2)]),
    "bmm": (function("bmm"), [(2, 3, 4), (2, 4, 2)]),
    "addmm": (function("addmm", beta=0.5), [(3, 2), (3, 4), (4, 2)]),
    "addbmm": (function("addbmm"), [(3, 2), (2, 3, 4), (2, 4, 2)]),
    "baddbmm": (function("baddbmm", alpha=2), [(2, 3, 2), (2, 3, 4), (2, 4, 2)]),
    "matmul": (function("matmul"), [(2, 3, 4), (4, 2)]),
    "linear": (functional("linear"), [(2, 4), (3, 4), (3,)]),
    "prelu": (functional("prelu"), [(2, 3), (3,)]),
    "conv1d": (functional("conv1d"), [(2, 3, 8), (4, 3, 3), (4,)]),
    "conv2d": (functional("conv2d"), [IMAGE, (4, 3, 3, 3), (4,)]),
    "conv3d": (functional("conv3d"), [VOLUME, (3, 2, 2, 2, 2), (3,)]),
    "conv1d.padding": (functional("conv1d", padding="same"), [(2, 3, 8), (4, 3, 3), (4,)]),
    "conv2d.padding": (functional("conv2d", padding="same"), [IMAGE, (4, 3, 3, 3), (4,)]),
    "conv3d.padding": (functional("conv3d", padding="valid"), [VOLUME, (3, 2, 2, 2, 2), (3,)]),
    "conv_transpose1d": (functional("conv_transpose1d"), [(2, 3, 8), (3, 4, 3), (4,)]),
    "conv_transpose2d.input": (functional("conv_transpose2d"), [IMAGE, (3, 4, 3, 3), (4,)]),
    "conv_transpose3d.input": (functional("conv_transpose3d"), [VOLUME, (2, 3, 2, 2, 2), (3,)]),
    "scaled_dot_product_attention": (functional("scaled_dot_product_attention"), [(1, 2, 4, 8)] * 3),
    "linalg_vecdot": (function("linalg.vecdot"), [(3, 4), (3, 4)]),
    "conv_tbc": (function("conv_tbc"), [(5, 2, 3), (2, 3, 4), (4,)]),
    "mkldnn_rnn_layer": (lstm, [(4, 2, 3), (12, 3), (12, 3), (12,), (12,)]),
}

LOSSES: dict[str, Case] = {
    "mse_loss": (functional("mse_loss"), [(3, 2), (3, 2)]),
    "l1_loss": (functional("l1_loss"), [(3, 2), (3, 2)]),
    "smooth_l1_loss": (functional("smooth_l1_loss"), [(3, 2), (3, 2)]),
    "huber_loss": (functional("huber_loss"), [(3, 2), (3, 2)]),
    "kl_div": (functional("kl_div", reduction="batchmean"), [(3, 2), (3, 2)]),
    "soft_margin_loss": (lambda torch, x: torch.nn.functional.soft_margin_loss(x, signs(torch)), [(3,)]),
    "poisson_nll_loss": (functional("poisson_nll_loss"), [(3, 2), (3, 2)]),
    "margin_ranking_loss": (
        lambda torch, x, y: torch.nn.functional.margin_ranking_loss(x, y, signs(torch)), [(3,), (3,)]),
    "hinge_embedding_loss": (lambda torch, x: torch.nn.functional.hinge_embedding_loss(x, signs(torch)), [(3,)]),
    "cosine_embedding_loss": (
        lambda torch, x, y: torch.nn.functional.cosine_embedding_loss(x, y, signs(torch)), [(3, 4), (3, 4)]),
    "triplet_margin_loss": (functional("triplet_margin_loss"), [(3, 4)] * 3),
    "binary_cross_entropy": (
        lambda torch, x, y: torch.nn.functional.binary_cross_entropy(unit(x), unit(y.detach())), [(3, 2), (3, 2)]),
    "binary_cross_entropy_with_logits": (
        lambda torch, x, y: torch.nn.functional.binary_cross_entropy_with_logits(x, unit(y.detach())),
        [(3, 2), (3, 2)]),
    "cross_entropy_loss": (
        lambda torch, x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 1])), [(3, 2)]),
    "multi_margin_loss": (
        lambda torch, x: torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 1, 1])), [(3, 2)]),
    "multilabel_margin_loss": (
        lambda torch, x: torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[1, 0], [0, -1], [1, -1]])),
        [(3, 2)]),
    "ctc_loss.IntList": (
        lambda torch, x: torch.nn.functional.ctc_loss(
            x.log_softmax(2), torch.tensor([[1, 2], [2, 1]]), (4, 4), (2, 1)), [(4, 2, 3)]),
    "ctc_loss.Tensor": (
        lambda torch, x: torch.nn.functional.ctc_loss(
            x.log_softmax(2), torch.tensor([[1, 2], [2, 1]]), torch.tensor([4, 4]), torch.tensor([2, 1])),
        [(4, 2, 3)]),
    "nll_loss": (lambda torch, x: torch.nn.functional.nll_loss(x, torch.tensor([0, 1, 1])), [(3, 2)]),
    "nll_loss2d": (
        lambda torch, x: torch.nn.functional.nll_loss(x, torch.zeros(2, 6, 6, dtype=torch.int64)), [IMAGE]),
}

FFT: dict[str, Case] = {
    f"fft_{name}": (function(f"fft.{name}"), [(4, 6)])
    for name in ("fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn", "rfft",
                 "rfft2", "rfftn")
}

LINALG: dict[str, Case] = {
    "cholesky": (on_positive("cholesky"), [SQUARE]),
    "inverse": (on_positive("inverse"), [SQUARE]),
    "pinverse": (on_positive("pinverse"), [SQUARE]),
    "qr": (lambda torch, x: torch.qr(positive(torch, x))[1].abs(), [SQUARE]),
    "svd": (lambda torch, x: torch.svd(positive(torch, x))[1], [SQUARE]),
    "linalg_cholesky": (on_positive("linalg.cholesky"), [SQUARE]),
    "linalg_cholesky_ex": (on_positive("linalg.cholesky_ex"), [SQUARE]),
    "linalg_eigh": (lambda torch, x: torch.linalg.eigh(positive(torch, x))[0], [SQUARE]),
    "linalg_eigvalsh": (on_positive("linalg.eigvalsh"), [SQUARE]),
    "linalg_inv": (on_positive("linalg.inv"), [SQUARE]),
    "linalg_inv_ex": (on_positive("linalg.inv_ex"), [SQUARE]),
    "linalg_lstsq": (lambda torch, x, y: torch.linalg.lstsq(positive(torch, x), y)[0], [SQUARE, SQUARE]),
    "linalg_matrix_rank": (on_positive("linalg.matrix_rank"), [SQUARE]),
    "linalg_qr": (lambda torch, x: torch.linalg.qr(positive(torch, x))[1].abs(), [SQUARE]),
    "linalg_solve": (lambda torch, x, y: torch.linalg.solve(positive(torch, x), y), [SQUARE, SQUARE]),
    "linalg_svd": (lambda torch, x: torch.linalg.svd(positive(torch, x))[1], [SQUARE]),
    "linalg_svdvals": (on_positive("linalg.svdvals"), [SQUARE]),
    "cholesky_inverse": (on_positive("cholesky_inverse"), [SQUARE]),
    "cholesky_solve": (lambda torch, x, y: torch.cholesky_solve(y, positive(torch, x)), [SQUARE, SQUARE]),
    "triangular_solve": (lambda torch, x, y: torch.triangular_solve(y, positive(torch, x))[0], [SQUARE, SQUARE]),
    "lu_solve": (
        lambda torch, x, y: torch.lu_solve(y, positive(torch, x), torch.tensor([1, 2, 3], dtype=torch.int32)),
        [SQUARE, SQUARE]),
    "geqrf": (lambda torch, x: torch.geqrf(positive(torch, x))[0].triu().abs(), [SQUARE]),
    "orgqr": (lambda torch, x, tau: torch.orgqr(positive(torch, x), tau.detach()), [SQUARE, (3,)]),
    "linalg_householder_product": (
        lambda torch, x, tau: torch.linalg.householder_product(positive(torch, x), tau.detach()), [SQUARE, (3,)]),
    "ormqr": (
        lambda torch, x, tau, y: torch.ormqr(positive(torch, x), tau.detach(), y), [SQUARE, (3,), SQUARE]),
    "linalg_cond": (on_positive("linalg.cond"), [SQUARE]),
    "linalg_cond.p_str": (lambda torch, x: torch.linalg.cond(positive(torch, x), "fro"), [SQUARE]),
    "linalg_eig": (lambda torch, x: torch.linalg.eig(positive(torch, x))[0].abs().sum(), [SQUARE]),
    "linalg_eigvals": (lambda torch, x: torch.linalg.eigvals(positive(torch, x)).abs().sum(), [SQUARE]),
    "linalg_matrix_rank.atol_rtol_float": (
        lambda torch, x: torch.linalg.matrix_rank(positive(torch, x), atol=0.1), [SQUARE]),
    "linalg_matrix_rank.atol_rtol_tensor": (
        lambda torch, x: torch.linalg.matrix_rank(positive(torch, x), atol=torch.tensor(0.1)), [SQUARE]),
    "linalg_matrix_rank.tol_tensor": (
        lambda torch, x: torch.linalg.matrix_rank(positive(torch, x), torch.tensor(0.1)), [SQUARE]),
    "linalg_tensorinv": (lambda torch, x: torch.linalg.tensorinv(positive(torch, x), 1), [SQUARE]),
    "linalg_tensorsolve": (lambda torch, x, y: torch.linalg.tensorsolve(positive(torch, x), y), [SQUARE, (3,)]),
}

OTHERS: dict[str, Case] = {
    "adaptive_avg_pool3d": (functional("adaptive_avg_pool3d", 2), [VOLUME]),
    "adaptive_max_pool3d": (functional("adaptive_max_pool3d", 2), [VOLUME]),
    "avg_pool3d": (functional("avg_pool3d", 2), [VOLUME]),
    "max_pool3d": (functional("max_pool3d", 2), [VOLUME]),
    "max_unpool2d": (
        lambda torch, x: torch.nn.functional.max_unpool2d(x, torch.tensor([[[0, 3], [8, 10]]]), 2), [(1, 2, 2)]),
    "max_unpool3d": (
        lambda torch, x: torch.nn.functional.max_unpool3d(x, torch.tensor([[[[0, 3], [8, 10]]]]), 2), [(1, 1, 2, 2)]),
    "fractional_max_pool2d": (
        lambda torch, x: torch.nn.functional.fractional_max_pool2d(
            x, 2, output_size=3, _random_samples=torch.full((2, 3, 2), 0.5, dtype=x.dtype)), [IMAGE]),
    "fractional_max_pool3d": (
        lambda torch, x: torch.nn.functional.fractional_max_pool3d(
            x, 2, output_size=2, _random_samples=torch.full((1, 2, 3), 0.5, dtype=x.dtype)), [VOLUME]),
    "fake_quantize_per_tensor_affine": (function("fake_quantize_per_tensor_affine", 0.1, 0, -128, 127), [(3, 2)]),
    "stft": (lambda torch, x: torch.stft(x, 4, return_complex=True, center=False).abs(), [(12,)]),
    "stft.center": (lambda torch, x: torch.stft(x, 4, return_complex=True).abs(), [(12,)]),
    "cdist": (function("cdist"), [(3, 4), (2, 4)]),
    "grid_sampler": (
        lambda torch, x, g: torch.nn.functional.grid_sample(x, g.tanh(), align_corners=False), [IMAGE, (2, 4, 4, 2)]),
    "grid_sampler_2d": (
        lambda torch, x, g: torch.grid_sampler_2d(x, g.tanh(), 0, 0, False), [IMAGE, (2, 4, 4, 2)]),
    "grid_sampler_3d": (
        lambda torch, x, g: torch.grid_sampler_3d(x, g.tanh(), 0, 0, False), [VOLUME, (1, 2, 2, 2, 3)]),
    "nanquantile": (lambda torch, x, q: torch.nanquantile(x, unit(q.detach())), [(5, 3), (2,)]),
    "nanquantile.scalar": (function("nanquantile", 0.5), [(5, 3)]),
    "quantile": (lambda torch, x, q: torch.quantile(x, unit(q.detach()), 0), [(5, 3), (2,)]),
    "quantile.scalar": (function("quantile", 0.5, 1), [(5, 3)]),
    "polar": (lambda torch, x, y: torch.polar(unit(x), y).abs(), [(3,), (3,)]),
    "view_as_complex": (lambda torch, x: torch.view_as_complex(x).abs(), [(3, 2)]),
    "prod": (function("prod"), [(2, 3)]),
    "prod.dim_int": (function("prod", 1), [(2, 3)]),
    "trace": (function("trace"), [SQUARE]),
    "reflection_pad1d": (functional("pad", (1, 1), mode="reflect"), [(2, 3, 4)]),
    "reflection_pad2d": (functional("pad", (1, 1, 1, 1), mode="reflect"), [IMAGE]),
    "replication_pad1d": (functional("pad", (1, 1), mode="replicate"), [(2, 3, 4)]),
    "replication_pad2d": (functional("pad", (1, 1, 1, 1), mode="replicate"), [IMAGE]),
    "replication_pad3d": (functional("pad", (1,) * 6, mode="replicate"), [VOLUME]),
}

WIDEST: dict[str, Case] = {
    "cat": (lambda torch, *tensors: torch.cat(tensors), [(2, 3), (1, 3), (2, 3)]),
    "stack": (lambda torch, *tensors: torch.stack(tensors, 1), [(2, 3)] * 3),
    "index_copy": (
        lambda torch, x, y: torch.index_copy(x, 0, torch.tensor([2, 0]), y), [(3, 2), (2, 2)]),
}

FLOAT32: dict[str, Case] = {**LOSSES, **FFT, **LINALG, **OTHERS}
CASES: dict[str, Case] = {**LOWER, **FLOAT32, **WIDEST}
