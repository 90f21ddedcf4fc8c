"""Reductions: sums, products, extremes, and their positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import FLOAT32, FLOAT_DTYPES, number_operand, pretty
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY, HALF_TYPES, dtype
from ..._shape import wrap_dim, wrap_dims
from . import providers
from .elements import LARGEST, PRODUCT, SMALLEST
from .memory import empty
from .memory import to as to_dtype
from .sums import row_major, sum_integers, sum_over

Array = Any
Dims = int | Sequence[int] | None

# NumPy's type stubs do not know that these take their arguments by position.
add_reduce: Callable[..., Any] = np.add.reduce
multiply_reduce: Callable[..., Any] = np.multiply.reduce
maximum_reduce: Callable[..., Any] = np.maximum.reduce
minimum_reduce: Callable[..., Any] = np.minimum.reduce
INT64 = np.dtype(np.int64)
UINT8 = np.dtype(np.uint8)


def wide(a: Array) -> Array:
    """Half-precision operands as float32, in which PyTorch accumulates them; others unchanged."""
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def accumulator(a: Array, to: dtype | None) -> tuple[Array, np.dtype]:
    """The operand in the type to accumulate in, and the dtype of the result: integers add up in int64."""
    if to is None:
        result = a.dtype if a.dtype in FLOAT_DTYPES else INT64
    else:
        result = to.np
    if result in HALF_TYPES:
        return (to_dtype(a, np.dtype(np.float32)) if a.dtype.kind == "c" else a.astype(np.float32)), result
    return (a if a.dtype == result else to_dtype(a, result)), result


def narrowed(a: Array, to: np.dtype) -> Array:
    """A result converted to its dtype."""
    return a if a.dtype == to else a.astype(to)


def into_one(reduce: Callable[..., Any], a: Array, kind: np.dtype) -> Array:
    """All elements reduced into memory for one: as fast as making an array of NumPy's number."""
    made = empty((), kind)
    if kind not in HALF_TYPES:
        return reduce(a, None, None, made)
    made[...] = reduce(wide(a), None)
    return made


def along(a: Array, dim: int) -> tuple[Array, int]:
    """An array with at least one dimension, and the dimension to work along: a 0-d array counts as one element."""
    axis = wrap_dim(dim, a.ndim)
    return (a if a.ndim else a.reshape(1)), axis


def refuse(a: Array, name: str, kinds: str) -> None:
    """PyTorch's NotImplementedError for dtypes (by NumPy kind) that a kernel does not take."""
    if a.dtype.kind in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{pretty(FROM_NUMPY[a.dtype])}'")


def refuse_empty(a: Array, dims: Sequence[int], name: str) -> None:
    """PyTorch's error for a reduction without identity over a dimension of extent 0."""
    for dim in dims:
        if a.ndim and a.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def refuse_nothing(a: Array, name: str) -> None:
    """PyTorch's error for the extreme of no elements."""
    if not a.size:
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                           "reduction dim with the 'dim' argument.")


# -- sums and products ---------------------------------------------------------------------------------------------


FEW = 65
MANY = 1024
ONES = [np.ones(n, np.float32) for n in range(FEW)]


def sum_all(a: Array) -> Array:
    """The sum of all elements. For few of them a dot product with ones is twice as fast as NumPy's reduction."""
    if a.dtype is FLOAT32:
        if a.size < FEW:
            return a.ravel().dot(ONES[a.size])
        return sum_over(a, None, False)
    return sum_dims(a, None, False, None)


def sum_all_as(a: Array, to: dtype | None) -> Array:
    """The sum of all elements in a given dtype."""
    return sum_dims(a, None, False, to)


@providers.direct("sum.dim_IntList")
def sum_dims(a: Array, dim: Dims, keepdim: bool, to: dtype | None) -> Array:
    """Sums over dimensions."""
    axes = wrap_dims(dim, a.ndim)
    if to is None and a.dtype is FLOAT32:
        return sum_over(a, axes, keepdim)
    a, result = accumulator(a, to)
    if result == np.bool_:
        return any_of(a, axes, keepdim)
    if a.dtype is INT64:
        return narrowed(sum_integers(a, axes, keepdim), result)
    return narrowed(row_major(add_reduce(a, axes, a.dtype, None, keepdim)), result)


def nansum(a: Array, dim: Dims, keepdim: bool, to: dtype | None) -> Array:
    """Sums over dimensions that count NaN as 0."""
    if to is not None and to.is_complex and a.dtype.kind != "c":
        raise unsupported("nansum_cpu", to.np)
    if a.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if a.dtype in FLOAT_DTYPES:
        a = np.where(np.isnan(a), np.zeros((), a.dtype), a)
    return sum_dims(a, dim, keepdim, to)


@step("aten::sum", "IntList_out", lambda a, axes, keepdim: (a, axes, keepdim, None, None))
def _sum_step(a: Array, axes: Any, keepdim: bool) -> Array:
    if a.dtype is FLOAT32 and a.ndim:
        return np.asarray(sum_dims(a, axes, keepdim, None))
    return np.asarray(row_major(add_reduce(a, axes, None, None, keepdim)))


@step("aten::div_", "Tensor")
def divide_step(a: Array, count: int) -> Array:
    return np.true_divide(a, number_operand(count, a.dtype), a)


@providers.direct("mean.dim")
def mean_dims(a: Array, dim: Dims, keepdim: bool, to: dtype | None) -> Array:
    """Averages over dimensions."""
    if (a.dtype if to is None else to.np) not in FLOAT_DTYPES:
        given = "Input" if to is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {given} dtype must be either a floating point or complex dtype. "
            f"Got: {pretty(to or FROM_NUMPY[a.dtype])}"
        )
    axes = wrap_dims(dim, a.ndim)
    a, result = accumulator(a, to)
    total = _sum_step(a, axes, keepdim)
    count = a.size if len(axes) == a.ndim else extent(a.shape, axes)
    return narrowed(divide_step(total, count), result)


@providers.direct("mean")
def mean_all(a: Array) -> Array:
    """The average of all elements."""
    if a.dtype is FLOAT32:
        return divide_step(_sum_step(a, None, False), a.size)
    return mean_dims(a, None, False, None)


mean_step = step("aten::mean", "", lambda a: (a, None))(mean_all)
mean_into_step = step("aten::mean", "out", lambda a: (a, (), False, None, None))(mean_all)
sum_into_step = step("aten::sum", "IntList_out", lambda a: (a, (), False, None, None))(sum_all)
_scalar_step = step("aten::_local_scalar_dense")(lambda a: a.item())
item_step = step("aten::item")(lambda a: _scalar_step(a))


def mean_all_as(a: Array, to: dtype | None) -> Array:
    """The average of all elements in a given dtype."""
    return mean_dims(a, None, False, to)


def extent(shape: Sequence[int], axes: Sequence[int]) -> int:
    """The number of elements that are reduced into one."""
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count


def prod_all(a: Array, to: dtype | None) -> Array:
    """The product of all elements."""
    if to is None and (made := _native_all(PRODUCT, a)) is not None:
        return made
    return into_one(multiply_reduce, *accumulator(a, to))


def prod_dim(a: Array, dim: int, keepdim: bool, to: dtype | None) -> Array:
    """Products along one dimension."""
    axes = wrap_dims(dim, a.ndim)
    if to is None and len(axes) == 1 and a.ndim and providers.rows(a):
        return providers.native.reduce(PRODUCT, a, axes[0], axes[0], keepdim)
    a, result = accumulator(a, to)
    return narrowed(row_major(multiply_reduce(a, axes, a.dtype, None, keepdim)), result)


# -- truth ---------------------------------------------------------------------------------------------------------


def truth(ufunc: np.ufunc) -> Callable[..., Array]:
    """`all` or `any` over dimensions; uint8, PyTorch's old boolean, stays uint8."""
    reduce: Callable[..., Any] = ufunc.reduce

    def kernel(a: Array, dim: Dims = None, keepdim: bool = False) -> Array:
        # An empty list reduces nothing here, unlike in sums.
        axes = () if dim is not None and not isinstance(dim, int) and not len(dim) else wrap_dims(dim, a.ndim)
        result = row_major(reduce(a if a.dtype == np.bool_ else a != 0, axes, None, None, keepdim))
        return result.astype(UINT8) if a.dtype == UINT8 else result

    return kernel


all_of = truth(np.logical_and)
any_of = truth(np.logical_or)


def count_nonzero(a: Array, dim: Dims) -> Array:
    """How many elements are not zero."""
    return row_major(add_reduce(a != 0, wrap_dims(dim, a.ndim), INT64))


# -- extremes ------------------------------------------------------------------------------------------------------

KINDS = {"max": LARGEST, "min": SMALLEST}


def _native_all(kind: int, a: Array) -> Array | None:
    """All elements of a large array reduced by the C kernels, or None; NumPy is as fast for small arrays."""
    return providers.native.reduce(kind, a, 0, a.ndim - 1, False) if a.size >= MANY and providers.rows(a) else None


def extreme_all(name: str, ufunc: np.ufunc) -> Callable[[Array], Array]:
    """The largest or smallest element; NaN wins."""
    reduce: Callable[..., Any] = ufunc.reduce

    def kernel(a: Array) -> Array:
        if not a.size:
            refuse_nothing(a, name)
        if (made := _native_all(KINDS[name], a)) is not None:
            return made
        if a.dtype is FLOAT32:
            return reduce(a, None, None, empty((), FLOAT32))
        refuse(a, f"{name}_all", "c")
        return into_one(reduce, a, a.dtype)

    return kernel


def extreme_dims(name: str, ufunc: np.ufunc) -> Callable[[Array, Dims, bool], Array]:
    """Extremes over any number of dimensions, without positions."""
    reduce: Callable[..., Any] = ufunc.reduce

    def kernel(a: Array, dim: Dims, keepdim: bool) -> Array:
        axes = wrap_dims(dim, a.ndim)
        if not a.size:
            if dim is None or (not isinstance(dim, int) and not len(dim)):
                refuse_nothing(a, name)
            refuse_empty(a, axes, name)
        if len(axes) == 1 and a.ndim and providers.rows(a):
            return providers.native.reduce(KINDS[name[1:]], a, axes[0], axes[0], keepdim)
        refuse(a, f"{name[1:]}_values_cpu", "c")
        return narrowed(row_major(reduce(wide(a), axes, None, None, keepdim)), a.dtype)

    return kernel


def extreme_dim(name: str, position: Callable[..., Array]) -> Callable[[Array, int, bool], tuple[Array, Array]]:
    """Extremes along one dimension with the position of the first; NaN wins."""

    def kernel(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        axis = checked_dim(a, dim, name)
        if a.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if not a.ndim:
            return a.copy(), np.zeros((), INT64)
        if providers.rows(a):
            return providers.native.extreme(KINDS[name], a, axis, keepdim)
        index = position(wide(a), axis, keepdims=True)
        chosen = np.take_along_axis(a, index, axis)
        return (chosen, index) if keepdim else (chosen.squeeze(axis), index.squeeze(axis))

    return kernel


def checked_dim(a: Array, dim: int, name: str) -> int:
    """A wrapped dimension that has elements."""
    axis = wrap_dim(dim, a.ndim)
    refuse_empty(a, (axis,), name)
    return axis


def position_of(name: str, position: Callable[..., Array]) -> Callable[[Array, int | None, bool], Array]:
    """`argmax` or `argmin`: the first position, in the flattened array if no dimension is given."""

    def kernel(a: Array, dim: int | None, keepdim: bool) -> Array:
        if a.dtype.kind in "cb":
            raise RuntimeError(f"{name}(): does not support {'bool' if a.dtype.kind == 'b' else 'complex'} input")
        if dim is None:
            if not a.size:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            return position(wide(a), None, keepdims=keepdim)
        axis = checked_dim(a, dim, name)
        if a.ndim and providers.rows(a):
            return providers.native.extreme(KINDS[name[3:]], a, axis, keepdim)[1]
        return position(wide(a), axis, keepdims=keepdim) if a.ndim else np.zeros((), INT64)

    return kernel


@providers.direct("aminmax")
def aminmax(a: Array, dim: int | None, keepdim: bool) -> tuple[Array, Array]:
    """Smallest and largest."""
    if dim is None:
        if not a.size:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                               "identity.")
        axes: tuple[int, ...] | None = None
    else:
        checked_dim(a, dim, "aminmax")
        axes = wrap_dims(dim, a.ndim)
    refuse(a, "aminmax_cpu", "c")
    values = wide(a)
    least, most = minimum_reduce(values, axes, None, None, keepdim), maximum_reduce(values, axes, None, None, keepdim)
    return narrowed(row_major(least), a.dtype), narrowed(row_major(most), a.dtype)
