"""Shapes of gradients of steps that broadcast."""

from __future__ import annotations

from typing import Any


def maybe_view(tensor: Any, size: Any, check_same_size: bool = True) -> Any:
    """The tensor in this shape; itself if it has it."""
    return tensor if check_same_size and tensor.shape == size else tensor.contiguous().view(size)


def maybe_unexpand(tensor: Any, old_size: Any, check_same_size: bool = True) -> Any:
    """The tensor summed over what `expand` has added to this shape."""
    return tensor if check_same_size and tensor.shape == old_size else tensor.sum_to_size(old_size)
