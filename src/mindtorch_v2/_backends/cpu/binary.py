"""Kernels of two and three operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import (
    FLOAT_DTYPES,
    cast,
    pretty,
    promote_list,
    result_dtype,
    scalar_array,
    stored_scalar,
)
from ..._dtype import FROM_NUMPY
from . import providers
from .elements import ADD_PRODUCT, ADD_QUOTIENT, LERP
from .pointwise import FLOAT32, ONES, ZEROS, Array, Function, broadcasting, unsupported, widened


@widened
@providers.direct("xlogy")
def xlogy(a: Array, b: Array) -> Array:
    """`a log(b)`, 0 where a is 0 unless b is NaN."""
    return np.where(np.isnan(b), b, np.where(a == 0, ZEROS[a.dtype], a * np.log(b)))


@broadcasting
def heaviside(a: Array, values: Array) -> Array:
    """0 below zero, 1 above, `values` at zero."""
    if a.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if a.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    # NaN is not above zero, so its result is 0.
    return np.where(a == 0, values, (a > 0).astype(a.dtype))


def integers_only(name: str, function: Function) -> Function:
    """A kernel for integers."""

    def kernel(a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            raise unsupported(name, a.dtype)
        return function(a, b)

    return kernel


@widened
def lerp(a: Array, end: Array, weight: Array) -> Array:
    """`a + weight (end - a)`, computed from the nearer end so that both ends are exact."""
    if a.dtype not in FLOAT_DTYPES:
        raise unsupported("lerp_kernel_scalar" if weight.ndim == 0 else "lerp_kernel_tensor", a.dtype)
    gap = np.subtract(end, a)
    near = a + weight * gap
    if weight.ndim == 0:
        return near if abs(weight) < 0.5 else end - gap * (ONES[weight.dtype] - weight)
    return np.where(np.abs(weight) < 0.5, near, end - gap * (ONES[weight.dtype] - weight))


@broadcasting
def lerp_scalar(a: Array, end: Array, weight: Any) -> Array:
    """`lerp` with a number as weight."""
    check_same("end", a, end)
    if abs(weight) < 0.5 and (made := _updated(LERP, a, end, end, weight)) is not None:
        return made
    return lerp(a, end, np.asarray(weight, FLOAT32 if a.dtype.itemsize == 2 else a.dtype))


@broadcasting
def lerp_tensor(a: Array, end: Array, weight: Array) -> Array:
    """`lerp` with a weight for each element."""
    check_same("end", a, end)
    if weight.ndim == 0:
        wanted = result_dtype([a, weight], []).np
        a, end, weight = cast(a, wanted), cast(end, wanted), cast(weight, wanted)
    check_same("weight", a, weight)
    return lerp(a, end, weight)


def check_same(argument: str, a: Array, b: Array) -> None:
    """Check dtypes: PyTorch promotes no operand of `lerp`."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected dtype {_spoken(a.dtype)} for `{argument}` but got dtype {_spoken(b.dtype)}"
        )


def _spoken(dtype: np.dtype) -> str:
    name = pretty(FROM_NUMPY[dtype])
    return {"Long": "long int", "Byte": "unsigned char"}.get(name, name.lower())


def _updated(kind: int, a: Array, b: Array, c: Array, value: Any) -> Array | None:
    """The result by the C kernels, or None."""
    native = providers.native
    return native.update(kind, None, a, b, c, value) if native is not None and type(value) in (int, float) else None


@widened
def _add_product(a: Array, b: Array, c: Array, value: Any) -> Array:
    made = _updated(ADD_PRODUCT, a, b, c, value)
    if made is not None:
        return made
    product = np.multiply(b, c) if value == 1 else np.multiply(np.multiply(b, scalar_array(value, b.dtype)), c)
    return np.add(a, product)


@widened
def _add_quotient(a: Array, b: Array, c: Array, value: Any) -> Array:
    made = _updated(ADD_QUOTIENT, a, b, c, value)
    if made is not None:
        return made
    scaled = b if value == 1 else np.multiply(b, scalar_array(value, b.dtype))
    return np.add(a, np.true_divide(scaled, c))


def _whole(value: Any, dtype: np.dtype) -> Any:
    return stored_scalar(value if isinstance(value, complex) else int(value), dtype).item()


@broadcasting
def addcmul(a: Array, b: Array, c: Array, value: Any) -> Array:
    """`a + value b c`."""
    a, b, c = promote_list([a, b, c])
    if a.dtype == np.bool_:
        raise unsupported("addcmul_cpu_out", a.dtype)
    return _add_product(a, b, c, value if a.dtype in FLOAT_DTYPES else _whole(value, a.dtype))


@broadcasting
def addcdiv(a: Array, b: Array, c: Array, value: Any) -> Array:
    """`a + value b / c`."""
    if b.dtype not in FLOAT_DTYPES and c.dtype not in FLOAT_DTYPES:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )
    a, b, c = promote_list([a, b, c])
    return _add_quotient(a, b, c, value)


def ldexp(a: Array, b: Array) -> Array:
    """`a 2**b`."""
    return cast(np.multiply(a, np.power(scalar_array(2.0, a.dtype), b)), a.dtype)
