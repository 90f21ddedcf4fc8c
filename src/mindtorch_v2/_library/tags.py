"""`torch.Tag`: marks of an op for PyTorch's compiler. They are kept and shown; nothing here reads them."""

from __future__ import annotations

from enum import Enum
from typing import Any

Tag = Enum("Tag", """core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace
    inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order
    nondeterministic_bitwise nondeterministic_seeded out pointwise pt2_compliant_tag reduction view_copy""")
Tag.__module__ = "torch"


def as_tags(tags: Any) -> tuple[Any, ...]:
    """One tag, several, or None, as a tuple; those that PyTorch derives behaviour from are refused."""
    listed = () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)
    for tag in listed:
        if tag in (Tag.inplace, Tag.out):
            raise NotImplementedError(f"torch.Tag.{tag.name}: ops that return an argument they have changed are not "
                                      "supported in this runtime; return None, with the argument in mutates_args")
    return listed
