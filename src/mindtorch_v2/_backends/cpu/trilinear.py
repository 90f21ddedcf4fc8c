"""The product of three arrays over common dimensions, the basis of bilinear layers and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES

Array = Any
Labels = list[int]


def trilinear(i1: Array, i2: Array, i3: Array, expand1: list[int], expand2: list[int], expand3: list[int],
              sumdim: list[int], unroll_dim: int) -> Array:
    """Product of three arrays laid out over common dimensions (`expandN`: those that operand N lacks), summed."""
    total = i1.ndim + len(expand1)
    kept = [d for d in range(total) if d not in sumdim]
    sizes: dict[int, int] = {}
    operands = []
    for array, lacking in ((i1, expand1), (i2, expand2), (i3, expand3)):
        labels = [d for d in range(total) if d not in lacking]
        sizes.update(zip(labels, array.shape, strict=True))
        operands.append((array.astype(np.float32) if array.dtype in HALF_TYPES else array, labels))
    # The two with the smallest product go first, summed over dimensions that nothing else needs.
    last = min(range(3), key=lambda n: math.prod(sizes[d] for d in _needed(operands, n, kept)))
    needed = _needed(operands, last, kept)
    pair = [operand for n, operand in enumerate(operands) if n != last]
    made, labels = _product(*pair[0], *pair[1], needed, sizes)
    made, labels = _product(made, labels, *operands[last], kept, sizes)
    ordered = made.transpose([labels.index(d) for d in kept])
    return np.ascontiguousarray(ordered).astype(i1.dtype, copy=False)


def _needed(operands: list[tuple[Array, Labels]], last: int, kept: Labels) -> list[int]:
    """The dimensions of the product of all operands but one that the result or that one has."""
    present = {d for n, (_, labels) in enumerate(operands) if n != last for d in labels}
    return sorted(d for d in present if d in kept or d in operands[last][1])


def _product(a: Array, a_labels: Labels, b: Array, b_labels: Labels, kept: Labels,
             sizes: dict[int, int]) -> tuple[Array, list[int]]:
    """The product of two arrays, summed over the dimensions that are not kept, and the dimensions it has."""
    a, a_labels = _summed(a, a_labels, [*b_labels, *kept])
    b, b_labels = _summed(b, b_labels, [*a_labels, *kept])
    batch = [d for d in a_labels if d in b_labels and d in kept]
    both = [d for d in a_labels if d in b_labels and d not in kept]
    left = [d for d in a_labels if d not in b_labels]
    right = [d for d in b_labels if d not in a_labels]

    def extent(labels: Labels) -> int:
        return math.prod(sizes[d] for d in labels)

    first = a.transpose([a_labels.index(d) for d in batch + left + both])
    second = b.transpose([b_labels.index(d) for d in batch + both + right])
    first = first.reshape(extent(batch), extent(left), extent(both))
    second = second.reshape(extent(batch), extent(both), extent(right))
    made = np.matmul(first, second) if both else np.multiply(first, second)
    labels = batch + left + right
    return made.reshape([sizes[d] for d in labels]), labels


def _summed(a: Array, labels: Labels, others: Labels) -> tuple[Array, Labels]:
    alone = tuple(i for i, d in enumerate(labels) if d not in others)
    return (a.sum(alone), [d for d in labels if d in others]) if alone else (a, labels)
