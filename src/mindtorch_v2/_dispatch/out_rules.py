"""The dtypes that a tensor given as `out=` may have, op by op, and the composite ops that take `out=`.

By default a result is cast to the dtype of `out` if that loses no kind (floats do not become integers). Some ops
require exactly their own dtype, a few compute in that of `out`. PyTorch has no rule for this; the oracle's tests
compare with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dtype import FROM_NUMPY
from .promotion import check_cast, pretty

_EXACT = """
    _int_mm
    _log_softmax _softmax abs addbmm addmm addmv alias_copy all amax amin aminmax any argmax argmin as_strided_copy
    avg_pool2d avg_pool3d baddbmm bitwise_not bmm bucketize ceil clamp clamp_max clamp_min complex conj_physical
    cross cummax cummin diag
    diagonal_copy dot expand_copy fft_ihfft float_power floor frac frexp gather gelu hardshrink heaviside histc
    histogram index_add index_copy index_reduce index_select inner inverse isin isneginf isposinf kthvalue
    linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex
    linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve
    linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matmul
    linalg_matrix_norm linalg_matrix_power linalg_multi_dot linalg_norm
    linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals
    linalg_vecdot linalg_vector_norm linear log_sigmoid log_softmax logcumsumexp lu_solve lu_unpack masked_select matmul
    matrix_power max.dim median.dim min.dim mm mode msort multinomial mv nan_to_num nanmedian.dim nanquantile
    narrow_copy native_batch_norm neg nonzero norm
    ormqr permute_copy polar qr quantile renorm round scatter scatter_add scatter_reduce searchsorted sgn sign
    signbit slice_scatter softmax softplus softshrink sort split_with_sizes_copy squeeze_copy svd t_copy take
    take_along_dim tensordot topk transpose_copy triangular_solve tril triu trunc unbind_copy unfold_copy
    unsqueeze_copy vdot view_copy where
"""
EXACT = frozenset(_EXACT.split())
# Overloads of these that cast.
CASTING = frozenset({"clamp.Tensor", "clamp_max.Tensor", "clamp_min.Tensor"})
# Ops that compute in the dtype of `out=`, unless they are given one, which must then be that of `out=`.
COMPUTED_AS_OUT = frozenset({"cumprod", "cumsum", "nansum", "prod", "sum"})
# Composite ops that take `out=`; all ops with kernels of their own take it.
_COMPOSITES = """
    _chunk_cat _native_batch_norm_legit
    adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d cholesky_solve column_stack concat concatenate
    conj_physical cross diag diff dstack ger hstack inner inverse kron linear log_sigmoid log_softmax lu_solve
    matrix_power msort nanmean nll_loss nll_loss2d orgqr ormqr outer qr row_stack slogdet softmax square svd
    take_along_dim vstack
"""
COMPOSITES = frozenset(_COMPOSITES.split())
# Ops with kernels of their own that take none.
_WITHOUT_OUT = """
    _convolution _dirichlet_grad _embedding_bag _log_softmax_backward_data _masked_softmax _prelu_kernel _safe_softmax
    _sample_dirichlet _softmax_backward_data _standard_gamma_grad _trilinear _unique2 affine_grid_generator
    as_strided_scatter binary_cross_entropy_with_logits bincount celu clone constant_pad_nd conv_tbc convolution
    diag_embed diagonal_scatter dist embedding flip grid_sampler_2d grid_sampler_3d isfinite isinf isreal masked_scatter
    native_channel_shuffle native_dropout native_group_norm native_layer_norm pixel_shuffle pixel_unshuffle put relu
    roll rot90 segment_reduce select_scatter std_mean trace unsafe_split unsafe_split_with_sizes var_mean
"""
WITHOUT_OUT = frozenset(_WITHOUT_OUT.split())
# Ops whose results are row-major in an `out=` that is resized, whatever order they have without it.
BY_ROWS = frozenset({"cholesky", "cholesky_solve", "linalg_tensorinv", *(
    f"fft_{kind}fft{many}" for kind in ("", "i", "r", "ir", "h", "ih") for many in ("", "2", "n"))})
# Ops that read elements after others were written: `out=` may not be one of the operands.
APART = frozenset({"cat", "gather", "index_select", "kthvalue", "masked_select", "take"})
# Those of them that first resize an `out=` of another shape, so that it may have shown elements twice.
RESIZED_FIRST = frozenset({"cat", "gather", "kthvalue"})

NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
         "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
         "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}
FOUND = frozenset({"abs", "bitwise_not", "ceil", "clamp", "clamp_max", "clamp_min",
                   "conj_physical", "floor", "frac", "gelu", "hardshrink", "neg",
                   "round", "sgn", "sign", "softplus", "softshrink", "trunc"})
JOINS = frozenset({"cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack"})
REAL_SPECTRA = frozenset({"fft_hfft", "fft_hfft2", "fft_hfftn", "fft_irfft", "fft_irfft2", "fft_irfftn"})
BOOLEAN = frozenset({"isneginf", "isposinf", "signbit"})


_FITS = "Expected {noun} to be safely castable from {{source}} dtype, but got {noun} with dtype {{target}}"
# The text of the error for a dtype: {source} is the result's, {target} that of `out=`.
WORDS = {
    **{op: f"{said}: {_FITS.format(noun=noun)}" for op, said, noun in (
        ("cholesky", "cholesky", "result"), ("cholesky_solve", "cholesky_solve", "result"),
        ("cholesky_inverse", "cholesky_inverse", "result"), ("linalg_pinv", "linalg.pinv", "result"),
        ("linalg_matrix_rank", "torch.linalg.matrix_rank", "result"),
        ("linalg_cond", "linalg.cond", "result"), ("matrix_power", "matrix_power", "result"),
        ("linalg_matrix_power", "matrix_power", "result"), ("linalg_tensorinv", "tensorinv", "result"),
        ("linalg_tensorsolve", "tensorsolve", "result"), ("geqrf", "torch.geqrf", "a"),
        ("linalg_householder_product", "torch.linalg.householder_product", "result"),
        ("linalg_eig", "torch.linalg.eig", "eigenvalues"), ("linalg_eigvals", "torch.linalg.eigvals", "eigenvalues"),
        ("linalg_lstsq", "torch.linalg.lstsq", "solution"))},
    **{op: f"{op.replace('linalg_', 'linalg.')} expected out tensor dtype {{source}} but got: {{target}}"
       for op in ("linalg_norm", "linalg_matrix_norm")},
    "linalg_vecdot": "linalg.vecdot: Expected out of dtype{source} but found {target}",
    "linalg_solve_triangular": "linalg.solve_triangular: expected scalar type {source} but found {target}",
    **{op: op + ": result dtype {target} does not match input dtype {source}" for op in ("dot", "vdot")},
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{source} and result "
             "has dtype {target}",
    "kthvalue": "kthvalue(): output values must be of same type as input, but are {target}, not {source}",
    "mode": "mode(): expected scalar type '{source}' but got '{target}' for values output",
    **{op: op + ": expected scalar_type {source} but found {target}" for op in ("cummax", "cummin", "logcumsumexp")},
    **{op: op + "() out tensor must be same dtype as the input tensor, {source}, not {target}"
       for op in ("quantile", "nanquantile")},
    **{op: op + "(): self and result must have the same scalar type, not {source} and {target}"
       for op in ("index_select", "masked_select")},
    **dict.fromkeys(("inner", "tensordot"), "tensordot: Expected the output tensor to have dtype {source}, but got an "
                    "output tensor with dtype {target}"),
    "_int_mm": "_int_mm: Expected result dtype to be of type {source}, but got {target}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {source} and out.dtype = "
            "{target}",
    "where": "where: Expected out type to be {source} but got {target}",
    "frexp": "torch.frexp() expects mantissa to have dtype {source} but got {target}",
    "nan_to_num": "nan_to_num: dtype of out: {target} should be same as input: {source}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes, {source} and {target}.",
    "histc": "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {source} and "
             "hist {target}",
    **dict.fromkeys(("complex", "polar"), "Expected object of scalar type {source} but got scalar type {target} for "
                    "argument 'out'"),
    "logsumexp": "logsumexp(): Expected floating point type for result tensor, but got: {target}",
}


def _said(name: str, result: np.dtype, wanted: np.dtype) -> str:
    return WORDS[name].format(source=pretty(FROM_NUMPY[result]), target=pretty(FROM_NUMPY[wanted]))


def check_out(op: Any, result: np.dtype, wanted: np.dtype, inputs: tuple[Any, ...] = ()) -> None:
    """Raise PyTorch's error if a result of one dtype cannot go into an `out=` of another."""
    name = op.name
    if op.key in CASTING or (name not in EXACT and op.key not in EXACT and name not in COMPUTED_AS_OUT) or (
            name == "abs" and inputs and inputs[0].dtype.kind == "c"):  # whose result has another dtype anyway
        try:
            if name in REAL_SPECTRA and wanted.kind == "c":
                raise RuntimeError("a real result for a complex tensor")
            check_cast(result, wanted)
        except RuntimeError:
            if name.startswith("fft_"):
                kind = "complex" if FROM_NUMPY[result].is_complex else "floating point"
                raise RuntimeError(f"{name[4:]} expects a {kind} output tensor, but got "
                                   f"{pretty(FROM_NUMPY[wanted])}") from None
            if name in WORDS:
                raise RuntimeError(_said(name, result, wanted)) from None
            if name not in JOINS:
                raise
            raise TypeError("torch.cat(): input types can't be cast to the desired output type "
                            f"{pretty(FROM_NUMPY[wanted])}") from None
        return
    if name in ("all", "any") and wanted.name in ("bool", "uint8"):
        return  # of bytes too, whose result is bytes
    source, target = FROM_NUMPY[result], FROM_NUMPY[wanted]
    if name in WORDS:
        raise RuntimeError(_said(name, result, wanted))
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
        raise RuntimeError(f"torch.{name}(): output tensor's dtype is wrong: it is {pretty(target)}, and positions are "
                           "int64, or int32 with out_int32=True")
    if name == "float_power":
        raise RuntimeError(f"the output given to float_power has dtype {pretty(target)}, and its result is "
                           f"{pretty(source)}")
    if name == "multinomial":
        raise RuntimeError(f"multinomial expects Long tensor out, got: {pretty(target)}")
    if name == "nansum":
        raise RuntimeError(f"nansum: provided dtype must match dtype of result. Got {pretty(target)} and "
                           f"{pretty(source)}.")
    expected, got = (NAMES.get(d.name, d.name) for d in (source, target))
    raise RuntimeError(f"Expected out tensor to have dtype {expected}, but got {got} instead")
