"""The op table: one declaration per op, by family. Importing this package fills the registry.

Families that a simple program does not touch are loaded when a name is asked for that only they have; this keeps
`import mindtorch_v2` cheap. Functions are found by asking; the methods among them are put on Tensor at import, because
a `Tensor.__getattr__` that could ask would slow down every attribute of every tensor.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from typing import Any

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
from .late_names import NAMES

LATE_FAMILIES = (
    "amp",
    "attention",
    "compiled_forms",
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
    "linalg_ldl",
    "linalg_lu",
    "linalg_reflections",
    "linalg_spectral",
    "margin",
    "numeric",
    "packed",
    "packed_weights",
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

class _Late:
    """Who has what is written down in `late_names`, which `make docs` writes."""

    def __init__(self) -> None:
        self._left = dict.fromkeys(LATE_FAMILIES)

    @functools.cached_property
    def _families(self) -> dict[str, str]:
        return {name: family for family, names in NAMES.items() for name in names.split()}

    def families(self) -> dict[str, str]:
        return self._families

    def missing(self, name: str | None) -> list[str]:
        if name is None:
            return list(self._left)
        found = self._families.get(name) or (self._families.get(name[:-1]) if name.endswith("_") else None)
        return [found] if found in self._left else []

    def load(self, families: Iterable[str]) -> None:
        for family in families:
            importlib.import_module(f"{__name__}.{family}")
            self._left.pop(family, None)


LATE.append(_Late())


def __getattr__(name: str) -> Any:
    # `torch._ops` is also where programs find the classes of ops.
    if name in ("HigherOrderOperator", "OpOverload", "OpOverloadPacket", "_OpNamespace"):
        return getattr(importlib.import_module("..ops", __package__), name)
    raise AttributeError(f"module 'torch._ops' has no attribute '{name}'")


def _stand_in(key: str) -> Kernel | None:
    from . import stand_ins

    return stand_ins.find(key)


STAND_INS.append(_stand_in)

__all__ = [
    "LATE_FAMILIES",
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
