"""The op table: one declaration per op, by family. Importing this package fills the registry.

Families that a simple program does not touch are loaded together when the first name is asked for that the others do
not have; this keeps `import mindtorch_v2` cheap. Functions are found by asking; the methods among them are named
here, because a `Tensor.__getattr__` that could ask would slow down every attribute of every tensor.
"""

from __future__ import annotations

import importlib

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
    create,
    dropout,
    embedding,
    indexing,
    join,
    loss,
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
    "attention",
    "convolution",
    "distance",
    "einsum",
    "embedding_bag",
    "fft",
    "foreach",
    "fused_optimizer",
    "gather",
    "grid",
    "linalg",
    "linalg_spectral",
    "loss_composites",
    "packed",
    "padding",
    "pooling",
    "rearrange",
    "recurrent",
    "recurrent_steps",
    "resize",
    "scan",
    "scatter",
    "search",
    "weight_norm",
)

LATE_METHODS = (
    "argwhere", "bincount", "cholesky", "cross", "cummax", "cummin", "cumprod", "cumprod_", "cumsum", "cumsum_",
    "det", "diag", "diag_embed", "diagflat", "diff", "gather", "histc", "histogram", "index_add", "index_add_",
    "index_copy", "index_copy_", "index_fill", "index_fill_", "index_reduce", "index_reduce_", "index_select",
    "inner", "inverse", "kron", "logcumsumexp", "logdet", "masked_fill", "masked_fill_", "masked_scatter",
    "masked_scatter_", "masked_select", "nonzero", "pinverse", "put", "put_", "qr", "scatter", "scatter_",
    "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "slogdet", "svd", "take", "take_along_dim",
    "trace", "tril", "tril_", "triu", "triu_", "unique", "unique_consecutive", "unsafe_chunk", "unsafe_split",
)


def _load() -> None:
    for family in LATE_FAMILIES:
        importlib.import_module(f"{__name__}.{family}")


LATE.append(_load)

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
    "create",
    "dropout",
    "embedding",
    "indexing",
    "join",
    "loss",
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
