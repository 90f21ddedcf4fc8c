"""The dtypes that PyTorch's kernels refuse although ours could compute them, op by op.

A program must not rely on something that PyTorch does not do, so these ops check the dtype of their first array. Ops
whose own code checks it, and ops that fail by themselves, are not listed. The oracle's tests compare with PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._backends.cpu.providers import around
from .._dtype import FROM_NUMPY
from .promotion import pretty

# b: bool, u: uint8, s: the other small integers, l: int64, h: float16 and bfloat16, c: complex
KINDS = {"bool": "b", "uint8": "u", "int8": "s", "int16": "s", "int32": "s", "int64": "l", "float16": "h",
         "bfloat16": "h", "complex64": "c", "complex128": "c"}
# dtypes, the name of PyTorch's kernel, the ops
_TABLE = """
busl c _adaptive_avg_pool3d:adaptive_avg_pool3d_cpu _adaptive_avg_pool2d:adaptive_avg_pool2d adaptive_max_pool2d
busl c adaptive_max_pool3d:adaptive_max_pool3d_cpu max_unpool2d max_unpool3d
busl c native_batch_norm:batch_norm native_group_norm:GroupNormKernelImpl native_layer_norm:LayerNormKernelImpl
busl c nll_loss_forward:nll_loss_out_frame nll_loss2d_forward:nll_loss2d_forward_out_frame
busl c grid_sampler_2d:grid_sampler_2d_cpu_kernel_impl grid_sampler_3d:grid_sampler3d_cpu
buslhc multi_margin_loss:multi_margin_loss_cpu_kernel histogram.bins_tensor:histogramdd
buslhc multilabel_margin_loss_forward:multilabel_margin_loss_forward_out_frame
buslh _cholesky_solve_helper:cholesky_solve_cpu cholesky_inverse:cholesky_inverse_out_cpu
buslh triangular_solve:triangular_solve_cpu geqrf:geqrf_cpu
bus c avg_pool2d
bus hc avg_pool3d:avg_pool3d_out_frame
b s lc upsample_nearest1d.vec:compute_indices_weights_nearest upsample_nearest2d.vec:compute_indices_weights_nearest
b s lc upsample_nearest3d.vec:compute_indices_weights_nearest upsample_nearest1d:compute_indices_weights_nearest
b s lc upsample_nearest2d:compute_indices_weights_nearest upsample_nearest3d:compute_indices_weights_nearest
b s lc _upsample_nearest_exact1d.vec:compute_indices_weights_nearest
b s lc _upsample_nearest_exact2d.vec:compute_indices_weights_nearest
b s lc _upsample_nearest_exact3d.vec:compute_indices_weights_nearest
c upsample_linear1d.vec:compute_indices_weights_linear upsample_bilinear2d.vec:compute_indices_weights_linear
c upsample_trilinear3d.vec:compute_indices_weights_linear upsample_bicubic2d.vec:compute_indices_weights_cubic
c max_pool2d_with_indices:max_pool2d max_pool3d_with_indices:max_pool3d binary_cross_entropy logit:logit_cpu
c round:round_vml_cpu round.decimals:round_cpu unique_consecutive:unique frac:frac_cpu
h _cdist_forward:cdist _pdist_forward:pdist
usl im2col:im2col_out_cpu
b c threshold:threshold_cpu
b reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
b linalg_cross:cross _trilinear:bmm
c fractional_max_pool2d:fractional_max_pool2d_out_frame fractional_max_pool3d:fractional_max_pool3d_out_frame
busl max_pool2d_with_indices_backward:max_pool2d_backward max_pool3d_with_indices_backward:max_pool3d_backward
"""
# Without elements, these do not reach their kernel.
EMPTY_IS_FINE = frozenset({"_adaptive_avg_pool2d"})


def _read(table: str) -> dict[str, tuple[str, str]]:
    rules: dict[str, tuple[str, str]] = {}
    for line in table.split("\n"):
        words = line.split()
        kinds = "".join(word for word in words if set(word) <= set("buslhc"))
        for entry in words[sum(set(word) <= set("buslhc") for word in words):]:
            key, _, kernel = entry.partition(":")
            rules[key] = kernel or key.partition(".")[0].lstrip("_"), kinds
    return rules


REFUSED = _read(_TABLE)


def unsupported(kernel: str, array_dtype: Any) -> NotImplementedError:
    """PyTorch's error for a dtype."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{pretty(FROM_NUMPY[array_dtype])}'")


def choosy(key: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an op, with a check of its first array's dtype if PyTorch has one."""
    if key not in REFUSED:
        return kernel
    name, kinds = REFUSED[key]
    refused = frozenset(array.num for array, kind in FROM_NUMPY.items() if KINDS.get(kind.name, "-") in kinds)

    not_empty = key.partition(".")[0] not in EMPTY_IS_FINE

    def choosing(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(array: Any, *rest: Any) -> Any:
            if array.dtype.num in refused and (array.size or not_empty):
                raise unsupported(name, array.dtype)
            return function(array, *rest)

        return checked

    return around(kernel, choosing)
