"""How losses are reduced: names, the numbers ops take, and the old `size_average`/`reduce` pair."""

from __future__ import annotations

import warnings

NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number an op takes for a name."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
        reduction = "mean"
    if reduction not in NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The name that the old pair of flags stands for; a flag left out counts as True."""
    average = size_average is None or size_average
    name = "none" if reduce is not None and not reduce else "mean" if average else "sum"
    if emit_warning:
        warnings.warn("size_average and reduce args will be deprecated, please use "
                      f"reduction='{name}' instead.", stacklevel=3)
    return name


def resolve(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction's name, whichever way it was given."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)
