"""`torch._C._nn`: how `Module.to` reads its arguments, and the ops behind `torch.nn.functional`.

They are the ops themselves, without the checks and defaults of the functions, and take `out=` where PyTorch's do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch.namespace import find
from .._utils import _flatten_dense_tensors as flatten_dense_tensors
from .._utils import _unflatten_dense_tensors as unflatten_dense_tensors
from ..nn import functional
from ..nn.modules._convert import parse_to

__all__ = ["_parse_to", "flatten_dense_tensors", "unflatten_dense_tensors"]

# Ops that PyTorch has here and not in `torch`.
_OPS = """
    _pad_circular _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d
    adaptive_max_pool3d avg_pool2d avg_pool3d binary_cross_entropy col2im cross_entropy_loss elu elu_
    fractional_max_pool2d fractional_max_pool3d gelu gelu_ glu hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh
    hardtanh_ huber_loss im2col l1_loss leaky_relu leaky_relu_ linear log_sigmoid max_pool2d_with_indices
    max_pool3d_with_indices max_unpool2d max_unpool3d mish mish_ mse_loss multi_margin_loss multilabel_margin_loss
    nll_loss nll_loss2d nll_loss_nd one_hot pad pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d relu6
    relu6_ replication_pad1d replication_pad2d replication_pad3d rrelu_with_noise rrelu_with_noise_
    scaled_dot_product_attention silu silu_ slow_conv3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d
    slow_conv_transpose3d smooth_l1_loss soft_margin_loss softplus softshrink thnn_conv2d upsample_bicubic2d
    upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
"""
OPS = frozenset(_OPS.split())


# Losses, and where their `reduction` stands: unlike the op's, it is 0 (none) here unless given.
UNREDUCED = {"mse_loss": 2, "l1_loss": 2, "smooth_l1_loss": 2, "huber_loss": 2, "soft_margin_loss": 2,
             "multilabel_margin_loss": 2, "binary_cross_entropy": 3, "nll_loss": 3, "nll_loss2d": 3, "nll_loss_nd": 3,
             "cross_entropy_loss": 3, "multi_margin_loss": 5}


def _unreduced(op: Callable[..., Any], position: int) -> Callable[..., Any]:
    @functools.wraps(op)
    def face(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= position:
            kwargs.setdefault("reduction", 0)
        return op(*args, **kwargs)

    return face


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, whether it may happen later, and memory format.

    >>> _parse_to("cpu")
    (device(type='cpu'), None, False, None)
    """
    where, kind, non_blocking, memory_format = parse_to(args, dict(kwargs))
    return where, kind, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    if name in functional.IN_C:  # the very function that `torch.nn.functional` has
        return getattr(functional, next(public for public, op in functional.DIRECT.items() if op == name))
    found = find(name) if name in OPS else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in UNREDUCED:
        found = globals()[name] = _unreduced(found, UNREDUCED[name])
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *OPS})
