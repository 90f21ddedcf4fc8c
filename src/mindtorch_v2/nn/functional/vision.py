"""Resizing and sampling images."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

Factors = float | Sequence[float] | None
LINEAR = {"linear": (3, "upsample_linear1d"), "bilinear": (4, "upsample_bilinear2d"),
          "trilinear": (5, "upsample_trilinear3d"), "bicubic": (4, "upsample_bicubic2d")}
NEAREST = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact"}
ALL_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
SAMPLING = {"bilinear": 0, "nearest": 1, "bicubic": 2}
MARGINS = {"zeros": 0, "border": 1, "reflection": 2}
AREA = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}


def _spatial(input: Tensor, given: Any, what: str, letter: str) -> list[Any]:
    """One item per spatial dimension."""
    count = input.ndim - 2
    if not isinstance(given, (list, tuple)):
        return [given] * count
    if len(given) != count:
        shape = "output size of" if what == "output size" else "scale_factor of shape"
        raise ValueError(
            f"Input and {'output' if what == 'output size' else what} must have the same number of spatial dimensions, "
            f"but got input with spatial dimensions of {list(input._a.shape[2:])} and {shape} {given}. Please provide "
            f"input tensor in (N, C, d1, d2, ...,dK) format and {what} in ({letter}1, {letter}2, ...,{letter}K) "
            "format.")
    return list(given)


def interpolate(input: Tensor, size: Any = None, scale_factor: Factors = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """The input resized to a size or by a factor."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                             "bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    sizes = factors = None
    if size is not None:
        sizes = _spatial(input, size, "output size", "o")
        if any(isinstance(n, float) for n in sizes):
            raise TypeError(f"interpolate(): argument 'size' must be an int or a tuple of ints, but got {size}")
    else:
        factors = _spatial(input, scale_factor, "scale_factor", "s")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (mode == "area" or recompute_scale_factor):
        sizes = [math.floor(float(n) * f) for n, f in zip(input._a.shape[2:], factors)]
        factors = None
    if antialias:
        if mode not in ("bilinear", "bicubic", "lanczos") or input.ndim != 4:
            raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a "
                             "4-D tensor as input")
        if mode == "lanczos" and align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        return getattr(aten, f"_upsample_{mode}2d_aa__vec")(input, sizes, align_corners, factors)
    if mode == "lanczos" and input.ndim == 4:
        raise ValueError("Lanczos mode requires antialias=True")
    return _resized(input, sizes, factors, mode, align_corners)


def _resized(input: Tensor, sizes: Any, factors: Any, mode: str, align_corners: bool | None) -> Tensor:
    ndim = input.ndim
    if ndim in (3, 4, 5):
        if mode in NEAREST:
            return getattr(aten, f"{NEAREST[mode]}{ndim - 2}d__vec")(input, sizes, factors)
        if mode == "area":
            return AREA[ndim](input, sizes)
        if mode in LINEAR:
            needed, op = LINEAR[mode]
            if ndim == needed:
                return getattr(aten, f"{op}__vec")(input, sizes, align_corners, factors)
            if mode != "bicubic":
                raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {needed}D input")
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
                              f"{ALL_MODES} (got {mode})")


def _deprecated(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


def upsample(input: Tensor, size: Any = None, scale_factor: Factors = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """An older name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Factors = None) -> Tensor:
    """`interpolate` in nearest mode."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Factors = None) -> Tensor:
    """`interpolate` in bilinear mode with aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """The input at positions in [-1, 1], which name the last dimension first."""
    if mode not in SAMPLING:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
                         f"got: '{mode}'")
    if padding_mode not in MARGINS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
                         f"but got: '{padding_mode}'")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired.", stacklevel=2)
        align_corners = False
    return aten.grid_sampler(input, grid, SAMPLING[mode], MARGINS[padding_mode], align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where affine maps take the positions of all pixels of images of a size."""
    sizes = tuple(int(n) for n in size)
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired.", stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(sizes) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  f"respectively. Got size {size}.")
    spatial = len(sizes) - 2
    if tuple(theta._a.shape[1:]) != (spatial, spatial + 1) or theta.ndim != 3:
        raise ValueError(f"Expected a batch of {spatial}D affine matrices of shape Nx{spatial}x{spatial + 1} for size "
                         f"{size}. Got {theta.shape}.")
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return aten.affine_grid_generator(theta, sizes, align_corners)
