"""Vision layers against PyTorch: same seed, same weights; same output, gradients, state dict and repr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check_error, data, make, ours, theirs  # noqa: E402
from nn_compare import Build, compare  # noqa: E402

IMAGE = data(2, 4, 8, 9)
LINE = data(2, 4, 9)
VOLUME = data(2, 4, 5, 6, 4)
LAYERS: dict[str, tuple[Build, Any]] = {
    "Conv1d": (lambda t: t.nn.Conv1d(4, 6, 3, padding=1), LINE),
    "Conv1d reflect": (lambda t: t.nn.Conv1d(4, 6, 3, padding=2, padding_mode="reflect"), LINE),
    "Conv2d": (lambda t: t.nn.Conv2d(4, 6, 3), IMAGE),
    "Conv2d options": (lambda t: t.nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=2, groups=2, bias=False),
                       IMAGE),
    "Conv2d same": (lambda t: t.nn.Conv2d(4, 6, 3, padding="same"), IMAGE),
    "Conv2d valid": (lambda t: t.nn.Conv2d(4, 6, 3, padding="valid"), IMAGE),
    "Conv2d circular": (lambda t: t.nn.Conv2d(4, 6, 3, padding=(1, 2), padding_mode="circular"), IMAGE),
    "Conv2d replicate same": (lambda t: t.nn.Conv2d(4, 6, 4, padding="same", padding_mode="replicate"), IMAGE),
    "Conv2d depthwise": (lambda t: t.nn.Conv2d(4, 8, 3, groups=4), IMAGE),
    "Conv3d": (lambda t: t.nn.Conv3d(4, 3, 3, padding=1), VOLUME),
    "ConvTranspose1d": (lambda t: t.nn.ConvTranspose1d(4, 3, 3, 2, 1, 1), LINE),
    "ConvTranspose2d": (lambda t: t.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, dilation=2), IMAGE),
    "ConvTranspose3d": (lambda t: t.nn.ConvTranspose3d(4, 2, 2, 2, bias=False), VOLUME),
    "MaxPool1d": (lambda t: t.nn.MaxPool1d(2), LINE),
    "MaxPool2d": (lambda t: t.nn.MaxPool2d((3, 2), 2, 1, ceil_mode=True), IMAGE),
    "MaxPool3d": (lambda t: t.nn.MaxPool3d(2, dilation=2, stride=1), VOLUME),
    "AvgPool1d": (lambda t: t.nn.AvgPool1d(2, padding=1), LINE),
    "AvgPool2d": (lambda t: t.nn.AvgPool2d(2, 1), IMAGE),
    "AvgPool3d": (lambda t: t.nn.AvgPool3d(2, count_include_pad=False, padding=1), VOLUME),
    "LPPool1d": (lambda t: t.nn.LPPool1d(2, 3), LINE),
    "LPPool2d": (lambda t: t.nn.LPPool2d(2, 3, stride=2), IMAGE),
    "LPPool3d": (lambda t: t.nn.LPPool3d(2, 2), VOLUME),
    "AdaptiveAvgPool1d": (lambda t: t.nn.AdaptiveAvgPool1d(4), LINE),
    "AdaptiveAvgPool2d": (lambda t: t.nn.AdaptiveAvgPool2d((1, None)), IMAGE),
    "AdaptiveAvgPool2d one": (lambda t: t.nn.AdaptiveAvgPool2d(1), IMAGE),
    "AdaptiveAvgPool3d": (lambda t: t.nn.AdaptiveAvgPool3d(2), VOLUME),
    "AdaptiveMaxPool1d": (lambda t: t.nn.AdaptiveMaxPool1d(4), LINE),
    "AdaptiveMaxPool2d": (lambda t: t.nn.AdaptiveMaxPool2d(3), IMAGE),
    "AdaptiveMaxPool3d": (lambda t: t.nn.AdaptiveMaxPool3d((2, None, 3)), VOLUME),
    "Upsample": (lambda t: t.nn.Upsample(scale_factor=2), IMAGE),
    "Upsample bilinear": (lambda t: t.nn.Upsample((3, 4), mode="bilinear", align_corners=True), IMAGE),
    "Upsample factors": (lambda t: t.nn.Upsample(scale_factor=(2, 3), mode="bicubic"), IMAGE),
    "UpsamplingNearest2d": (lambda t: t.nn.UpsamplingNearest2d(scale_factor=2), IMAGE),
    "UpsamplingBilinear2d": (lambda t: t.nn.UpsamplingBilinear2d(size=5), IMAGE),
    "PixelShuffle": (lambda t: t.nn.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": (lambda t: t.nn.PixelUnshuffle(2), data(2, 3, 4, 6)),
    "ChannelShuffle": (lambda t: t.nn.ChannelShuffle(2), IMAGE),
    "Unfold": (lambda t: t.nn.Unfold(3, padding=1), IMAGE),
    "Fold": (lambda t: t.nn.Fold((4, 5), 2, stride=(1, 1)), data(2, 8, 12)),
    "InstanceNorm1d": (lambda t: t.nn.InstanceNorm1d(4), LINE),
    "InstanceNorm2d": (lambda t: t.nn.InstanceNorm2d(4, affine=True, track_running_stats=True), IMAGE),
    "InstanceNorm2d unbatched": (lambda t: t.nn.InstanceNorm2d(4, affine=True), data(4, 8, 9)),
    "InstanceNorm3d": (lambda t: t.nn.InstanceNorm3d(4, affine=True), VOLUME),
    "LocalResponseNorm": (lambda t: t.nn.LocalResponseNorm(3, 0.1, 0.6, 2.0), IMAGE),
    "LocalResponseNorm line": (lambda t: t.nn.LocalResponseNorm(2), LINE),
    "a small network": (lambda t: t.nn.Sequential(
        t.nn.Conv2d(4, 8, 3, padding=1), t.nn.BatchNorm2d(8), t.nn.ReLU(), t.nn.MaxPool2d(2),
        t.nn.Conv2d(8, 16, 3, padding=1), t.nn.ReLU(), t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(), t.nn.Linear(16, 5)),
        IMAGE),
}


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str, training: bool) -> None:
    build, given = LAYERS[name]
    compare(build, given, training=training)


def test_output_size_of_a_transposed_convolution() -> None:
    def run(torch: Any) -> Any:
        torch.manual_seed(3)
        layer = torch.nn.ConvTranspose2d(4, 3, 3, stride=2)
        return layer(make(torch, IMAGE, False), output_size=(18, 19)).detach().tolist()

    assert theirs.allclose(theirs.tensor(run(ours)), theirs.tensor(run(theirs)), atol=1e-5)


def test_unpooling_undoes_pooling() -> None:
    def run(torch: Any) -> Any:
        pool, unpool = torch.nn.MaxPool2d(2, return_indices=True), torch.nn.MaxUnpool2d(2)
        return repr(unpool), unpool(*pool(make(torch, data(1, 2, 4, 6), False))).tolist()

    assert run(ours) == run(theirs)


@pytest.mark.parametrize("build", [
    lambda nn: nn.Conv2d(3, 4, 3, groups=2),
    lambda nn: nn.Conv2d(4, 3, 3, groups=2),
    lambda nn: nn.Conv2d(4, 3, 3, groups=0),
    lambda nn: nn.Conv2d(4, 3, 3, padding="nonsense"),
    lambda nn: nn.Conv2d(4, 3, 3, padding="same", stride=2),
    lambda nn: nn.Conv2d(4, 3, 3, padding_mode="nonsense"),
    lambda nn: nn.ConvTranspose2d(4, 3, 3, padding_mode="reflect"),
])
def test_errors_of_construction(build: Any) -> None:
    check_error(lambda torch: build(torch.nn))


@pytest.mark.parametrize("call", [
    lambda nn, x: nn.ConvTranspose2d(4, 3, 3, stride=2)(x, output_size=(2,)),
    lambda nn, x: nn.ConvTranspose2d(4, 3, 3, stride=2)(x, output_size=(40, 40)),
    lambda nn, x: nn.InstanceNorm2d(3, affine=True)(x),
    lambda nn, x: nn.InstanceNorm2d(4)(x[0, 0]),
    lambda nn, x: nn.InstanceNorm2d(4)(x[:, :, :1, :1]),
    lambda nn, x: nn.LocalResponseNorm(2)(x[0, 0]),
])
def test_errors_of_calls(call: Any) -> None:
    check_error(lambda torch, x: call(torch.nn, x), IMAGE)


@pytest.mark.parametrize("size", [5, 14, 28, 33])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_of_all_pixels(size, mode):
    """Positions are on pixels up to rounding; the side decides the gradient of the grid."""
    found = []
    for t in (ours, theirs):
        image = make(t, data(1, 2, size, size), False)
        theta = t.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], requires_grad=True)
        grid = t.nn.functional.affine_grid(theta, image.shape, align_corners=False)
        grid.retain_grad()
        made = t.nn.functional.grid_sample(image, grid, mode=mode, align_corners=False)
        (made * image.flip(3)).sum().backward()
        found.append((grid.detach().numpy(), grid.grad.numpy()))
    assert (found[0][0] == found[1][0]).all()
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-3, atol=1e-3)


def test_instance_norm_nodes():
    orders = []
    for t in (ours, theirs):
        layer, x = t.nn.InstanceNorm2d(4, affine=True), make(t, IMAGE, True)
        with t.profiler.profile() as recorded:
            layer(x).sum().backward()
        orders.append([e.name for e in recorded.events() if "evaluate_function" in e.name])
    assert orders[0] == orders[1]
