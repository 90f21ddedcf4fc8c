"""Matrix products on arrays. 16-bit floats are multiplied in float32 and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import no_room, pretty, stored_scalar
from ..._dtype import BOOL, FROM_NUMPY, HALF_TYPES
from . import providers
from .view import expand_step

Array = Any

# Types whose products NumPy passes to BLAS or computes exactly; others are widened or refused.
DIRECT = frozenset(d for d, kind in FROM_NUMPY.items() if d not in HALF_TYPES and kind.category != BOOL)
HALF = frozenset(HALF_TYPES)
# BLAS is slow on small transposed right factors: below this size, copying them first is several times faster.
SMALL_MATRIX = 1024
C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
           "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
           "bool": "bool", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


def name_of(a: Array) -> str:
    """PyTorch's C++ name of an array's dtype."""
    return pretty(FROM_NUMPY[a.dtype])


def size_text(shape: tuple[int, ...]) -> str:
    """`2x3`, as PyTorch prints matrix sizes."""
    return "x".join(map(str, shape))


BYTES = np.dtype(np.int8), np.dtype(np.uint8)


def refuse_bool(a: Array, kernel: str) -> None:
    """Refuse booleans, which have no matrix product in PyTorch."""
    if a.dtype == np.bool_:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def product(a: Array, b: Array) -> Array:
    """`a @ b` of checked operands, each of one or two dimensions."""
    if a.ndim == 2 and b.ndim == 1 and providers.native is not None:
        made = providers.native.matmul(a, b[:, None], None)
        if made is not None:
            return made.reshape(-1)
    if a.dtype in DIRECT:
        return a.dot(b)
    refuse_bool(a, "addmm_impl_cpu_")
    return np.asarray(a.astype(np.float32).dot(b.astype(np.float32))).astype(a.dtype)


def check_matrices(a: Array, b: Array) -> None:
    """PyTorch's conditions on two matrices to multiply."""
    if a.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if b.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({size_text(a.shape)} and {size_text(b.shape)})"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{C_NAMES[FROM_NUMPY[a.dtype].name]} != {C_NAMES[FROM_NUMPY[b.dtype].name]}"
        )


def int_mm(a: Array, b: Array) -> Array:
    """Product of two matrices of bytes, in integers of 32 bits that wrap around."""
    for name, matrix in (("self", a), ("mat2", b)):
        if matrix.ndim != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {matrix.ndim}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {a.shape[1]} and "
                           f"{b.shape[0]}")
    for name, matrix, allowed in (("self", a, BYTES), ("mat2", b, BYTES[:1])):
        if matrix.dtype not in allowed:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} dtype to be {' or '.join(map(str, allowed))} but got "
                               f"{matrix.dtype}")
    # BLAS has no integers, and its float64 is exact here.
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64).astype(np.int32)


def mm(a: Array, b: Array) -> Array:
    """Product of two matrices."""
    if providers.native is not None:
        made = providers.native.matmul(a, b, None)
        if made is not None:
            return made
    if a.ndim == 2 == b.ndim and a.dtype is b.dtype and a.dtype in DIRECT:
        try:
            return a.dot(b)
        except ValueError:
            pass  # the check below says what does not fit
        except NotImplementedError:  # NumPy asked the right factor, a sparse one
            return b.after(a)
    check_matrices(a, b)
    return product(a, b)


def _blas_ready(a: Array) -> Array:
    """Copy matrices of a batch with gaps in both dimensions: NumPy would multiply them without BLAS."""
    item = a.dtype.itemsize
    return a if item in a.strides[-2:] or a.size < 64 else np.ascontiguousarray(a)


def check_batches(a: Array, b: Array) -> None:
    """PyTorch's conditions on two batches of matrices."""
    for number, batch in enumerate((a, b), start=1):
        if batch.ndim != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor")
    if b.shape[:2] != (a.shape[0], a.shape[2]):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] "
            f"but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {name_of(a)} but found {name_of(b)}")


def bmm(a: Array, b: Array) -> Array:
    """Products of two batches of matrices."""
    check_batches(a, b)
    if a.dtype in DIRECT:
        return products(a, b)
    refuse_bool(a, "bmm")
    return products(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)


def products(a: Array, b: Array, made: Array | None = None) -> Array:
    """`a @ b` of checked batches of any number of dimensions, which broadcast; into `made`, if that is given."""
    if providers.batches(a, b):
        return _products_in_c(a, b, made)
    if b.strides[-1] != b.dtype.itemsize and b.shape[-2] * b.shape[-1] <= SMALL_MATRIX:
        b = np.ascontiguousarray(b)
    return np.matmul(_blas_ready(a), _blas_ready(b), out=made)


def _products_in_c(a: Array, b: Array, made: Array | None) -> Array:
    lead = a.shape[:-2]
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0]:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = np.broadcast_to(a, (*lead, *a.shape[-2:])), np.broadcast_to(b, (*lead, *b.shape[-2:]))
    if made is None:
        made = np.empty((*lead, a.shape[-2], b.shape[-1]), a.dtype)
    if len(lead) == 1:
        providers.native.matmul_batch(made, a, b)
    else:
        for place in np.ndindex(*lead[:-1]):
            providers.native.matmul_batch(made[place], a[place], b[place])
    return made


def _expandable(bias: Array, shape: tuple[int, ...]) -> None:
    """Raise PyTorch's error unless `bias` broadcasts to `shape`."""
    lead = len(shape) - bias.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(tensor{list(bias.shape)}, size={list(shape)}): the number of sizes provided ({len(shape)}) must "
            f"be greater or equal to the number of dimensions in the tensor ({bias.ndim})"
        )
    for i, extent in enumerate(bias.shape):
        if extent not in (1, shape[lead + i]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[lead + i]}) must match the existing size ({extent}) at "
                f"non-singleton dimension {lead + i}.  Target sizes: {list(shape)}.  Tensor sizes: {list(bias.shape)}"
            )


def _factor(value: Any, a: Array) -> Array:
    return stored_scalar(value, np.dtype(np.float32) if a.dtype in HALF else a.dtype)


def combine(bias: Array, made: Array, beta: Any, alpha: Any, dtype: np.dtype, skips: bool = False) -> Array:
    """`beta * bias + alpha * made`, in the memory of the fresh array `made`. With beta 0, bias is not even read.

    With `skips` neither is a product with alpha 0: what BLAS does not compute has no NaN.
    """
    _expandable(bias, made.shape)
    if dtype.kind != "c" and (isinstance(alpha, complex) or isinstance(beta, complex)):
        raise no_room(dtype)
    if alpha != 1:
        if skips and alpha == 0:
            made[...] = 0
        else:
            made *= _factor(alpha, bias)
    if beta == 1:
        made += bias
    elif beta != 0:
        made += bias * _factor(beta, bias)
    return made if made.dtype == dtype else made.astype(dtype)


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF else a


def addmm(bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """`beta * bias + alpha * (a @ b)`."""
    if (a.dtype is b.dtype is bias.dtype and a.dtype in DIRECT and len(a.shape) == 2 == len(b.shape)
            and a.shape[1] == b.shape[0]):
        if beta == 1 and alpha == 1 and bias.shape == b.shape[1:]:
            row = expand_step(bias, (a.shape[0], b.shape[1]), False)
            if providers.native is not None:
                made = providers.native.matmul(a, b, bias)
                if made is not None:
                    return made
            made = a.dot(b)
            made += row
            return made
        return combine(bias, mm(a, b), beta, alpha, bias.dtype, True)
    if a.ndim != 2 or b.ndim != 2:
        which, found = ("mat1", a) if a.ndim != 2 else ("mat2", b)
        raise RuntimeError(f"{which} must be a matrix, got {found.ndim}-D tensor")
    if not bias.dtype == b.dtype == a.dtype:
        if bias.dtype != b.dtype:
            raise RuntimeError(
                f"self and mat2 must have the same dtype, but got {name_of(bias)} and {name_of(b)}"
            )
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {name_of(a)} and {name_of(b)}")
    check_matrices(a, b)
    refuse_bool(a, "addmm_impl_cpu_")
    return combine(bias, _wide(a).dot(_wide(b)), beta, alpha, bias.dtype, a.dtype not in HALF)


def baddbmm(bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """`beta * bias + alpha * (a @ b)` by batch."""
    check_batches(a, b)
    if bias.dtype != a.dtype:
        raise RuntimeError(f"Input dtypes must be the same, got: input {name_of(bias)}, batch1: {name_of(a)}, "
                           f"batch2: {name_of(b)}")
    refuse_bool(a, "baddbmm")
    made = products(_wide(a), _wide(b))
    return combine(bias, made, beta, alpha, bias.dtype)


def addbmm(bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """`beta * bias + alpha *` the sum over the batch of `a @ b`: one product over batch and inner dimension."""
    if a.ndim == b.ndim == 3 and a.shape[0] != b.shape[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {a.shape[0]} and {b.shape[0]}")
    if a.ndim == b.ndim == 3 and a.shape[2] != b.shape[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({size_text(a.shape[1:])} and {size_text(b.shape[1:])})")
    if not bias.dtype == a.dtype == b.dtype:
        other = b if bias.dtype != b.dtype else a
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {name_of(bias)} and {name_of(other)}")
    check_batches(a, b)
    refuse_bool(a, "addmm_impl_cpu_")
    batch, rows, inner = a.shape
    left = _wide(a).transpose(1, 0, 2).reshape(rows, batch * inner)
    made = left.dot(_wide(b).reshape(batch * inner, b.shape[2]))
    return combine(bias, made, beta, alpha, bias.dtype, True)


def check_matrix_vector(bias_size: int | None, a: Array, vector: Array) -> None:
    """PyTorch's conditions on a matrix times a vector."""
    if a.ndim != 2 or vector.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.ndim}, {vector.ndim}")
    if a.shape[1] != vector.shape[0] or (bias_size is not None and bias_size not in (1, a.shape[0])):
        rows = a.shape[0] if bias_size is None else bias_size
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({size_text(a.shape)}), vec ({vector.shape[0]})")
    if a.dtype != vector.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {name_of(vector)}, {name_of(a)}, and "
            f"{name_of(vector)}"
        )
    refuse_bool(a, "addmv_impl_cpu")


def mv(a: Array, vector: Array) -> Array:
    """Product of a matrix and a vector."""
    check_matrix_vector(None, a, vector)
    return product(a, vector)


def addmv(bias: Array, a: Array, vector: Array, beta: Any, alpha: Any) -> Array:
    """`beta * bias + alpha * (a @ vector)`."""
    check_matrix_vector(bias.shape[0] if bias.ndim else 1, a, vector)
    return combine(bias, _wide(a).dot(_wide(vector)), beta, alpha, bias.dtype, a.dtype not in HALF)


def dot(a: Array, b: Array) -> Array:
    """Inner product of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {name_of(a)} and {name_of(b)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] to have the same number of "
            f"elements, but got {a.size} and {b.size} elements respectively"
        )
    refuse_bool(a, "dot")
    return product(a, b)


def vdot(a: Array, b: Array) -> Array:
    """Inner product of two vectors, the first conjugated."""
    return dot(a.conj() if a.dtype.kind == "c" else a, b)


def addr(bias: Array, first: Array, second: Array, beta: Any, alpha: Any) -> Array:
    """`beta * bias + alpha *` the outer product of two vectors."""
    if first.ndim != 1 or second.ndim != 1:
        which, found = ("vec1", first) if first.ndim != 1 else ("vec2", second)
        raise RuntimeError(f"addr: Expected 1-D argument {which}, but got {found.ndim}-D")
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, float) and bias.dtype.kind in "iub":
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if bias.dtype == np.bool_:
        made = np.multiply.outer(first, second) & bool(alpha)
        _expandable(bias, made.shape)
        return made | (bias & bool(beta))
    made = np.multiply.outer(_wide(first), _wide(second))
    return combine(bias, made, beta, alpha, bias.dtype)


def linalg_cross(a: Array, b: Array, dim: int) -> Array:
    """Cross product of 3-vectors along `dim`."""
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if not -a.ndim <= dim < a.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-a.ndim}, {a.ndim - 1}], "
                         f"but got {dim})")
    if a.shape[dim] != 3 or b.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[dim]} and {b.shape[dim]}"
        )
    ahead, behind = [1, 2, 0], [2, 0, 1]
    return a.take(ahead, dim) * b.take(behind, dim) - a.take(behind, dim) * b.take(ahead, dim)
