"""`x[...]` and `x[...] = v`: an index becomes views (select, slice, unsqueeze) and at most one `index` op."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from .._backends.base import ON_DEVICE, placed, transfer
from .._backends.cpu import indexing as kernels
from .._backends.meta import MetaArray, as_meta, stand_in
from .._construct import from_sequence
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty, scalar_array
from .._dispatch.registry import choose, declare
from .._dtype import FROM_NUMPY
from .._tensor import DISPATCHING, TENSOR_TYPES, Tensor, alias, wrap, wrap_known

OPEN_END = 2**63 - 1
NUMBERS = frozenset((int, float, bool, complex))
PLAIN_KINDS = (np.dtype(np.int64), np.dtype(np.bool_))
MASK_KINDS = (np.dtype(np.bool_), np.dtype(np.uint8))
INVALID = ("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
           "(got {})")
BYTE_WARNING = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
SEQUENCE_WARNING = ("Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead "
                    "of x[seq]. A later release will read it as a tensor index, x[torch.tensor(seq)].")


class Indices(list[Any]):
    """Index tensors by position, None for whole dimensions."""

    __slots__ = ()

    def arrays(self) -> list[Any]:
        """The arrays of the tensors."""
        return [None if t is None else t._a for t in self]

    def on_device(self, where: Any) -> list[Any]:
        """The arrays of the tensors on a device; indices of the host may be used with any."""
        if any(t is not None and t.device != where and not t.is_cpu for t in self):
            raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({where})")
        arrays: list[Any] = []
        for t in self:
            if t is None or t.device == where:
                arrays.append(None if t is None else t._a)
            elif where.type == "meta" and t._a.dtype in MASK_KINDS:
                arrays.append(t._a)  # how many are set is known
            else:
                arrays.append(transfer(t._a, where))
        return arrays


# -- ops -------------------------------------------------------------------------------------------------------------


def _index_backward(grad: Tensor, self_shape: Any, indices: Indices) -> Tensor:
    return aten._index_put_impl_(aten.new_zeros(grad, self_shape), Indices(indices), grad, True, True)


def _index_put_grad_self(grad: Tensor, indices: Indices, accumulate: bool) -> Tensor:
    if accumulate:
        return grad
    zero = aten.zeros((), dtype=grad.dtype, device=grad.device)
    return aten.index_put__default(grad, Indices(indices), zero, False)


def _index_put_grad_values(grad: Tensor, indices: Indices) -> Tensor:
    return aten.index__Tensor(grad, Indices(indices))


ON_DEVICE.add(Indices)


def index_arrays(indices: Any) -> list[Any]:
    """What a kernel works with: the arrays of the tensors, unless it is given these."""
    return indices.arrays() if type(indices) is Indices else indices


def index_tensors(indices: Any) -> Indices:
    """Arrays as tensors again."""
    if type(indices) is Indices:
        return indices
    return Indices([None if array is None else wrap_known(array) for array in indices])


def _put_into(a: Any, indices: Indices, values: Any, accumulate: bool) -> Any:
    return aten._index_put_impl_(wrap_known(a), index_tensors(indices), wrap_known(values), accumulate)._a


def _put_into_copy(a: Any, indices: Indices, values: Any, accumulate: bool) -> Any:
    made = kernels.put_into_copy(a, index_arrays(indices), values, accumulate)
    if made is not None:
        return made
    return aten.index_put___default(aten.clone(wrap_known(a)), index_tensors(indices), wrap_known(values),
                                    accumulate)._a


def _index_shape(a: Any, indices: Any) -> Any:
    arrays = index_arrays(indices)
    if any(isinstance(one, MetaArray) and one.dtype in MASK_KINDS for one in arrays):
        raise NotImplementedError("aten::index: the output's shape depends on a mask, and one on device 'meta' has no "
                                  "data")
    return as_meta(kernels.index(stand_in(a), stand_in(arrays)))


declare(
    "index.Tensor(Tensor self, Any indices) -> Tensor", where="n",
    cpu=lambda a, indices: kernels.index(a, index_arrays(indices)), meta=_index_shape,
    grad={"self": _index_backward},
)
declare(
    "_index_put_impl(Tensor self, Any indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor",
    cpu_inplace=lambda a, indices, values, accumulate, unsafe: kernels.put(
        a, index_arrays(indices), values, accumulate),
    where="n", grad={"self": _index_put_grad_self, "values": _index_put_grad_values},
)
declare(
    "index_put(Tensor self, Any indices, Tensor values, bool accumulate=False) -> Tensor", where="n",
    cpu=_put_into_copy, cpu_inplace=_put_into,
    grad={"self": _index_put_grad_self, "values": _index_put_grad_values},
)


def _given_indices(name: str, indices: Any) -> Indices:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, "
                        f"not {type(indices).__name__}")
    for position, given in enumerate(indices):
        if not isinstance(given, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(given).__name__}")
    return as_indices(indices)


def as_indices(given: Any) -> Any:
    """A list of index tensors as the ops take it."""
    if type(given) is Indices or not isinstance(given, (list, tuple)):
        return given
    if not any(isinstance(one, Tensor) for one in given):
        raise IndexError("at least one index must be provided")
    return Indices(given)


@choose("index_put")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values` written, or added, at the given positions."""
    return aten.index_put__default(input, _given_indices("index_put", indices), values, accumulate)


@choose("index_put_")
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write, or add, `values` at the given positions."""
    return aten.index_put___default(input, _given_indices("index_put_", indices), values, accumulate)


# -- reading ---------------------------------------------------------------------------------------------------------


@choose("__getitem__", where="m")
def getitem(self: Tensor, index: Any) -> Tensor:
    """`self[index]`."""
    kind = type(index)
    if kind is int:
        try:
            return aten.select__int(self, 0, index)
        except IndexError:
            raise select_error(self, 0, index) from None
    if kind is slice:
        return sliced(self, 0, index)
    if kind is Tensor and index._a.dtype in PLAIN_KINDS and index._a.ndim and self._a.ndim:
        return aten.index__Tensor(self, Indices((index,)))
    if kind is tuple:
        found, recorded = take_apart(self, index)
    else:
        found, recorded = take_apart(self, as_tuple(index))
    if recorded:
        return aten.index__Tensor(found, by_position(recorded))
    return aten.alias(self) if found is self else found


def as_tuple(index: Any) -> tuple[Any, ...]:
    """An index that is not a tuple as one; some lists mean a tuple, as in early NumPy."""
    if isinstance(index, (list, range)) and len(index) < 32 and any(
        item is None or item is Ellipsis or isinstance(item, (slice, list, tuple, Tensor, np.ndarray)) for item in index
    ):
        warnings.warn(SEQUENCE_WARNING, UserWarning, stacklevel=3)
        return tuple(index)
    return (index,)


def select_error(self: Tensor, dim: int, index: int, named: int | None = None) -> IndexError:
    """Why an integer index does not fit; `named` is the dimension as the program counts it."""
    if not self._a.ndim:
        return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
                          "C++ to convert a 0-dim tensor to a number")
    return IndexError(f"index {index} is out of bounds for dimension {dim if named is None else named} with size "
                      f"{self._a.shape[dim]}")


def sliced(self: Tensor, dim: int, part: slice) -> Tensor:
    """`self[part]` along one dimension."""
    start, stop, step = part.start, part.stop, part.step
    if (start is not None and type(start) is not int) or (stop is not None and type(stop) is not int):
        start, stop = bound(start), bound(stop)
    if step is None:
        step = 1
    elif step == 0:
        raise ValueError("slice step cannot be zero")
    elif step < 0:
        raise ValueError("step must be greater than zero")
    if not self._a.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    # An open end is a number here, as among the arguments that PyTorch's profiles and execution traces show.
    return aten.slice__Tensor(self, dim, 0 if start is None else start, OPEN_END if stop is None else stop,
                              operator.index(step))


def bound(value: Any) -> int | None:
    """A slice bound as an integer."""
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def is_whole(part: slice, extent: int) -> bool:
    """Whether a slice keeps all of a dimension."""
    return ((part.start is None or (type(part.start) is int and part.start == 0))
            and (part.step is None or part.step == 1)
            and (part.stop is None or (type(part.stop) is int and part.stop >= extent)))


def take_apart(self: Tensor, index: tuple[Any, ...]) -> tuple[Tensor, list[tuple[int, Tensor]]]:
    """Apply the integers, slices and Nones of an index; return what is left with `(dimension, index tensor)` pairs."""
    parts: list[Any] = [part if type(part) is int or type(part) is slice or part is None or part is Ellipsis
                        else plain_part(part) for part in index]
    wanted = 0
    for part in parts:
        if isinstance(part, Tensor):
            wanted += part._a.ndim if part._a.dtype in MASK_KINDS else 1
        elif type(part) is Sequenced:
            wanted += part.array.ndim if part.array.dtype in MASK_KINDS else 1
        elif part is not None and part is not Ellipsis and type(part) is not bool:
            wanted += 1
    if wanted > self._a.ndim:
        if not self._a.ndim and len(parts) == 1 and type(parts[0]) is int and index[0] is parts[0]:
            raise select_error(self, 0, parts[0])
        raise IndexError(f"too many indices for tensor of dimension {self._a.ndim}")
    missing = self._a.ndim - wanted
    found = self
    recorded: list[tuple[int, Tensor]] = []
    dim = selected = 0
    for part in parts:
        kind = type(part)
        if kind is not int and kind is not slice and isinstance(part, Tensor) and not part._a.ndim:
            part, kind = aten.item(part), int
        if kind is int:
            try:
                found = aten.select__int(found, dim, part)
            except IndexError:
                raise select_error(found, dim, part, dim + selected) from None
            selected += 1
        elif kind is slice:
            if not is_whole(part, found._a.shape[dim]):
                found = sliced(found, dim, part)
            dim += 1
        elif part is None:
            found = aten.unsqueeze(found, dim)
            dim += 1
        elif part is Ellipsis:
            dim += missing
            missing = 0  # a second ellipsis stands for nothing
        elif kind is bool:
            found = aten.unsqueeze(found, dim)
            recorded.append((dim, wrap(placed(np.zeros(int(part), np.int64), self.device))))
            dim += 1
        else:
            if kind is Sequenced:
                part = part.tensor(self.device)
            recorded.append((dim, part))
            dim += part._a.ndim if part._a.dtype in MASK_KINDS else 1
    return found, recorded


class Sequenced:
    """A list or an array in an index: it becomes a tensor when its turn comes."""

    __slots__ = ("array", "given")

    def __init__(self, given: Any) -> None:
        self.given = given
        self.array = given if isinstance(given, np.ndarray) else sequence_array(given)

    def tensor(self, where: Any) -> Tensor:
        """The index tensor, on a device."""
        kind = FROM_NUMPY[self.array.dtype if self.array.dtype in MASK_KINDS else np.dtype(np.int64)]
        return from_sequence(self.array if self.given is self.array else self.array.tolist(), kind, where)


def plain_part(part: Any) -> Any:
    """One part of an index as an int, a bool, a tensor or what becomes one."""
    if type(part) is bool:
        return part
    if type(part) in TENSOR_TYPES:
        kind = part._a.dtype
        if kind == np.uint8 and part._a.ndim:
            warnings.warn(BYTE_WARNING, UserWarning, stacklevel=5)
        if not part._a.ndim and kind in MASK_KINDS:
            return bool(aten.item(part))
        if not part._a.ndim and kind.kind in "iu":
            return index_tensor(part)
        if kind not in kernels.INDEX_DTYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return index_tensor(part)
    if isinstance(part, np.ndarray):
        if not part.ndim and part.dtype.kind in "iu":
            return int(part)
        return Sequenced(part)
    if isinstance(part, (list, tuple, range, str)):
        return Sequenced(part)
    if not isinstance(part, np.bool_) and hasattr(part, "__index__"):
        return operator.index(part)
    raise IndexError(INVALID.format(type(part).__name__))


def index_tensor(part: Tensor) -> Tensor:
    """An index tensor as a plain one, unless its class answers for ops on it."""
    return part if type(part) is Tensor or type(part) in DISPATCHING else wrap_known(part._a)


def sequence_array(part: Any) -> np.ndarray:
    """A sequence of integers or booleans as an index array; floats lose their fraction, as in PyTorch."""
    if isinstance(part, str):
        raise TypeError("new(): invalid data type 'str'")
    array = np.asarray(part)
    if array.dtype.kind not in "biuf":
        raise RuntimeError(f"Could not infer dtype of {type(np.ravel(array)[0]).__name__}")
    return array if array.dtype == np.bool_ else array.astype(np.int64)


def by_position(recorded: list[tuple[int, Tensor]]) -> Indices:
    """Index tensors in a list where each stands at its dimension."""
    tensors: list[Tensor | None] = []
    covered = 0
    for dim, tensor in recorded:
        tensors += [None] * (dim - covered)
        tensors.append(tensor)
        covered = dim + (tensor._a.ndim if tensor._a.dtype in MASK_KINDS else 1)
    return Indices(tensors)


# -- writing ---------------------------------------------------------------------------------------------------------


@choose("__setitem__", where="m")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`."""
    kind = type(value)
    if kind not in TENSOR_TYPES:
        if kind not in NUMBERS:
            value = as_value(self, value)
        if type(value) in NUMBERS:
            # The array is one that many share, so no memory of its own.
            value = aten.lift_fresh(wrap_known(number_array(value, self._a.dtype)))
    if type(index) is int:
        try:
            target = aten.select__int(self, 0, index)
        except IndexError:
            raise select_error(self, 0, index) from None
        assign(target, value)
        return
    if index is False:
        return
    if type(index) is Tensor and index._a.dtype in PLAIN_KINDS and index._a.ndim and self._a.ndim:
        put_values(self, Indices((index,)), value)
        return
    parts = index if type(index) is tuple else as_tuple(index)
    found, recorded = take_apart(self, parts)
    # A lone True adds a dimension of extent 1, which assignment need not look up; False selects nothing.
    if all(type(part) is bool for part in parts) and parts:
        if all(parts):
            assign(found, value)
        return
    if recorded:
        put_values(found, by_position(recorded), value)
    else:
        assign(found, value)


def put_values(target: Tensor, indices: Indices, value: Any) -> None:
    """Write a tensor at positions given by index tensors."""
    if value._a.ndim and value._a.shape[0] == 1:
        value = without_leading_ones(value)
    aten.index_put___default(target, indices, value)


def as_value(self: Tensor, value: Any) -> Any:
    """An assigned value that is neither a tensor nor a Python number."""
    if isinstance(value, (np.bool_, np.number)):
        return value.item()
    name = f"torch.{pretty(FROM_NUMPY[self._a.dtype])}Tensor"
    shown = "numpy.ndarray" if isinstance(value, np.ndarray) else type(value).__name__
    raise TypeError(f"can't assign a {shown} to a {name}")


def number_array(value: Any, to: np.dtype) -> Any:
    """A Python number in the dtype it is stored as, unless it does not fit."""
    kind = to.kind
    overflow = type(value) is complex and kind not in "cb" and value.imag != 0
    if kind in "iu" and type(value) is not complex:
        if type(value) is int and not -2**63 <= value < 2**63:
            raise ValueError("Overflow when unpacking long long")
        limits = np.iinfo(to)
        overflow = not (-limits.max if kind == "u" else limits.min) <= value <= limits.max
    if overflow:
        names = {"f4": "float", "f8": "double", "f2": "c10::Half", "b1": "bool", "u1": "uint8_t"}
        name = names.get(f"{kind}{to.itemsize}", f"int{to.itemsize * 8}_t" if kind == "i" else to.name)
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    return scalar_array(value, to)


def assign(target: Tensor, value: Any) -> None:
    """Write a tensor, broadcast, into all of a view."""
    shape, wanted = value._a.shape, target._a.shape
    if shape == wanted:
        if value._st is target._st and value._st is not None and is_same_window(target, value):
            # `x[i] += v` ends by assigning a view to itself, after the in-place op already changed the history.
            aten.copy___default(alias(target), alias(value))
        else:
            aten.copy_(target, value)
    elif not shape:
        aten.fill___Tensor(target, value)
    else:
        value = without_leading_ones(value)
        if value._a.shape != wanted:
            value = aten.expand(value, wanted)
        aten.copy_(target, value)


def is_same_window(first: Tensor, second: Tensor) -> bool:
    """Whether two views of one shape read the same memory in the same way."""
    return (first._a.dtype == second._a.dtype and first._a.strides == second._a.strides
            and first.data_ptr() == second.data_ptr())


def without_leading_ones(value: Tensor) -> Tensor:
    """A value without its leading dimensions of extent 1, which the target need not have."""
    shape = value._a.shape
    start = 0
    while start < len(shape) and shape[start] == 1:
        start += 1
    return aten.view__default(value, shape[start:])
