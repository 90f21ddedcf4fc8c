"""`_grouped_mm`: one product for each group of rows, as a mixture of experts has them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .._backends.base import to_host
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._dtype import bfloat16, float16, float32, int32
from .._tensor import Tensor


def _ends(first: Tensor, second: Tensor, offs: Tensor | None) -> list[int]:
    """Where groups begin and end along the dimension that is cut."""
    if offs is None or offs.ndim != 1 or offs.dtype is not int32:
        raise RuntimeError("grouped_mm: offs must be a 1-dimensional int32 tensor if an operand has 2 dimensions"
                           if offs is not None else "grouped_mm: offs is needed if an operand has 2 dimensions")
    ends = [0, *to_host(offs._a).tolist()]
    extent = first.shape[-2] if second.ndim == 3 else second.shape[-1] if first.ndim == 3 else first.shape[-1]
    groups = second.shape[0] if second.ndim == 3 else first.shape[0] if first.ndim == 3 else len(ends) - 1
    if len(ends) - 1 != groups:
        raise RuntimeError(f"grouped_mm: offs has {len(ends) - 1} entries for {groups} groups")
    if any(end < begin for begin, end in pairwise(ends)) or ends[-1] > extent:
        raise RuntimeError(f"grouped_mm: offs must not decrease nor exceed {extent}, but is {ends[1:]}")
    return ends


def _grouped_mm(self: Tensor, mat2: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: Any) -> Tensor:
    for name, operand in (("mat_a", self), ("mat_b", mat2)):
        if operand.dtype not in (float32, bfloat16, float16):
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                               f"{str(operand.dtype).removeprefix('torch.').capitalize()}")
        if operand.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if self.ndim == mat2.ndim == 3:
        result = aten.bmm(self, mat2)
    else:
        ends = _ends(self, mat2, offs)
        groups = list(enumerate(pairwise(ends)))
        if self.ndim == mat2.ndim == 2:
            parts = [aten.mm(aten.slice(self, 1, a, b), aten.slice(mat2, 0, a, b)) for _, (a, b) in groups]
            result = aten.stack(parts)
        elif mat2.ndim == 3:
            parts = [aten.mm(aten.slice(self, 0, a, b), aten.select(mat2, 0, i)) for i, (a, b) in groups]
            result = aten.cat(_with_rest(parts, self.shape[0] - ends[-1], 0), 0)
        else:
            parts = [aten.mm(aten.select(self, 0, i), aten.slice(mat2, 1, a, b)) for i, (a, b) in groups]
            result = aten.cat(_with_rest(parts, mat2.shape[1] - ends[-1], 1), 1)
    if bias is not None:
        result = aten.add(result, bias)
    return result if out_dtype is None else result.to(out_dtype)


def _with_rest(parts: list[Tensor], count: int, dim: int) -> list[Tensor]:
    """Zeros for what no group has."""
    if not count:
        return parts
    shape = list(parts[0].shape)
    shape[dim] = count
    return [*parts, parts[0].new_zeros(shape)]


declare("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) "
        "-> Tensor", composite=_grouped_mm, where="f")
