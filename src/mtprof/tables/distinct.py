"""The distinct combinations of several columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_DENSE = 1 << 22  # up to here, distinct values are found with a table instead of sorting


def distinct(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct combinations of some columns in order; returns the number of each row and their first rows.

    Not `np.unique(..., axis=1)`: that compares structures, which is slower. Also NumPy then calls Python code whose
    errors become a TypeError, even a Ctrl-C that comes at that moment.

    >>> [part.tolist() for part in distinct([np.array([2, 1, 2]), np.array([5, 5, 5])])]
    [[1, 0, 1], [1, 0]]
    """
    count = len(columns[0])
    code, size = np.zeros(count, np.int64), 1
    if not count:
        return code, code
    for column in columns:
        low, high = int(column.min()), int(column.max())
        span = high - low + 1
        if span == 1:
            continue
        if span > _DENSE:
            values, column = np.unique(column, return_inverse=True)
            low, span = 0, len(values)
        code, size = code * span + (column.astype(np.int64) - low), size * span
        if size > _DENSE:
            values, code = np.unique(code, return_inverse=True)
            size = len(values)
    present = np.zeros(size, bool)
    present[code] = True
    code = (np.cumsum(present) - 1)[code]
    row = np.zeros(int(code.max()) + 1, np.int64)
    row[code[::-1]] = np.arange(count)[::-1]
    return code, row
