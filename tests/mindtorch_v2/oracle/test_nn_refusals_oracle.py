"""Mistakes and corners of layers, losses, attention, pruning and schedules: what tests of `nn` check."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from both import ours, outcome, same, theirs

WHOLE = ("torch.nn.utils.prune", "torch.nn.attention.bias", "torch.optim.lr_scheduler")
for name in WHOLE:
    importlib.import_module(name)
    importlib.import_module(name.replace("torch", "mindtorch_v2", 1))


def kinds(torch: Any, runs: list[Callable[[], Any]], length: int = 0) -> list[Any]:
    """Results, and the class of each mistake with the beginning of its text."""
    return [outcome(run, length) for run in runs]


def test_losses_and_pools_refuse_what_is_empty() -> None:
    def program(torch: Any) -> Any:
        functional, index = torch.nn.functional, torch.zeros(1, 0, 2, 2, dtype=torch.long)
        none = torch.tensor([], dtype=torch.long)
        return kinds(torch, [
            lambda: functional.max_unpool2d(torch.ones(1, 0, 2, 2), index, 2),
            lambda: functional.max_unpool2d(torch.ones(1, 2, 0, 2), torch.zeros(1, 2, 0, 2).long(), 2),
            lambda: functional.max_unpool3d(torch.ones(1, 0, 2, 2, 2), torch.zeros(1, 0, 2, 2, 2).long(), 2),
            lambda: functional.max_unpool2d(torch.ones(0, 2, 2, 2), torch.zeros(0, 2, 2, 2).long(), 2).shape,
            lambda: functional.ctc_loss(torch.ones(0, 1, 2), none, torch.tensor([0]), torch.tensor([0])),
            lambda: functional.grid_sample(torch.ones(0, 1, 4, 4), torch.ones(0, 2, 2, 2), align_corners=False),
            lambda: functional.grid_sample(torch.ones(1, 1, 4, 4), torch.ones(1, 0, 2, 2), align_corners=False),
        ], 12)

    same(program)


def test_fractional_pooling_says_what_it_expects() -> None:
    for torch in (ours, theirs):
        for spatial in (2, 3):
            pool = getattr(torch.nn, f"FractionalMaxPool{spatial}d")(2, output_size=2)
            with pytest.raises(RuntimeError, match="Expected input"):
                pool(torch.ones(1, 0, *[4] * spatial))


def test_empty_grid_sample_has_gradients() -> None:
    def program(torch: Any) -> Any:
        image, grid = torch.ones(0, 1, 4, 4, requires_grad=True), torch.ones(0, 2, 2, 2, requires_grad=True)
        torch.nn.functional.grid_sample(image, grid, align_corners=False).sum().backward()
        return image.grad, grid.grad

    same(program)


def test_geometry_of_unpooling() -> None:
    def program(torch: Any) -> Any:
        unpool, x = torch._C._nn.max_unpool3d, torch.ones(1, 1, 2, 2, 2)
        index = torch.zeros(1, 1, 2, 2, 2, dtype=torch.long)
        return kinds(torch, [lambda: unpool(x, index, [4, 4], [2, 2, 2], [0, 0, 0]),
                             lambda: unpool(x, index, [4, 4, 4], [2, 2], [0, 0, 0])], 45)

    same(program)


@pytest.mark.parametrize("name", ["avg_pool2d", "max_pool2d", "avg_pool3d"])
def test_windows_beyond_32_bits(name: str) -> None:
    for torch in (ours, theirs):
        x = torch.ones(1, 1, 3, 3, 3) if name.endswith("3d") else torch.ones(1, 1, 3, 3)
        for more in ({"stride": 2**31}, {"padding": 2**40}):
            with pytest.raises(RuntimeError, match="without overflow"):
                getattr(torch.nn.functional, name)(x, 3, **more)


def test_dtypes() -> None:
    def program(torch: Any) -> Any:
        functional, one, two = torch.nn.functional, torch.ones(2), torch.ones(2).double()
        return [str(functional.huber_loss(one, two).dtype), str(functional.huber_loss(two, one).dtype),
                str(functional.huber_loss(one.half(), one, reduction="none").dtype),
                *kinds(torch, [lambda: functional.fold(torch.ones(1, 4, 4).long(), (3, 3), 2)], 15)]

    same(program)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_refuses_mixed_dtypes(training: bool) -> None:
    def program(torch: Any) -> Any:
        made = []
        for given in ("float16", "float32", "float64"):
            for stats in ("float32", "float64"):
                for weight in (None, "float32", "float64"):
                    x, mean = torch.ones(4, 3, dtype=getattr(torch, given)), torch.ones(3, dtype=getattr(torch, stats))
                    scale = None if weight is None else torch.ones(3, dtype=getattr(torch, weight))
                    made.append(outcome(lambda: torch.nn.functional.batch_norm(
                        x, mean, mean.clone(), scale, training=training).dtype is x.dtype, 0))  # noqa: B023
        return made

    same(program)


def test_which_fused_form_of_attention_is_chosen() -> None:
    def program(torch: Any) -> Any:
        x, mask = torch.arange(24.0).reshape(1, 2, 3, 4), torch.ones(3, 3).bool()
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
            plain = torch._fused_sdp_choice(x, x, x)
        return [plain, torch._fused_sdp_choice(x, x, x), torch._fused_sdp_choice(x[0], x[0], x[0]),
                torch._fused_sdp_choice(x, x, x, attn_mask=mask), torch.backends.cuda.SDPBackend.MATH.value]

    same(program)


def test_attention() -> None:
    def program(torch: Any) -> Any:
        attention, bias = torch.nn.functional.scaled_dot_product_attention, torch.nn.attention.bias
        x, nothing = torch.arange(24.0).reshape(1, 2, 3, 4), torch.ones(1, 1, 2, 0)
        return [attention(nothing, nothing, torch.ones(1, 1, 2, 3)),
                *kinds(torch, [lambda: attention(x, x, x, attn_mask=bias.causal_upper_left(3, 3), is_causal=True),
                               lambda: bias.causal_lower_right(3)], 40)]

    same(program)


def test_causal_bias_warns_of_rows_that_see_nothing() -> None:
    for torch in (ours, theirs):
        with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
            torch.nn.attention.bias.causal_lower_right(5, 3)


def test_pruning_helpers() -> None:
    def program(torch: Any) -> Any:
        prune, layer = torch.nn.utils.prune, torch.nn.Linear(4, 3)
        return [prune._compute_nparams_toprune(0.5, 15), prune._compute_nparams_toprune(3, 15),
                prune._validate_pruning_amount(0.3, 2), prune._validate_pruning_dim(torch.ones(2, 2), 1),
                *kinds(torch, [lambda: prune._validate_pruning_amount_init("x"),
                               lambda: prune._validate_pruning_amount_init(17.0),
                               lambda: prune._validate_pruning_amount(5, 3),
                               lambda: prune._validate_structured_pruning(torch.ones(3)),
                               lambda: prune._validate_pruning_dim(torch.ones(2, 2), 7),
                               lambda: prune.ln_structured(layer, "weight", 1, n=2, dim=9)], 25)]

    same(program)


def test_packed_sequence_that_stays() -> None:
    def program(torch: Any) -> Any:
        packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
        return packed.float() is packed, packed.double() is packed, packed.double().double().data.dtype is torch.float64

    same(program)


def test_margins_of_convolutions() -> None:
    def program(torch: Any) -> Any:
        layers = [torch.nn.Conv2d(1, 1, 3, padding=(1, 2)), torch.nn.Conv2d(1, 1, (4, 3), padding="same"),
                  torch.nn.Conv2d(1, 1, 3, padding="valid"), torch.nn.ConvTranspose1d(1, 1, 1)]
        return [list(layer._reversed_padding_repeated_twice) for layer in layers]

    same(program)


@pytest.mark.parametrize("torch", [ours, theirs])
def test_schedules_warn(torch: Any) -> None:
    schedules = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    with pytest.warns(UserWarning, match="how-to-adjust-learning-rate"):
        schedules.StepLR(optimizer, 1).step()
    with pytest.warns(UserWarning, match="The epoch parameter"):
        schedules.ReduceLROnPlateau(optimizer).step(1.0, epoch=3)


def test_empty_margin_loss_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, target in (("multi_margin_loss", (0,)), ("multilabel_margin_loss", (0, 4))):
            made = getattr(ours.nn.functional, name)(ours.ones(0, 4), ours.zeros(target, dtype=ours.int64))
            assert made.isnan().item()


def test_the_list_of_modules_is_whole() -> None:
    assert set(ours.nn.modules.__all__) >= set(theirs.nn.modules.__all__)
