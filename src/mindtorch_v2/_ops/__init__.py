"""The op table: one declaration per op, by family. Importing this package fills the registry.

Families that a simple program does not touch are loaded together when the first name is asked for that the others do
not have; this keeps `import mindtorch_v2` cheap. Functions are found by asking; the few methods among them are named
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
    gather,
    indexing,
    join,
    loss,
    matmul,
    normalization,
    padding,
    pointwise,
    random,
    reduce,
    scan,
    scatter,
    search,
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
    "grid",
    "linalg",
    "linalg_spectral",
    "loss_composites",
    "packed",
    "pooling",
    "rearrange",
    "recurrent",
    "recurrent_steps",
    "resize",
    "weight_norm",
)

LATE_METHODS = (
    "cholesky", "cross", "det", "inner", "inverse", "kron", "logdet", "pinverse", "qr", "slogdet", "svd",
    "unsafe_chunk", "unsafe_split",
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
    "gather",
    "indexing",
    "join",
    "loss",
    "matmul",
    "normalization",
    "padding",
    "pointwise",
    "random",
    "reduce",
    "scan",
    "scatter",
    "search",
    "shape",
    "softmax",
    "sort",
    "statistics",
    "view",
]
