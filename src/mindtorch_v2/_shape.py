"""Shapes: dimensions, broadcasting, strides and views, without any tensor. Imports nothing else of the package."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

Shape = tuple[int, ...]


class Size(tuple[int, ...]):
    """A tensor's shape: a tuple that prints as `torch.Size([2, 3])`.

    >>> import mindtorch_v2 as torch
    >>> torch.zeros(2, 3).size().numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = (), *more: Any) -> Size:
        if more:
            raise TypeError(f"tuple expected at most 1 argument, got {1 + len(more)}")
        return tuple.__new__(cls, [one if type(one) is int else _extent(one, place) for place, one in enumerate(sizes)])

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return numel(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        joined = tuple.__add__(self, other)
        return tuple.__new__(Size, joined) if type(other) is Size else Size(joined)

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, times: Any) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


def _extent(given: Any, place: int) -> int:
    """An element of a shape that is not a plain integer."""
    floating = getattr(getattr(given, "dtype", None), "is_floating_point", False)
    if floating or not hasattr(given, "__index__"):
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is '{type(given).__name__}')")
    return int(given.__index__())


def numel(shape: Iterable[int]) -> int:
    """The product of a shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension index as a non-negative number; a 0-d tensor has one dimension here, as in PyTorch."""
    extent = ndim or 1
    if not -extent <= dim < extent:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], but got {dim})"
        )
    return dim + extent if dim < 0 else dim


def as_numbers(values: Any) -> tuple[Any, ...]:
    """One number or several as a tuple; a 0-d tensor of an integer is a number."""
    return (values.__index__(),) if hasattr(values, "__index__") and not getattr(values, "ndim", 0) else tuple(values)


def wrap_dims(dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Several dimension indices, wrapped and checked for repeats; None or empty means all."""
    if dims is None:
        return tuple(range(ndim))
    if hasattr(dims, "__index__"):
        if dims is True or dims is False:
            raise TypeError("a dimension must be an int, not bool")
        dims = dims.__index__()  # type: ignore[union-attr]
        return (wrap_dim(dims, ndim),) if ndim else (wrap_dim(dims, 0),)[:0]
    if not len(dims):
        return tuple(range(ndim))
    wrapped = tuple([wrap_dim(d, ndim) for d in dims])
    if len(wrapped) > 1 and len(set(wrapped)) != len(wrapped):
        repeated = next(d for i, d in enumerate(wrapped) if d in wrapped[:i])
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape that all of these broadcast to, or PyTorch's error."""
    result: list[int] = []
    for shape in shapes:
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        shift = len(result) - len(shape)
        for i in range(len(shape) - 1, -1, -1):
            extent, known = shape[i], result[shift + i]
            if known == 1:
                result[shift + i] = extent
            elif extent not in (1, known):
                raise RuntimeError(
                    f"The size of tensor a ({known}) must match the size of tensor b ({extent}) "
                    f"at non-singleton dimension {shift + i}"
                )
    return tuple(result)


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Shape:
    """The shape after reducing over wrapped dims."""
    if keepdim:
        return tuple(1 if i in dims else extent for i, extent in enumerate(shape))
    return tuple(extent for i, extent in enumerate(shape) if i not in dims)


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """Row-major strides in elements."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def infer_size(shape: Sequence[int], count: int) -> Shape:
    """Replace one -1 in a requested shape so that it holds `count` elements."""
    if math.prod(shape) == count > 0 and min(shape, default=0) >= 0:
        return tuple(shape)
    known = 1
    unknown = -1
    for i, extent in enumerate(shape):
        if extent == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        elif extent < 0:
            raise RuntimeError(f"invalid shape dimension {extent} at index {i} of shape {list(shape)}")
        else:
            known *= extent
    wanted = list(shape)
    if unknown >= 0 and known > 0 and count % known == 0:
        wanted[unknown] = count // known
    elif unknown >= 0 and known == 0 and count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
            f"dimension size -1 can be any value and is ambiguous"
        )
    elif unknown >= 0 or known != count:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
    return tuple(wanted)


def view_strides(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> Shape | None:
    """Strides with which memory laid out as (shape, strides) reads as `wanted`, or None if a copy is needed."""
    if 0 in shape:
        return contiguous_strides(wanted)
    result = [0] * len(wanted)
    # Walk both shapes from the right in chunks of equal size; inside a chunk memory must be evenly spaced.
    target = len(wanted) - 1
    chunk = 1
    base = strides[-1] if shape else 1
    for i in range(len(shape) - 1, -1, -1):
        chunk *= shape[i]
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != chunk * base):
            filled = 1
            while target >= 0 and (filled < chunk or wanted[target] == 1):
                result[target] = filled * base
                filled *= wanted[target]
                target -= 1
            if filled != chunk:
                return None
            if i > 0:
                base = strides[i - 1]
                chunk = 1
    for i in range(target, -1, -1):
        if wanted[i] != 1:
            return None
        result[i] = 1 if i + 1 == len(wanted) else result[i + 1] * wanted[i + 1]
    return tuple(result)


def argument_missing(name: str, argument: str = "size") -> NoReturn:
    """The error for a missing argument that may be one sequence or several numbers."""
    raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')


def as_shape(values: Any) -> Shape:
    """A shape from varargs: `f(2, 3)` and `f((2, 3))` both arrive here as a tuple."""
    if len(values) == 1 and type(values[0]) is not int and not hasattr(values[0], "__index__"):
        values = values[0]
    if type(values) is tuple:
        for value in values:
            if type(value) is not int:
                break
        else:
            return values
    try:
        if isinstance(values, (tuple, list)) and values and type(values[0]) is bool:
            raise TypeError("argument 'size' (position 1) must be tuple of ints, but found element of type bool at pos "
                            "0")
        return tuple(int(v.__index__()) for v in values)
    except (TypeError, AttributeError):
        several = values if hasattr(values, "__iter__") else (values,)
        wrong = [v for v in several if not hasattr(v, "__index__")]
        if not wrong or hasattr(wrong[0], "__torch_function__"):
            raise
        raise TypeError(f"argument 'size' (position 1) must be tuple of ints, not {type(wrong[0]).__name__}") from None
