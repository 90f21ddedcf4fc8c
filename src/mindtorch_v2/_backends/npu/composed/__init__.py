"""Ops that take more than one call of an operator, or whose results are computed first.

Each function is the kernel of the op in its decorator, with the op's arguments in order: arrays of the NPU, everything
else unchanged. Numbers in place of tensors are 0-d arrays of the host.
"""

from __future__ import annotations

from . import (  # noqa: F401  (importing them fills the table)
    activations,
    arithmetic,
    functions,
    losses,
    norms,
    optimizers,
    order,
    places,
    products,
    random_numbers,
    resampling,
    scaling,
    sums,
    truth,
    views,
    windows,
)
from .lists import foreach
from .random_numbers import draw
from .registry import COMPOSED, HOST, TO_DEVICE

__all__ = ["COMPOSED", "HOST", "TO_DEVICE", "draw", "foreach"]
