"""Resizing, shuffling and unfolding against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data  # noqa: E402

SHAPES = {1: (2, 3, 7), 2: (2, 3, 5, 6), 3: (2, 2, 4, 3, 5)}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
SIZES = {"same": (7, 6, 5), "larger": (9, 13, 11), "smaller": (2, 3, 1), "one": (1, 1, 1)}


def resized(torch: Any, x: Any, *arguments: Any, **options: Any) -> Any:
    return torch.nn.functional.interpolate(x, *arguments, **options)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_nearest_and_area_to_a_size(spatial: int, size: str, mode: str) -> None:
    check(lambda torch, x: resized(torch, x, SIZES[size][:spatial], mode=mode), data(*SHAPES[spatial]))


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_linear_to_a_size(spatial: int, size: str, corners: bool) -> None:
    check(lambda torch, x: resized(torch, x, SIZES[size][:spatial], mode=LINEAR[spatial], align_corners=corners),
          data(*SHAPES[spatial]))


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_bicubic_to_a_size(size: str, corners: bool) -> None:
    check(lambda torch, x: resized(torch, x, SIZES[size][:2], mode="bicubic", align_corners=corners),
          data(*SHAPES[2]), tolerance=1e-4)


@pytest.mark.parametrize("recompute", [None, True])
@pytest.mark.parametrize("factor", [2, 3, 1.5, 0.5, 2.7, (2.0, 0.7)], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_factors(mode: str, factor: Any, recompute: bool | None) -> None:
    check(lambda torch, x: resized(torch, x, scale_factor=factor, mode=mode, recompute_scale_factor=recompute),
          data(*SHAPES[2]), tolerance=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype: str, mode: str) -> None:
    check(lambda torch, x: resized(torch, x, scale_factor=1.7, mode=mode), data(*SHAPES[2], dtype=dtype), second=False,
          tolerance=None if dtype == "float64" else 5e-2)


def test_nearest_of_bytes() -> None:
    check(lambda torch, x: resized(torch, x, 9), data(*SHAPES[2], dtype="uint8", low=0, high=255))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("options", [
    {"size": (5, 7)}, {"size": (20, 30)}, {"scale_factor": 0.4}, {"scale_factor": (0.5, 1.7)}, {"size": (13, 4)},
    {"size": (1, 1)}, {"size": (5, 7), "align_corners": True},
])
def test_antialias(mode: str, options: dict[str, Any]) -> None:
    if mode == "lanczos" and "align_corners" in options:
        check_error(lambda torch, x: resized(torch, x, mode=mode, antialias=True, **options), data(1, 1, 4, 4))
    else:
        check(lambda torch, x: resized(torch, x, mode=mode, antialias=True, **options), data(2, 3, 13, 11),
              tolerance=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 5), (9, 20), (6, 4)])
def test_antialias_of_bytes(mode: str, size: tuple[int, int]) -> None:
    check(lambda torch, x: resized(torch, x, size, mode=mode, antialias=True),
          data(1, 3, 6, 8, dtype="uint8", low=0, high=255))


@pytest.mark.parametrize(("shape", "options"), [
    ((2, 3, 4, 4), {}),
    ((2, 3, 4, 4), {"size": 2, "scale_factor": 2}),
    ((2, 3, 4, 4), {"size": (2, 2, 2)}),
    ((2, 3, 4, 4), {"scale_factor": (2, 2, 2)}),
    ((2, 3, 4, 4), {"size": 2, "mode": "linear"}),
    ((2, 3, 4), {"size": 2, "mode": "bilinear"}),
    ((2, 3, 4), {"size": 2, "mode": "nonsense"}),
    ((2, 3), {"size": 2}),
    ((2, 3, 4, 4), {"size": 2, "align_corners": True}),
    ((2, 3, 4, 4), {"size": 0}),
    ((2, 3, 4, 4), {"size": 2, "recompute_scale_factor": True}),
    ((2, 3, 4, 4), {"size": 2, "antialias": True}),
    ((2, 3, 4, 4), {"size": 2, "mode": "lanczos"}),
    ((2, 3, 4), {"size": 2, "mode": "lanczos"}),
])
def test_errors(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    check_error(lambda torch, x: resized(torch, x, **options), data(*shape))


@pytest.mark.parametrize("shape", [(2, 8, 3, 4), (8, 3, 4), (2, 1, 8, 3, 4)])
def test_shuffles(shape: tuple[int, ...]) -> None:
    check(lambda torch, x: torch.nn.functional.pixel_shuffle(x, 2), data(*shape))
    check(lambda torch, x: torch.pixel_unshuffle(torch.pixel_shuffle(x, 2), 2), data(*shape))
    check(lambda torch, x: torch.channel_shuffle(x, 2), data(2, 8, 3, 4))
    check(lambda torch, x: torch.channel_shuffle(x, 4), data(2, 8, 3))


@pytest.mark.parametrize("call", [
    lambda F, x: F.pixel_shuffle(x, 2),
    lambda F, x: F.pixel_shuffle(x, 0),
    lambda F, x: F.pixel_shuffle(x[0, 0], 2),
    lambda F, x: F.pixel_unshuffle(x, 2),
    lambda F, x: F.pixel_unshuffle(x, -1),
    lambda F, x: F.channel_shuffle(x, 2),
    lambda F, x: F.channel_shuffle(x, 0),
    lambda F, x: F.unfold(x, 9),
    lambda F, x: F.unfold(x, 0),
    lambda F, x: F.unfold(x[0, 0], 2),
    lambda F, x: F.fold(x[0], 5, 2),
    lambda F, x: F.fold(x, 5, 2),
    lambda F, x: F.fold(x[:, :, 0, :4].transpose(1, 2), 5, 2),
])
def test_errors_of_shuffles_and_windows(call: Any) -> None:
    check_error(lambda torch, x: call(torch.nn.functional, x), data(2, 3, 5, 5))


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"padding": 1}, {"dilation": 2, "padding": (1, 2)}], ids=str)
@pytest.mark.parametrize("kernel", [2, (3, 2)])
def test_unfold_and_fold(kernel: Any, options: dict[str, Any]) -> None:
    def both(torch: Any, x: Any) -> Any:
        columns = torch.nn.functional.unfold(x, kernel, **options)
        return columns, torch.nn.functional.fold(columns, (7, 6), kernel, **options)

    check(both, data(2, 3, 7, 6))
    check(both, data(3, 7, 6))


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample(mode: str, padding: str, corners: bool) -> None:
    def run(torch: Any, x: Any, grid: Any) -> Any:
        return torch.nn.functional.grid_sample(x, grid, mode, padding, corners)

    check(run, data(2, 3, 5, 6), data(2, 4, 3, 2, seed=1), second=False, tolerance=1e-4)
    check(run, data(2, 3, 5, 6, dtype="float64"), data(2, 4, 3, 2, seed=1, dtype="float64"), second=False)
    check(run, data(2, 2, 4, 5, 3), data(2, 4, 3, 2, 3, seed=1), second=False, tolerance=1e-4)


# PyTorch warns of grids of one pixel.
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 3, 4, 2, 5)])
def test_affine_grid(size: tuple[int, ...], corners: bool) -> None:
    spatial = len(size) - 2
    check(lambda torch, theta: torch.nn.functional.affine_grid(theta, size, corners), data(2, spatial, spatial + 1))


@pytest.mark.parametrize("call", [
    lambda F, x: F.grid_sample(x, x[:, 0, :, :3, None].expand(2, 5, 3, 3), align_corners=False),
    lambda F, x: F.grid_sample(x, x[:1, 0, :, :, None].expand(1, 5, 5, 2), align_corners=False),
    lambda F, x: F.grid_sample(x, x[:, 0, :, :2], align_corners=False),
    lambda F, x: F.grid_sample(x, x, mode="nonsense"),
    lambda F, x: F.grid_sample(x, x, padding_mode="nonsense"),
    lambda F, x: F.affine_grid(x[:, 0], (2, 3, 4, 4), False),
    lambda F, x: F.affine_grid(x[:, 0], (2, 3, 4), False),
    lambda F, x: F.affine_grid(x[:, 0].long(), (2, 3, 4, 4), False),
])
def test_errors_of_sampling(call: Any) -> None:
    check_error(lambda torch, x: call(torch.nn.functional, x), data(2, 3, 5, 5))
