"""Ops that are formulas of several operators give the CPU's values and gradients, also at the ends of their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch

F = torch.nn.functional
ENDS = [0.0, 1e-8, -1e-8, 1e-4, 0.5, -0.5, 3.0, -3.0, 20.0, 90.0, -90.0, 1e30, -1e30, math.inf, -math.inf, math.nan,
        -1.0, 1.0]
INDEX = torch.tensor([2, 0])


def on_both(function: Callable[..., Any], *tensors: torch.Tensor, atol: float = 1e-7) -> None:
    """Compare the results, and the gradients of operands that have one."""
    seen = []
    for device in ("cpu", "npu"):
        given = [one.detach().to(device).requires_grad_(one.requires_grad) for one in tensors]
        made = function(*given)
        parts = list(made) if isinstance(made, (list, tuple)) else [made]
        if parts[0].requires_grad:
            (parts[0] * torch.arange(1.0, parts[0].numel() + 1, device=device).view(parts[0].shape)).sum().backward()
        seen.append([part.detach().cpu() for part in parts] + [one.grad.cpu() for one in given if one.requires_grad])
    for mine, expected in zip(seen[1], seen[0], strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=atol, equal_nan=True)


@pytest.mark.parametrize("name", ["log1p", "expm1", "sinh", "cosh", "tan", "exp2", "frac", "nan_to_num", "logit",
                                  "sgn", "log2", "log10"])
def test_functions_of_one_number(name):
    on_both(getattr(torch, name), torch.tensor(ENDS))


@pytest.mark.parametrize("name", ["logaddexp", "hypot"])
def test_functions_of_two_numbers(name):
    ends = torch.tensor(ENDS)
    on_both(getattr(torch, name), ends, ends)
    on_both(getattr(torch, name), ends, ends.flip(0))


@pytest.mark.parametrize("function", [
    F.elu, F.selu, F.celu, F.mish, F.hardshrink, F.softshrink, F.logsigmoid, F.softsign, F.glu, torch.abs, torch.logit,
    lambda x: F.elu(x * 1.0, inplace=True), lambda x: torch.logit(x, eps=0.1),
    lambda x: F.prelu(x, torch.tensor([0.25], device=x.device)), lambda x: x.clamp_min(x.flip(0)),
    lambda x: x.clamp_max(x.flip(0)), lambda x: x.cumprod(1), torch.trace, torch.diag_embed, lambda x: x.nansum(),
    lambda x: x.median(1), lambda x: x.median(), lambda x: x.kthvalue(2, 0), lambda x: torch.addr(x, x[:, 0], x[0]),
    lambda x: torch.addmv(x[:, 0], x, x[0]), lambda x: x.take(INDEX.to(x.device)),
    lambda x: x.index_fill(1, INDEX.to(x.device), 7.0), lambda x: x.index_copy(1, INDEX.to(x.device), x[:, :2] * 2),
    lambda x: F.pixel_shuffle(x.view(1, 4, 2, 2), 2), lambda x: F.pixel_unshuffle(x.view(1, 1, 4, 4), 2),
    lambda x: torch._weight_norm(x, x[:, :1] + 2, 0), lambda x: F.l1_loss(x, x.flip(0), reduction="none"),
    lambda x: F.huber_loss(x, x.flip(0) * 3, delta=0.7), lambda x: F.soft_margin_loss(x, x.detach().flip(1).sign()),
])
def test_functions_with_gradients(function):
    on_both(function, torch.tensor([[-0.5, 0.05, 0.3, 0.95], [1.5, -30.0, 30.0, 0.25], [0.5, -1.5, 2.0, -2.0],
                                    [0.6, 0.7, -0.8, 0.15]], requires_grad=True))


@pytest.mark.parametrize("function", [
    F.hardswish, F.hardsigmoid, F.hardtanh, F.relu6, F.hardshrink, F.softshrink, F.leaky_relu,
    lambda x: F.prelu(x, torch.tensor([0.25], device=x.device)), lambda x: x ** -0.5, lambda x: x ** 0.5])
def test_gradients_at_corners_and_beyond(function):
    on_both(function, torch.tensor([math.nan, math.inf, -math.inf, -3.0, 3.0, 0.0, -0.0, -1.0, 4.0],
                                   requires_grad=True))


@pytest.mark.parametrize("function", [
    torch.hypot, torch.fmod, torch.remainder, lambda x, y: torch.fmod(x, math.inf),
    lambda x, y: torch.remainder(x, -math.inf), lambda x, y: torch.lerp(x, y, torch.tensor(1.0, device=x.device)),
    lambda x, y: torch.lerp(x, y, torch.tensor([[0.25], [0.75]], device=x.device))])
def test_remainders_of_infinity_and_ends_of_a_way(function):
    x = torch.tensor([[2.0, -2.0, 0.0, 1e8], [5.0, math.nan, -3.0, 1e8]])
    y = torch.tensor([math.inf, -math.inf, 7.0, 1.0])
    on_both(function, x, y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats_are_computed_with_more_digits(dtype):
    x = torch.tensor([1e4, -1e4, 1.0, 7.0], dtype=getattr(torch, dtype))
    for function in (lambda x: x % -3, lambda x: torch.fmod(x, 0.5), lambda x: torch.cumprod(x / 50, 0)):
        on_both(function, x)


def test_a_fraction_is_true_in_a_mask_that_is_filled():
    on_both(lambda x: x.masked_fill(x == x, 0.5), torch.tensor([True, False]))


def test_an_exponential_near_zero_has_its_digits():
    on_both(F.elu, torch.tensor([-1e-8, -1e-5, -0.0, 1e-8]), atol=0.0)


def test_the_slope_of_a_corner_learns_nothing_above_it():
    on_both(lambda x, slope: F.prelu(x, slope) / torch.tensor([0.0, 1.0], device=x.device),
            torch.tensor([2.0, -3.0]), torch.tensor([0.25], requires_grad=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_powers_are_whole(dtype):
    for base, function in ((2, torch.log2), (10, torch.log10)):
        powers = torch.tensor([float(base) ** k for k in range(-30, 31)], dtype=getattr(torch, dtype), device="npu")
        assert function(powers).tolist() == list(range(-30, 31))


def test_the_median_is_no_number_where_there_is_none():
    on_both(lambda x: x.median(1), torch.tensor([[1.0, math.nan, 0.0], [2.0, 1.0, 3.0]]))
    on_both(torch.median, torch.tensor([1.0, math.nan]))


@pytest.mark.parametrize("optimizer", [
    lambda parameters: torch.optim.ASGD(parameters), lambda parameters: torch.optim.Adamax(parameters),
    lambda parameters: torch.optim.Adam(parameters, amsgrad=True)])
def test_optimizers_whose_state_is_beside_the_parameters(optimizer):
    def trained(start: torch.Tensor) -> torch.Tensor:
        parameter = torch.nn.Parameter(start.detach().clone())
        steps = optimizer([parameter])
        for _ in range(3):
            steps.zero_grad()
            parameter.square().sum().backward()
            steps.step()
        return parameter.detach()

    on_both(trained, torch.tensor([1.0, -2.0, 3.0]))


# -- ops that stand in terms of other ops (`_ops/stand_ins`) -----------------------------------------------------------


@pytest.mark.parametrize("name", ["atan", "asin", "acos", "asinh", "acosh", "atanh", "sinc", "erfinv", "signbit",
                                  "deg2rad", "rad2deg"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_that_stand_in_other_ops(name, dtype):
    ends = torch.tensor([*ENDS, 0.1, 0.9, -0.999, 0.9999, 2.5], dtype=dtype)
    # A sine of half turns has no digits where the angle is large.
    on_both(getattr(torch, name), ends[ends.abs() < 100] if name == "sinc" else ends)


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_gamma_functions(name):
    x = torch.tensor([0.1, 0.5, 0.7, 1.5, 3.0, 7.9, 8.1, 30.0, 1e4, -0.3, -2.5, math.inf, math.nan, 0.0])
    for device in ("npu",):
        torch.testing.assert_close(getattr(torch, name)(x.to(device)).cpu(), getattr(torch, name)(x), rtol=2e-6,
                                   atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("name", ["atan2", "copysign", "heaviside", "fmax", "fmin", "logaddexp2"])
def test_functions_of_two_that_stand_in_other_ops(name):
    ends = torch.tensor([*ENDS, -0.0, 1.0])
    if name == "logaddexp2":
        ends = ends[ends.abs() < 1e29]
    on_both(getattr(torch, name), ends, ends)
    on_both(getattr(torch, name), ends, ends.flip(0))


def index(*numbers: int) -> Callable[[Any], torch.Tensor]:
    return lambda x: torch.tensor(numbers, device=x.device)


PLACES = index(2, 0, 2, 1)


@pytest.mark.parametrize("function", [
    lambda x: F.adaptive_max_pool2d(x.view(1, 4, 4), (3, 2), return_indices=True),
    lambda x: F.adaptive_max_pool3d(x.view(1, 4, 2, 2), (3, 2, 1)),
    lambda x: F.max_pool3d(x.view(1, 4, 2, 2), 2, 1, 1), lambda x: F.avg_pool3d(x.view(1, 4, 2, 2), 2, 1, 1),
    lambda x: F.avg_pool3d(x.view(1, 4, 2, 2), 2, 1, 1, ceil_mode=True, count_include_pad=False),
    lambda x: F.avg_pool3d(x.view(1, 4, 2, 2), (2, 1, 2), divisor_override=3),
    lambda x: F.adaptive_avg_pool3d(x.view(1, 4, 2, 2), (3, 1, 2)),
    lambda x: F.unfold(x.view(1, 1, 4, 4), (2, 3), padding=1, stride=(1, 2)),
    lambda x: F.fold(x.view(1, 4, 4), (3, 3), 2), lambda x: x.unfold(1, 3, 1),
    lambda x: F.max_unpool2d(x.view(1, 4, 2, 2), torch.tensor([[[0, 3], [9, 14]]] * 4, device=x.device)[None], 2),
    lambda x: torch.cdist(x, x.flip(0)[:3] + 0.1), lambda x: torch.cdist(x, x[:2] - 1, p=1),
    lambda x: torch.cdist(x, x[:2] - 1, p=3.0), lambda x: torch.cdist(x, x[:2] - 1, p=math.inf), torch.pdist,
    lambda x: torch.dist(x, x.flip(1), 3), lambda x: x.renorm(2, 0, 1.0),
    lambda x: torch.linalg.cross(x[:3], x[1:], dim=0),
    lambda x: F.bilinear(x, x.flip(0), x.view(1, 4, 4)), lambda x: torch.addbmm(x, x[None], x[None], beta=0.5, alpha=2),
    lambda x: x.cummax(1), lambda x: x.cummin(0), lambda x: x.logcumsumexp(1), lambda x: torch.block_diag(x, x[:2]),
    lambda x: torch.diagonal_scatter(x, x[0] * 2, 1 - 1), lambda x: torch.select_scatter(x, x[0] * 2, 1, 2),
    lambda x: torch.slice_scatter(x, x[:2] * 2, 0, 1, 4, 2), lambda x: x.clamp(x.flip(0) - 1, x.flip(0) + 1),
    lambda x: F.multi_margin_loss(x, PLACES(x)), lambda x: F.multi_margin_loss(x, PLACES(x), p=2, reduction="none"),
    lambda x: F.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]] * 4, device=x.device)),
    lambda x: F.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]] * 4, device=x.device), reduction="none"),
    *[lambda x, r=r, own=own: x.scatter_reduce(1, PLACES(x).expand(4, 4), x.flip(0), r, include_self=own)
      for r in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)],
    lambda x: x.index_reduce(0, PLACES(x), x.flip(1), "amax"),
    lambda x: x.index_reduce(1, PLACES(x), x.flip(1), "prod"),
    lambda x: torch.repeat_interleave(x, index(1, 0, 3, 2)(x), 0),
    lambda x: x.masked_scatter(x > 0.2, torch.arange(16.0, device=x.device)),
    *[lambda x, mode=mode: F.embedding_bag(index(1, 3, 0, 1, 2)(x), x, index(0, 2, 2)(x), mode=mode, padding_idx=3)
      for mode in ("sum", "mean", "max")],
    lambda x: F.embedding_bag(index(1, 3, 0, 1)(x), x, index(0, 2)(x), mode="sum", per_sample_weights=x[0] * 2),
    lambda x: F.affine_grid(x[:2, :3].view(1, 2, 3), (1, 1, 2, 3), align_corners=False),
    lambda x: F.embedding(index(1, 1, 3)(x), x.detach() * 1, max_norm=1.0) * x[:3],
])
def test_ops_that_stand_in_other_ops(function):
    on_both(function, torch.tensor([[-0.5, 0.05, 0.3, 0.95], [1.5, -1.0, 3.0, 0.25], [0.5, -1.5, 2.0, -2.0],
                                    [0.6, 0.7, -0.8, 0.15]], requires_grad=True))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_of_images(mode, padding):
    image = torch.linspace(-1, 1, 24).sin().view(1, 2, 3, 4).requires_grad_()
    grid = torch.tensor([[-1.3, 0.2], [0.13, 0.4], [0.9, -0.77], [3.3, -2.1]]).view(1, 2, 2, 2).requires_grad_()
    for corners in (True, False):
        on_both(lambda x, g, c=corners: F.grid_sample(x, g, mode, padding, align_corners=c), image, grid)


@pytest.mark.parametrize("function", [
    lambda x: torch.unique(x, return_inverse=True, return_counts=True), lambda x: torch.bincount(x, minlength=9),
    lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), lambda x: x << 2, lambda x: x >> 1,
    lambda x: torch.bincount(x, torch.arange(7.0, device=x.device)), lambda x: torch.isin(x, 3),
    lambda x: torch.searchsorted(x.sort()[0], x, right=True), lambda x: torch.bucketize(x, x.unique() + 1),
    lambda x: torch.searchsorted(x.sort()[0].expand(2, -1), x[:4].view(2, 2)), lambda x: x.cummax(0),
    lambda x: x.scatter_reduce(0, x % 3, x + 5, "amin"), lambda x: x.scatter_reduce(0, x % 3, x + 5, "mean"),
    lambda x: torch.histc(x.float(), 4), lambda x: torch.histc(x.float(), 3, 1, 5),
])
def test_integers_looked_up_and_counted(function):
    on_both(function, torch.tensor([3, 3, 0, 5, 1, 1, 3]))


def test_numbers_that_are_drawn_by_formulas():
    x = torch.empty(20_000, device="npu")
    assert abs(x.log_normal_(0.5, 0.3).log().mean().item() - 0.5) < 0.02
    assert abs(x.geometric_(0.25).mean().item() - 4) < 0.2
    assert abs(x.cauchy_(2, 0.5).median().item() - 2) < 0.05
    slopes = F.rrelu(torch.full((20_000,), -1.0, device="npu"), 0.1, 0.3, training=True)
    assert abs(slopes.mean().item() + 0.2) < 0.01
    assert torch.nn.init.trunc_normal_(x, std=0.5, a=-1, b=1).abs().max().item() <= 1


def test_wrong_arguments_of_formulas_are_told_as_on_the_cpu():
    for function in (lambda x: F.fold(x, (9, 9), 2), lambda x: torch.bincount(x), lambda x: F.unfold(x[None, None], 9),
                     lambda x: F.multi_margin_loss(x, torch.zeros(9, dtype=torch.long, device=x.device))):
        said = []
        for device in ("cpu", "npu"):
            with pytest.raises((RuntimeError, NotImplementedError)) as info:
                function(torch.ones(4, 4, device=device))
            said.append((type(info.value), str(info.value)))
        assert said[0] == said[1]


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD])
def test_fused_optimizers_skip_steps_with_infinite_gradients(optimizer):
    parameter = torch.nn.Parameter(torch.ones(3, device="npu"))
    steps, scaler = optimizer([parameter], lr=0.1, fused=True), torch.amp.GradScaler("npu", init_scale=4.0)
    for factor in (1.0, math.inf, 1.0):
        steps.zero_grad()
        scaler.scale((parameter * factor).sum()).backward()
        scaler.unscale_(steps)
        before = parameter.detach().clone()
        scaler.step(steps)
        scaler.update()
        assert torch.equal(before, parameter) == math.isinf(factor)
    assert scaler.get_scale() == 2.0
    assert steps.state[parameter].get("step", torch.tensor(2.0)).item() == 2


def lengths(*numbers: int) -> list[int]:
    return list(numbers)


@pytest.mark.parametrize(("shape", "targets", "inputs", "wanted", "options"), [
    ((15, 3, 8), [[1, 2, 3, 3, 4], [5, 6, 7, 0, 0], [1, 1, 2, 2, 0]], lengths(15, 12, 10), lengths(5, 3, 4), {}),
    ((15, 3, 8), [1, 2, 3, 3, 4, 5, 6, 7, 1, 1, 2, 2], lengths(15, 12, 10), lengths(5, 3, 4), {"reduction": "none"}),
    ((6, 2, 4), [[1, 1, 1, 1], [2, 3, 0, 0]], lengths(3, 6), lengths(4, 2), {"zero_infinity": True}),
    ((6, 2, 4), [[1, 1, 1, 1], [2, 3, 0, 0]], lengths(3, 6), lengths(4, 2), {"reduction": "none"}),
    ((6, 2, 4), [[1, 2], [2, 3]], lengths(0, 6), lengths(0, 0), {"reduction": "none"}),
    ((6, 2, 4), [[1, 0], [2, 3]], torch.tensor([5, 6]), torch.tensor([1, 2]), {"blank": 3, "reduction": "sum"}),
])
def test_connectionist_temporal_classification(shape, targets, inputs, wanted, options):
    """Lengths may be in host memory, as in PyTorch on other devices."""
    on_both(lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor(targets, device=x.device), inputs, wanted, **options),
            torch.randn(shape, requires_grad=True), atol=1e-5)  # a difference of numbers near 1


def test_wrong_lengths_are_told():
    with pytest.raises(RuntimeError, match="Expected input_lengths to have value at most 6, but got value 7"):
        F.ctc_loss(torch.randn(6, 1, 4, device="npu"), torch.tensor([[1]], device="npu"), [7], [1])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_bicubic_samples(padding, align_corners):
    on_both(lambda x, grid: F.grid_sample(x, grid, mode="bicubic", padding_mode=padding, align_corners=align_corners),
            torch.randn(2, 3, 5, 6, requires_grad=True), (torch.rand(2, 4, 3, 2) * 2.6 - 1.3).requires_grad_(),
            atol=1e-3)  # of sums of numbers up to 100


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim):
    x = torch.tensor([[[1, 2], [0, 5], [1, 2]], [[1, 2], [0, 4], [1, 2]], [[1, 2], [0, 5], [1, 2]]])
    for sample in (x, x.float() - 3, *([x[:0]] if dim == 0 else [])):
        on_both(lambda t: torch.unique(t, dim=dim, return_inverse=True, return_counts=True), sample)
        on_both(lambda t: torch.unique_consecutive(t, dim=dim, return_inverse=True, return_counts=True), sample)
    on_both(lambda t: torch.unique(t, dim=0), torch.randint(0, 2, (40, 5)))


def test_the_most_frequent_and_the_middle():
    x = torch.randint(0, 4, (6, 7)).float()
    x[2, 3] = x[2, 5] = x[0, 0] = math.nan
    for dim in (0, 1):
        on_both(lambda t: torch.nanmedian(t, dim=dim, keepdim=True), x)  # noqa: B023
        on_both(lambda t: torch.mode(t, dim=dim), x.nan_to_num().requires_grad_())  # noqa: B023
    on_both(torch.nanmedian, x)
    on_both(torch.nanmedian, torch.full((3,), math.nan))
    on_both(torch.mode, torch.tensor(3.0))


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "lr_decay": 0.2, "maximize": True}])
def test_fused_adagrad(options):
    seen = []
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        parameter = torch.nn.Parameter(torch.randn(3, 4).to(device))
        optimizer = torch.optim.Adagrad([parameter], fused=True, **options)
        for _ in range(3):
            optimizer.zero_grad()
            (parameter**2).sum().backward()
            optimizer.step()
        seen.append(parameter.detach().cpu())
    torch.testing.assert_close(seen[1], seen[0])


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_gamma_numbers(shape):
    drawn = torch._standard_gamma(torch.full((40000,), shape, device="npu"))
    assert drawn.min().item() > 0
    assert abs(drawn.mean().item() - shape) < 0.03 * max(shape, 1)
    assert abs(drawn.var().item() - shape) < 0.06 * max(shape, 1)


def test_beta_and_dirichlet_numbers():
    beta = torch.distributions.Beta(torch.tensor(2.0, device="npu"), torch.tensor(3.0, device="npu")).sample((20000,))
    assert abs(beta.mean().item() - 0.4) < 0.01
    assert abs(beta.var().item() - 0.04) < 0.002
    shares = torch.distributions.Dirichlet(torch.tensor([1.0, 2.0, 5.0], device="npu")).sample((20000,))
    torch.testing.assert_close(shares.sum(-1), torch.ones(20000, device="npu"))
    torch.testing.assert_close(shares.mean(0).cpu(), torch.tensor([1.0, 2.0, 5.0]) / 8, atol=0.01, rtol=0)


@pytest.mark.parametrize("rate", [0.0, 0.7, 8.0, 11.0, 300.0])
def test_poisson_numbers(rate):
    drawn = torch.poisson(torch.full((40000,), rate, device="npu"))
    assert torch.equal(drawn, drawn.floor())
    assert drawn.min().item() >= 0
    assert abs(drawn.mean().item() - rate) < 0.03 * max(rate, 1) ** 0.5
    assert abs(drawn.var().item() - rate) <= 0.05 * rate
    few = torch.poisson(torch.full((4000,), rate))
    assert abs((drawn < rate).float().mean().item() - (few < rate).float().mean().item()) < 0.05


def test_gradients_of_strided_views():
    x = torch.randn(4, 5, requires_grad=True)
    on_both(lambda t: t.as_strided((3, 2), (5, 1), 2) * 2, x)
    on_both(lambda t: t.as_strided((3, 3), (1, 1), 1), x)  # elements shown several times
    on_both(lambda t: t.t().as_strided((2, 2), (1, 5), 3), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
def test_weights_of_bins(dtype):
    on_both(lambda x: torch.bincount(x, torch.tensor([1, 2, 3, 4], dtype=dtype, device=x.device)),
            torch.tensor([1, 4, 4, 0]))


@pytest.mark.parametrize("function", [
    torch.cummax, torch.cummin, torch.logcumsumexp, torch.mode, torch.nanmedian, lambda x, d: x.renorm(2, d, 1.0),
    lambda x, d: x.scatter_reduce(d, torch.zeros_like(x, dtype=torch.int64), x, "sum"),
    lambda x, d: x.index_reduce(d, torch.zeros(2, dtype=torch.int64, device=x.device), x, "prod"),
])
@pytest.mark.parametrize("shape", [(2, 3), (3,), ()])
@pytest.mark.parametrize("dim", [5, -4])
def test_dimensions_that_are_not_there(function, shape, dim):
    with pytest.raises(Exception) as host:  # noqa: PT011
        function(torch.ones(shape), dim)
    with pytest.raises(host.type) as there:
        function(torch.ones(shape, device="npu"), dim)
    assert str(there.value) == str(host.value)


@pytest.mark.parametrize("function", [
    lambda x: x.renorm(2, 0, -1.0), lambda x: torch.block_diag(x[None]), lambda x: torch.searchsorted(x, x, side="abc"),
    lambda x: torch.searchsorted(x, x, side="left", right=True), lambda x: x.to(torch.uint8) ** -3,
])
def test_wrong_arguments_are_told(function):
    with pytest.raises(Exception) as host:  # noqa: PT011
        function(torch.ones(2, 2))
    with pytest.raises(host.type) as there:
        function(torch.ones(2, 2, device="npu"))
    assert str(there.value) == str(host.value)


def test_far_below_zero_a_smooth_corner_is_an_exponential():
    x = torch.tensor([-5.0, -15.0, -18.0, -60.0], requires_grad=True)
    on_both(F.softplus, x, atol=0)
    on_both(F.logsigmoid, -x.detach(), atol=0)


@pytest.mark.parametrize("call", [
    lambda x: x.cumsum(0, dtype=torch.int64), lambda x: torch.cumsum(x, 0, out=torch.zeros_like(x, dtype=torch.int32)),
    lambda x: torch.addcmul(x.int(), x.int(), x.int(), value=1.5),
    lambda x: x.int().clone().addcmul_(x.int(), x.int(), value=0.5), lambda x: torch.true_divide(1, x),
    lambda x: torch.add(1, x), lambda x: torch.floor_divide(7, x.int()), lambda x: torch.sub(1.5, x.int()),
    lambda x: F.hardtanh(x.int()), lambda x: F.relu6(x.int() * 3),
    lambda x: torch.as_strided_copy(x > 2, (2, 2), (1, 1)),
    lambda x: F.multilabel_margin_loss(x[0], (x[0] * 0).long()),
    lambda x: torch.view_copy(x.reshape(1, 3).expand(2, 3).t(), (6,))])
def test_integers_and_numbers_are_what_they_are_on_the_cpu(call):
    on_both(call, torch.tensor([1.5, 2.5, 3.7]))


@pytest.mark.parametrize("call", [lambda x: F.channel_shuffle(x, 1), lambda x: F.channel_shuffle(x, 4),
                                  lambda x: F.pixel_shuffle(x, 1), lambda x: F.pixel_unshuffle(x, 1)])
def test_what_is_rearranged_has_memory_of_its_own(call):
    x = torch.ones(2, 4, 3, 3, device="npu")
    call(x).zero_()
    assert x.min() == 1
