"""Rounding to the values that a quantized tensor could hold, for training that prepares for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.base import placed, to_host
from .._dispatch.namespace import aten
from .._dispatch.promotion import FLOAT_DTYPES
from .._dispatch.registry import choose, declare
from .._dtype import FROM_NUMPY
from .._shape import wrap_dim
from .._tensor import Tensor, wrap


def _rounded(a: Any, scale: Any, zero_point: Any, low: int, high: int) -> tuple[Any, Any]:
    """The representable values nearest to the elements, and which elements are in range."""
    if a.dtype not in FLOAT_DTYPES or a.dtype.kind == "c":
        raise RuntimeError(f"fake_quantize: expected a floating point tensor, got {FROM_NUMPY[a.dtype]}")
    if low > high:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    if np.any(zero_point < low) or np.any(zero_point > high):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    wide = a.astype(np.float32) if a.dtype.itemsize == 2 else a
    inverse = (np.float32(1.0) / scale).astype(np.float32)
    level = np.rint(wide * inverse) + zero_point
    inside = (level >= low) & (level <= high)
    # In float32 whatever the dtype, as in PyTorch.
    return ((np.clip(level, low, high) - zero_point).astype(np.float32) * scale).astype(a.dtype), inside


def _per_tensor(a: Any, scale: Any, zero_point: Any, low: int, high: int) -> tuple[Any, Any]:
    return _rounded(a, np.float32(scale), np.float32(zero_point), low, high)


def _per_channel(a: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> tuple[Any, Any]:
    at = wrap_dim(axis, a.ndim)
    if scale.ndim != 1 or zero_point.ndim != 1 or len(scale) != len(zero_point):
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if len(scale) != a.shape[at]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    shape = tuple(-1 if d == at else 1 for d in range(a.ndim))
    return _rounded(a, scale.astype(np.float32).reshape(shape), zero_point.astype(np.float32).reshape(shape), low, high)


def _backward(grads: Any, result1: Any) -> Any:
    # Rounding passes gradients through; clipping stops them.
    return grads[0] * aten.detach(result1)


declare("fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
        "int quant_max) -> (Tensor output, Tensor mask)", cpu=_per_tensor, where="n", differentiable=(0,),
        grad={"self": _backward})
declare("fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
        "int quant_min, int quant_max) -> (Tensor output, Tensor mask)", cpu=_per_channel, where="n",
        differentiable=(0,), grad={"self": _backward})


def _quantized(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Tensor:
    return aten.fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)[0]


def _quantized_by_tensors(self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int) -> Tensor:
    return _quantized(self, aten.item(scale), aten.item(zero_point), quant_min, quant_max)


def _quantized_by_channel(self: Tensor, *rest: Any) -> Tensor:
    return aten.fake_quantize_per_channel_affine_cachemask(self, *rest)[0]


_LEVELS = "int quant_min, int quant_max) -> Tensor"
declare(f"fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, {_LEVELS}", composite=_quantized,
        where="n")
declare(f"fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, {_LEVELS}",
        composite=_quantized_by_tensors, where="n")
declare(f"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, {_LEVELS}",
        composite=_quantized_by_channel, where="n")


@choose("fake_quantize_per_tensor_affine", where="f")
def fake_quantize_per_tensor_affine(input: Tensor, scale: Any, zero_point: Any, quant_min: int,
                                    quant_max: int) -> Tensor:
    """Elements rounded to multiples of `scale` within the range of the levels."""
    tensors = isinstance(scale, Tensor)
    form = aten.fake_quantize_per_tensor_affine__tensor_qparams if tensors else (
        aten.fake_quantize_per_tensor_affine__default)
    return form(input, scale, zero_point, quant_min, quant_max)


@choose("fake_quantize_per_channel_affine", where="f")
def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                                     quant_max: int) -> Tensor:
    """The same with a scale of its own for every slice of a dimension."""
    return aten.fake_quantize_per_channel_affine__default(input, scale, zero_point, axis, quant_min, quant_max)


@choose("batch_norm_update_stats", where="f")
def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                            momentum: float) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel; running estimates that are given move towards them."""
    x = to_host(input._a)
    others = tuple(d for d in range(x.ndim) if d != 1)
    count = x.size // max(x.shape[1], 1)
    wide = x.astype(np.float64)
    mean, variance = wide.mean(others), wide.var(others)
    for running, fresh in ((running_mean, mean), (running_var, variance * count / max(count - 1, 1))):
        if running is not None:
            moved = (1 - momentum) * to_host(running._a) + momentum * fresh
            aten.copy_(running, wrap(moved.astype(running._a.dtype)))
    return (wrap(placed(mean.astype(x.dtype), input.device)), wrap(placed(variance.astype(x.dtype), input.device)))
