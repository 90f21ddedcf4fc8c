"""Checks of arguments that name slices, for every device."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch.promotion import pretty
from .._dtype import FROM_NUMPY
from .._shape import wrap_dim

__all__ = ["copied_dim"]


def copied_dim(a: Any, dim: int, index: Any, source: Any) -> int:
    """The dimension of `index_copy`, counted from 0."""
    at = wrap_dim(dim, a.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim != a.ndim and source.ndim and a.ndim:
        raise IndexError(f"index_copy_(): source has {source.ndim} dimensions and self has {a.ndim}; they must match, "
                         "unless one has none")
    if index.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {_name(index)}")
    if a.dtype != source.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got (self) "
                           f"{_name(a)} and (source) {_name(source)}")
    whole, added = ((*one.shape[:at], *one.shape[at + 1:]) for one in (a, source))
    if whole != added:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, whole))} at dimension {at} and source slice shape: {' '.join(map(str, added))} at "
            f"dimension {at}."
        )
    if source.ndim and index.size != source.shape[at]:
        raise IndexError(f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
                         f"({source.shape[at]})")
    return at


def _name(array: Any) -> str:
    return pretty(FROM_NUMPY[array.dtype])
