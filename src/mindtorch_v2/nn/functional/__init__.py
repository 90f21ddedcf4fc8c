"""torch.nn.functional: layers as functions.

Functions that are an op and nothing else are not wrapped: `DIRECT` names the op, and the first use puts the compiled
op here, so that `F.linear(x, w, b)` is one call.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..._absent import refusing
from ..._dispatch.namespace import LOOKUPS, aten, find
from . import _reduction as _Reduction  # noqa: F401 (libraries ask it for numbers)
from .activation import (
    _get_softmax_dim,  # noqa: F401
    celu,
    elu,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from .attention import (
    _canonical_mask,  # noqa: F401
    _in_projection,  # noqa: F401
    _in_projection_packed,  # noqa: F401
    _mha_shape_check,  # noqa: F401
    _none_or_dtype,  # noqa: F401
    multi_head_attention_forward,
)
from .convolution import fold, unfold
from .dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from .loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    linear_cross_entropy,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from .margin import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .normalization import (
    _verify_batch_size,  # noqa: F401
    _verify_spatial_size,  # noqa: F401
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from .padding import pad
from .pooling import (
    _unpool_output_size,  # noqa: F401
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from .sparse import embedding, embedding_bag
from .vision import (
    MARGINS,
    SAMPLING,
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

# The modes of grid_sample, and the numbers that its op takes for them.
GRID_SAMPLE_INTERPOLATION_MODES, GRID_SAMPLE_PADDING_MODES = SAMPLING, MARGINS

_LOW_PRECISION = ("nn.functional.{0}: products of 8-bit and smaller floating point numbers are not part of this "
                  "runtime; use matmul")
scaled_grouped_mm = refusing("scaled_grouped_mm", NotImplementedError, _LOW_PRECISION.format("scaled_grouped_mm"))
scaled_mm = refusing("scaled_mm", NotImplementedError, _LOW_PRECISION.format("scaled_mm"))


def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """One product for each group of rows, whose ends are `offs`."""
    return aten._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


# Name here -> op.
DIRECT = {
    "bilinear": "bilinear",
    "celu_": "celu_",
    "channel_shuffle": "channel_shuffle",
    "conv1d": "conv1d",
    "conv2d": "conv2d",
    "conv3d": "conv3d",
    "conv_tbc": "conv_tbc",
    "conv_transpose1d": "conv_transpose1d",
    "conv_transpose2d": "conv_transpose2d",
    "conv_transpose3d": "conv_transpose3d",
    "cosine_similarity": "cosine_similarity",
    "elu_": "elu_",
    "gelu": "gelu",
    "hardshrink": "hardshrink",
    "hardtanh_": "hardtanh_",
    "leaky_relu_": "leaky_relu_",
    "linear": "linear",
    "logsigmoid": "log_sigmoid",
    "native_channel_shuffle": "native_channel_shuffle",
    "one_hot": "one_hot",
    "pairwise_distance": "pairwise_distance",
    "pixel_shuffle": "pixel_shuffle",
    "pixel_unshuffle": "pixel_unshuffle",
    "pdist": "pdist",
    "prelu": "prelu",
    "relu_": "relu_",
    "rrelu_": "rrelu_",
    "scaled_dot_product_attention": "scaled_dot_product_attention",
    "selu_": "selu_",
    "softplus": "softplus",
    "softshrink": "softshrink",
    "threshold_": "threshold_",
}
# Ops that PyTorch has in `torch._C._nn` and not in `torch`.
IN_C = ("gelu", "hardtanh_", "linear", "log_sigmoid", "one_hot", "scaled_dot_product_attention", "softplus",
        "softshrink")

# Names of other modules that PyTorch's module happens to have, and libraries take from it.
BORROWED = {name: module for module, names in {
    "nn.modules.utils": "_list_with_default _pair _single _triple",
    "overrides": "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic",
    "_jit_internal": "BroadcastingList1 BroadcastingList2 BroadcastingList3 boolean_dispatch",
    "_tensor": "Tensor",
}.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in BORROWED:
        return getattr(importlib.import_module(f"...{BORROWED[name]}", __name__), name)
    op = DIRECT.get(name)
    found = find(op) if op is not None else None
    if found is None:
        raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")
    for noted in LOOKUPS:
        noted(name, found)
    if op in IN_C:
        root = sys.modules[__name__.partition(".")[0]].__name__  # "torch" while the package stands in for it
        found.__module__ = f"{root}._C._nn"  # where pickle finds it again
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *DIRECT})


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "pad",
    "poisson_nll_loss",
    "relu",
    "relu6",
    "rms_norm",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

for _one in __all__:
    if getattr(globals().get(_one), "__module__", "").startswith(f"{__name__}."):
        globals()[_one].__module__ = __name__  # where programs find it
