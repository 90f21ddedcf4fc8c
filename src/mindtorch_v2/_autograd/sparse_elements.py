"""Where the elements of sparse tensors are, for checks that change them one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.sparse import COO, SparseArray
from .._dispatch.namespace import aten
from .._tensor import Tensor, strided, wrap


def positions(array: SparseArray) -> Any:
    """The number of each stored element among all elements of the tensor, row by row."""
    count = array.values.size
    numbers = np.arange(1, count + 1, dtype=np.float64).reshape(array.values.shape)
    like = SparseArray(array.indices, numbers, array.shape, array.coalesced, array.layout)
    dense = aten.to_dense(wrap(like))._a.reshape(-1)
    found = np.zeros(count, np.int64)
    places = np.flatnonzero(dense)
    found[dense[places].astype(np.int64) - 1] = places
    return found


def filled(tensor: Tensor) -> Tensor:
    """The same tensor with every element stored, also those that are zero; blocks stay as they are."""
    array: Any = tensor._a
    if array.layout == COO:
        dims = len(array.indices)
        whole = aten.ones(array.shape[:dims])
        indices = aten.to_sparse(whole)._a.indices
        values = aten.to_dense(aten.detach(tensor))._a[tuple(indices)]
        made = wrap(SparseArray(indices, values, array.shape, True, COO))
    elif array.values.ndim == 1:
        numbers = aten.to_sparse(aten.reshape(aten.arange(1, array.size + 1), array.shape), layout=tensor.layout)._a
        values = aten.to_dense(aten.detach(tensor))._a.reshape(-1)[numbers.values - 1]
        made = wrap(SparseArray(numbers.indices, values, array.shape, True, array.layout))
    else:
        return tensor
    assert tensor.layout is not strided
    return made.requires_grad_(tensor.requires_grad)
