"""Functions of the values of sparse data, with the same places."""

from __future__ import annotations

from typing import Any

from ..._dispatch.namespace import aten
from ..._dtype import bool_
from ..._tensor import sparse_coo, sparse_csr


def with_values(data: Any, values: Any) -> Any:
    """Other values in the places of a sparse tensor."""
    if data.layout == sparse_coo:
        return aten.sparse_coo_tensor(data.indices(), values, data.shape, is_coalesced=True)
    return aten.sparse_csr_tensor(data.crow_indices(), data.col_indices(), values, data.shape)


def of_values(function: Any, *operands: Any) -> Any:
    """A function of operands; where they are sparse, of their values."""
    sparse = [one for one in operands if getattr(one, "layout", None) in (sparse_coo, sparse_csr)]
    if not sparse:
        return function(*operands)
    made = function(*[one.values() if any(one is other for other in sparse) else one for one in operands])
    return with_values(sparse[0], made)


def at_places(dense: Any, places: Any) -> Any:
    """The elements of dense data at the places that a sparse tensor has, in its layout."""
    values = places.values()
    held = with_values(places, aten.ones_like(values, dtype=bool_)).to_dense()
    return with_values(places, dense[held])
