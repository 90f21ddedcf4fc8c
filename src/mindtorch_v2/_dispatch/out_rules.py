"""Which dtypes a tensor given as `out=` may have, op by op, and which ops made of others take one.

By default a result is cast to the dtype of `out` if that loses no kind (floats do not become integers). Some ops want
their own dtype exactly, a few compute in that of `out`. PyTorch has no rule that tells which is which; the oracle's
tests ask it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dtype import FROM_NUMPY
from .promotion import check_cast, pretty

_EXACT = """
    _log_softmax _softmax addbmm addmm addmv alias_copy all amax amin aminmax any argmax argmin as_strided_copy
    avg_pool2d avg_pool3d baddbmm bitwise_not bmm bucketize ceil complex conj_physical cross cummax cummin diag
    diagonal_copy dot expand_copy fft_ihfft float_power floor frac frexp gather gelu hardshrink heaviside histc
    histogram index_add index_copy index_reduce index_select inner inverse isin isneginf isposinf kthvalue
    linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex
    linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_norm linalg_multi_dot linalg_norm
    linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals
    linalg_vecdot linalg_vector_norm linear log_softmax logcumsumexp lu_solve lu_unpack masked_select matmul
    matrix_power max.dim min.dim mm mode msort multinomial mv nan_to_num nanquantile narrow_copy neg nonzero norm
    ormqr permute_copy polar qr quantile renorm round scatter scatter_add scatter_reduce searchsorted sgn sign
    signbit slice_scatter softmax softplus softshrink sort split_with_sizes_copy squeeze_copy svd t_copy take
    take_along_dim tensordot topk transpose_copy triangular_solve tril triu trunc unbind_copy unfold_copy
    unsqueeze_copy vdot view_copy where
"""
EXACT = frozenset(_EXACT.split())
# Ops that compute in the dtype of `out=`, unless they are given one, which must be that of `out=` then.
COMPUTED_AS_OUT = frozenset({"cumprod", "cumsum", "nansum", "prod", "sum"})
# Ops made of others that take `out=`; those with kernels of their own all do.
_COMPOSITES = """
    avg_pool2d avg_pool3d cholesky_solve column_stack concat concatenate conj_physical cross diag diff dstack ger
    hstack inner inverse kron linear log_softmax lu_solve matrix_power msort nanmean ormqr outer qr row_stack
    softmax square svd take_along_dim vstack
"""
COMPOSITES = frozenset(_COMPOSITES.split())
# Ops that read elements after others were written: `out=` may not be one of the operands.
APART = frozenset({"gather", "index_select", "kthvalue", "masked_select", "take"})

NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
         "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
         "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}
FOUND = frozenset({"bitwise_not", "ceil", "conj_physical", "floor", "frac", "gelu", "hardshrink", "neg", "round", "sgn",
                   "sign", "softplus", "softshrink", "trunc"})
JOINS = frozenset({"cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack"})
BOOLEAN = frozenset({"isneginf", "isposinf", "signbit"})


def check_apart(out: Any, array: Any) -> None:
    """Refuse an `out=` that lies on an operand's memory."""
    if (type(out) is np.ndarray is type(array) and out.flags.forc and array.flags.forc
            and np.may_share_memory(out, array)):
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer "
                           "to a single memory location. Please clone() the tensor before performing the operation.")


def check_out(op: Any, result: np.dtype, wanted: np.dtype) -> None:
    """Refuse to store a result of one dtype into an `out=` of another if PyTorch does."""
    name = op.name
    if name not in EXACT and op.key not in EXACT and name not in COMPUTED_AS_OUT:
        try:
            check_cast(result, wanted)
        except RuntimeError:
            if name not in JOINS:
                raise
            raise TypeError("torch.cat(): input types can't be cast to the desired output type "
                            f"{pretty(FROM_NUMPY[wanted])}") from None
        return
    if name in ("all", "any") and wanted == np.uint8:
        return
    source, target = FROM_NUMPY[result], FROM_NUMPY[wanted]
    if name in FOUND:
        raise RuntimeError(f"Found dtype {pretty(target)} but expected {pretty(source)}")
    if name in BOOLEAN:
        raise RuntimeError(f"{name} does not support non-boolean outputs.")
    if name in ("all", "any"):
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {pretty(target)}")
    if name == "nonzero":
        raise RuntimeError("nonzero: Expected out tensor to have scalar type Long but got scalar type"
                           f"{pretty(target)}")
    if name in ("amax", "amin"):
        raise RuntimeError(f"Expected the dtype for input and out to match, but got {pretty(source)} for input's dtype "
                           f"and {pretty(target)} for out's dtype.")
    if name in ("searchsorted", "bucketize"):
        raise RuntimeError(f"torch.{name}(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
                           "depending on whether out_int32 flag is True, but we got output tensor's dtype "
                           f"{pretty(target)}")
    if name == "float_power":
        raise RuntimeError(f"the output given to float_power has dtype {pretty(target)} but the operation's result "
                           f"requires dtype {pretty(source)}")
    if name == "multinomial":
        raise RuntimeError(f"multinomial expects Long tensor out, got: {pretty(target)}")
    if name == "nansum":
        raise RuntimeError(f"nansum: provided dtype must match dtype of result. Got {pretty(target)} and "
                           f"{pretty(source)}.")
    expected, got = (NAMES.get(d.name, d.name) for d in (source, target))
    raise RuntimeError(f"Expected out tensor to have dtype {expected}, but got {got} instead")
