"""The op table: one declaration per op, by family. Importing this package fills the registry.

Families that a simple program does not touch are loaded together when the first name is asked for that the others do
not have; this keeps `import mindtorch_v2` cheap. Functions are found by asking; the methods among them are named
here, because a `Tensor.__getattr__` that could ask would slow down every attribute of every tensor.
"""

from __future__ import annotations

import importlib

from .._backends.base import STAND_INS, Kernel
from .._dispatch.namespace import LATE
from . import (
    activation,
    aliases,
    arithmetic,
    binary,
    clamp,
    compare,
    complex,
    convert,
    copying,
    create,
    dropout,
    embedding,
    indexing,
    join,
    loss,
    loss_composites,
    matmul,
    normalization,
    pointwise,
    random,
    reduce,
    shape,
    softmax,
    sort,
    statistics,
    view,
)

LATE_FAMILIES = (
    "amp",
    "attention",
    "conv_tbc",
    "convolution",
    "ctc",
    "differences",
    "distance",
    "einsum",
    "embedding_bag",
    "encoder_layer",
    "fake_quantize",
    "fft",
    "foreach",
    "fractional_pooling",
    "fused_optimizer",
    "gather",
    "grid",
    "grouped",
    "linalg",
    "linalg_functions",
    "linalg_lu",
    "linalg_spectral",
    "margin",
    "numeric",
    "packed",
    "padding",
    "pooling",
    "random_slopes",
    "rearrange",
    "recurrent",
    "recurrent_steps",
    "resize",
    "resize_smooth",
    "sampling",
    "scan",
    "scatter",
    "search",
    "sparse",
    "special",
    "spectrogram",
    "splitting",
    "view_forms",
    "weight_norm",
)

LATE_METHODS = (
    "_indices", "_nnz", "_values", "coalesce", "indices", "is_coalesced", "sparse_mask", "to_sparse", "to_sparse_coo",
    "values", "_coalesced_", "ccol_indices", "col_indices", "crow_indices", "row_indices", "to_sparse_csc",
    "to_sparse_csr",
    "argwhere", "as_strided_", "as_strided_scatter", "bincount", "cholesky", "cholesky_inverse", "cholesky_solve",
    "corrcoef", "cov", "cross", "cummax", "cummin", "cumprod", "cumprod_", "cumsum", "cumsum_", "det", "diag",
    "diag_embed", "diagflat", "diff", "dsplit", "fill_diagonal_", "float_power_", "frexp", "gather", "geqrf",
    "hash_tensor", "histc", "histogram", "hsplit", "igamma", "igamma_", "igammac", "igammac_", "index_add",
    "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_reduce", "index_reduce_",
    "index_select", "inner", "inverse", "istft", "kron", "logcumsumexp", "logdet", "lu", "lu_solve", "masked_fill",
    "masked_fill_", "masked_scatter", "masked_scatter_", "masked_select", "matrix_exp", "mvlgamma", "mvlgamma_",
    "nonzero", "nonzero_static", "orgqr", "ormqr", "pinverse", "polygamma_", "put", "put_", "qr", "renorm",
    "renorm_", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_",
    "slice_inverse", "slogdet", "squeeze_", "stft", "sum_to_size", "svd", "swapaxes_", "swapdims_", "t_", "take",
    "take_along_dim", "tensor_split", "trace", "transpose_", "triangular_solve", "tril", "tril_", "triu", "triu_",
    "unique", "unique_consecutive", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_",
    "vsplit",
)


def _load() -> None:
    for family in LATE_FAMILIES:
        importlib.import_module(f"{__name__}.{family}")


LATE.append(_load)


def _stand_in(key: str) -> Kernel | None:
    from . import stand_ins

    return stand_ins.find(key)


STAND_INS.append(_stand_in)

__all__ = [
    "LATE_FAMILIES",
    "LATE_METHODS",
    "activation",
    "aliases",
    "arithmetic",
    "binary",
    "clamp",
    "compare",
    "complex",
    "convert",
    "copying",
    "create",
    "dropout",
    "embedding",
    "indexing",
    "join",
    "loss",
    "loss_composites",
    "matmul",
    "normalization",
    "pointwise",
    "random",
    "reduce",
    "shape",
    "softmax",
    "sort",
    "statistics",
    "view",
]
