"""NumPy's ways of splitting a tensor into views: `tensor_split` and its kin."""

from __future__ import annotations

import itertools
from typing import Any

from .._backends.base import to_host
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dtype import int64
from .._shape import wrap_dim
from .._tensor import Tensor


def _cut(self: Tensor, cuts: list[int], dim: int) -> tuple[Tensor, ...]:
    return tuple(aten.slice(self, dim, start, max(start, end) if end >= 0 else end, 1)
                 for start, end in itertools.pairwise(cuts))


def _tensor_split_sections(self: Tensor, sections: int, dim: int) -> tuple[Tensor, ...]:
    if not self._a.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    extent = self._a.shape[wrap_dim(dim, self.ndim)]
    sizes = [extent // sections + (i < extent % sections) for i in range(sections)]
    return _cut(self, [0, *itertools.accumulate(sizes)], dim)


def _tensor_split_indices(self: Tensor, indices: Any, dim: int) -> tuple[Tensor, ...]:
    return _cut(self, [0, *indices, self._a.shape[wrap_dim(dim, self.ndim)]], dim)


def _tensor_split_by_tensor(self: Tensor, tensor_indices_or_sections: Tensor, dim: int) -> tuple[Tensor, ...]:
    given = tensor_indices_or_sections
    if given.dtype is not int64:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                           f"{pretty(given.dtype)}")
    if given.ndim > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                           f"one-dimensional tensor, but got a tensor with {given.ndim} dims")
    form = _tensor_split_indices if given.ndim else _tensor_split_sections
    return form(self, to_host(given._a).tolist(), dim)


declare("tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]", composite=_tensor_split_sections,
        where="n")
declare("tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]", composite=_tensor_split_indices,
        where="n")
declare("tensor_split.tensor_indices_or_sections(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> "
        "Tensor[]", composite=_tensor_split_by_tensor, where="n")


@choose("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, sections: int | None = None,
                 indices: Any = None, tensor_indices_or_sections: Tensor | None = None) -> tuple[Tensor, ...]:
    """Parts of almost equal size, or parts between indices; either may be given by its own name."""
    given = [one for one in (indices_or_sections, sections, indices, tensor_indices_or_sections) if one is not None]
    if len(given) != 1:
        raise TypeError("tensor_split() takes one of indices_or_sections, sections, indices and "
                        f"tensor_indices_or_sections, but got {len(given)} of them")
    indices_or_sections = given[0]
    if isinstance(indices_or_sections, Tensor):
        return aten.tensor_split__tensor_indices_or_sections(input, indices_or_sections, dim)
    form = aten.tensor_split__sections if isinstance(indices_or_sections, int) else aten.tensor_split__indices
    return form(input, indices_or_sections, dim)


def _splitter(name: str, at: int, least: int) -> None:
    """`hsplit` and its kin: `tensor_split` along one dimension, into equal parts if a number is given."""

    def along(self: Tensor) -> int:
        if self.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
                               f"{self.ndim} dimensions!")
        return at if self.ndim > 1 else 0

    def by_sections(self: Tensor, sections: int) -> tuple[Tensor, ...]:
        dim = along(self)
        extent = self._a.shape[dim]
        if sections == 0 or extent % sections:
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                               f"{extent} is not divisible by the split_size {sections}!")
        return aten.tensor_split__sections(self, sections, dim)

    declare(f"{name}.int(Tensor self, int sections) -> Tensor[]", composite=by_sections, where="n")
    declare(f"{name}.array(Tensor self, int[] indices) -> Tensor[]", where="n",
            composite=lambda self, indices: aten.tensor_split__indices(self, indices, along(self)))

    @choose(name)
    def face(input: Tensor, indices_or_sections: Any = None, *, sections: Any = None,
             indices: Any = None) -> tuple[Tensor, ...]:
        given = [one for one in (indices_or_sections, sections, indices) if one is not None]
        if len(given) != 1:
            raise TypeError(f"{name}() takes sections or indices, but got {len(given)} arguments for them")
        form = "int" if isinstance(given[0], int) else "array"
        return getattr(aten, f"{name}__{form}")(input, given[0])

    face.__name__ = face.__qualname__ = name
    face.__doc__ = f"numpy's {name}: `tensor_split` along dimension {at}."


_splitter("hsplit", 1, 1)
_splitter("vsplit", 0, 2)
_splitter("dsplit", 2, 3)
