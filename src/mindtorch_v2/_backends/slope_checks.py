"""A check of slopes, for every device, if a gradient is computed from the result of an in-place op."""

from __future__ import annotations

from typing import Any

__all__ = ["refuse_negative_slope"]


def refuse_negative_slope(name: str, slope: Any) -> None:
    """Refuse a negative slope: an element below zero could come from either side."""
    if slope < 0:
        raise RuntimeError(f"In-place {name} backward calculation is triggered with a negative slope which is not "
                           f"supported: the result does not tell the sign of the operand. Call {name} without "
                           "inplace=True")
