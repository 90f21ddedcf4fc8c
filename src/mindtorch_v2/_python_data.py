"""Nested Python data as a tensor: its sizes, type and values, with PyTorch's errors for data that is not one."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ._dtype import COMPLEX, FLOAT, INTEGER, DefaultDtype, bool_, dtype, dtype_of_array, int64, promote_types
from ._tensor import Tensor
from ._warn import warn_once

NUMBERS = frozenset({bool, int, float, complex})
MAX_DIMENSIONS = 128  # PyTorch's limit for nests of Python data


class Nest:
    """Data for a tensor, inspected once: its `sizes`, and the types of its items, `kinds`."""

    def __init__(self, data: Any) -> None:
        if isinstance(data, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        self.data = data
        self.kinds: set[Any] = set()
        self.sizes = [] if type(data) in NUMBERS else _sizes(data)
        if self.sizes:
            self._look(data, 0)
        else:
            self._note(data)
        self.empty = 0 in self.sizes

    def _look(self, data: Any, depth: int) -> None:
        """Note the items of one sequence, which must be as long as the first at this depth."""
        if (isinstance(data, Tensor) and data.ndim) or (not isinstance(data, (list, tuple)) and _is_sequence(data)):
            data = list(data)
        elif not isinstance(data, (list, tuple)):
            raise TypeError("not a sequence")
        if len(data) != self.sizes[depth]:
            raise ValueError(f"expected sequence of length {self.sizes[depth]} at dim {depth} (got {len(data)})")
        if depth + 1 < len(self.sizes):
            for value in data:
                if type(value) is np.ndarray and value.shape == tuple(self.sizes[depth + 1:]):
                    warn_once("Creating a tensor from a list of numpy.ndarrays is extremely slow. Make one array of it "
                              "first, with numpy.array().")
                    self.kinds.add(value.dtype.type)
                else:
                    self._look(value, depth + 1)
            return
        types = set(map(type, data))
        if types <= NUMBERS:
            self.kinds |= types
        else:
            for value in data:
                self._note(value)

    def _note(self, value: Any) -> None:
        """A tensor counts as a number of its dtype, whatever its sizes."""
        self.kinds.add(value.dtype if isinstance(value, Tensor) else type(value))

    def kind(self) -> dtype:
        """The type that holds all of the data."""
        if self.empty:
            return DefaultDtype.value
        if len(self.kinds) == 1:
            return _dtype_of(next(iter(self.kinds)))
        return reduce(promote_types, sorted(map(_dtype_of, self.kinds), key=str))

    def values(self, kind: dtype) -> np.ndarray:
        """The data as an array, which need not be of the given type yet."""
        if self.empty:
            return np.empty(self.sizes, kind.np)
        if kind.category in (INTEGER, FLOAT) and complex in self.kinds:
            raise TypeError("must be real number, not complex")
        data = self.data
        if not self.kinds <= NUMBERS and any(isinstance(k, dtype) for k in self.kinds):
            data = _without_tensors(data, len(self.sizes), kind)
        if not self.kinds <= NUMBERS and not all(map(_is_number, self.kinds)):
            raise self._misplaced(kind)
        if isinstance(data, bytearray):
            data = list(data)
        try:
            array = np.array(data)
        except (ValueError, OverflowError):
            raise self._misplaced(kind) from None
        if int in self.kinds and not self.kinds & {float, complex} and array.dtype.kind in "Ouf":
            array = self._long_integers(kind, array)
        if array.dtype.kind == "O":
            raise self._misplaced(kind)
        return array

    def _long_integers(self, kind: dtype, array: np.ndarray) -> np.ndarray:
        """Integers that NumPy does not make int64 of: beside NumPy's numbers, or beyond 64 bits."""
        if kind.category in (FLOAT, COMPLEX):
            return np.array(self.data, np.float64) if array.dtype.kind == "O" else array
        if kind.np == np.uint64:
            # NumPy counts integers on both sides of the greatest int64 in float64, which rounds them.
            return np.array(self.data, np.uint64) if self.kinds == {int} and array.min() >= 0 else array
        if array.dtype.kind != "O" and self.kinds != {int}:
            return array
        raise ValueError("Overflow when unpacking long long")

    def _misplaced(self, kind: dtype) -> TypeError:
        """A sequence where, by what came before, a number should be."""
        found = next((k.__name__ for k in self.kinds if not _is_number(k)), "list")
        return TypeError(f"'{found}' object cannot be interpreted as an integer" if kind.category <= INTEGER
                         else f"must be real number, not {found}")


def _is_number(kind: Any) -> bool:
    return isinstance(kind, dtype) or issubclass(kind, (bool, int, float, complex, np.number, np.bool_))


def _is_sequence(value: Any) -> bool:
    kind = type(value)
    return kind in (list, tuple) or (
        hasattr(kind, "__getitem__") and hasattr(kind, "__len__") and not isinstance(value, (dict, Tensor, np.generic)))


def _sizes(data: Any) -> list[int]:
    sizes: list[int] = []
    while _is_sequence(data):
        if isinstance(data, str):
            raise ValueError("too many dimensions 'str'")
        sizes.append(len(data))
        if len(sizes) > MAX_DIMENSIONS:  # a list that contains itself is endless
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not sizes[-1]:
            break
        try:
            data = data[0]
        except (TypeError, KeyError, IndexError):
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
    return sizes


def _dtype_of(kind: Any) -> dtype:
    """The type of a number of one Python or NumPy type, or of a tensor of one dtype."""
    if isinstance(kind, dtype):
        return kind
    if kind is float:
        return DefaultDtype.value
    if kind is int:
        return int64
    if kind is bool:
        return bool_
    if kind is complex:
        return DefaultDtype.value.to_complex()
    if issubclass(kind, np.generic):
        return dtype_of_array(np.dtype(kind))
    if issubclass(kind, str):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    for base in (bool, int, float, complex):
        if issubclass(kind, base):
            return _dtype_of(base)
    if issubclass(kind, (list, tuple)):
        return int64  # out of place, which is found when values are taken
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}")


def _without_tensors(data: Any, depth: int, kind: dtype) -> Any:
    """The nest with numbers for its tensors, each of which must have one element."""
    if depth:
        return [_without_tensors(value, depth - 1, kind) for value in data]
    if not isinstance(data, Tensor):
        return data
    if kind.category <= INTEGER and (data._a.size != 1 or data.dtype.category > INTEGER):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if data._a.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return data.item()


def check_range(values: np.ndarray, kind: dtype) -> None:
    """PyTorch's refusal of numbers that an integer type cannot hold; of the unsigned ones, -1 is the largest."""
    if kind.category != INTEGER or values.dtype == kind.np or values.dtype.kind not in "iuf" or not values.size:
        return
    limits = np.iinfo(kind.np)
    low, high = values.min(), values.max()
    if low < 0 and kind.name == "uint64":
        raise OverflowError("can't convert negative int to unsigned")
    if not (low >= (limits.min or -limits.max) and high <= limits.max):
        raise RuntimeError(f"value cannot be converted to type {kind.np.name} without overflow")
