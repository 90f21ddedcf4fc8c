"""`torch.testing._internal.common_methods_invocations`: the common ops, for tests that run over all of them.

One line per op: its name, the dtypes it takes (b: bool, i: integers, f: floats, c: complex) and NumPy's function. What
PyTorch's own list has besides (some four hundred more ops, samples for single ones, a second form in Python of many)
is not here.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._construct import tensor
from ..._dispatch.namespace import aten
from ..._dtype import bool_, dtype, int64, uint8
from .._creation import make_tensor
from .._utils import wrapper_set_seed
from . import opinfo
from .common_dtype import complex_types, floating_types_and, get_all_dtypes, integral_types
from .opinfo.core import *  # noqa: F403 - tests import these from here as well
from .opinfo.core import (
    _NOTHING,
    XS,
    BinaryUfuncInfo,
    DecorateInfo,
    ForeachFuncInfo,
    L,
    M,
    OpInfo,
    ReductionOpInfo,
    S,
    SampleInput,
    ShapeFuncInfo,
    SpectralFuncInfo,
    SpectralFuncType,
    UnaryUfuncInfo,
    sample_inputs_foreach,
)
from .opinfo.refs import (
    ElementwiseBinaryPythonRefInfo,
    ElementwiseUnaryPythonRefInfo,
    PythonRefInfo,
    ReductionPythonRefInfo,
)
from .opinfo.utils import np_unary_ufunc_integer_promotion_wrapper as promoted
from .opinfo.utils import prod_numpy, reference_reduction_numpy

__all__ = ["XS", "_NOTHING", "ElementwiseBinaryPythonRefInfo", "ElementwiseUnaryPythonRefInfo", "L", "M",
           "PythonRefInfo", "ReductionPythonRefInfo", "S", "binary_ufuncs", "op_db", "opinfo", "reduction_ops",
           "shape_funcs", "spectral_funcs", "unary_ufuncs", "wrapper_set_seed"]

_BY_NAME = {kind.name: kind for kind in get_all_dtypes()}
_HALVES = (_BY_NAME["float16"], _BY_NAME["bfloat16"])
KINDS: dict[str, tuple[dtype, ...]] = {"b": (bool_,), "i": tuple(integral_types()),
                                       "f": tuple(floating_types_and(*_HALVES)), "c": tuple(complex_types())}


def _dtypes(letters: str) -> tuple[dtype, ...]:
    return tuple(kind for letter in letters for kind in KINDS[letter])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _angle(x: Any) -> Any:
    """NumPy tells -0.0 from 0.0 here, and nan of a real number is no angle."""
    return np.angle(x) if np.iscomplexobj(x) else np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)).astype(x.dtype)


def _sgn(x: Any) -> Any:
    if not np.iscomplexobj(x):
        return np.nan_to_num(np.sign(x))
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))).astype(x.dtype)


# name: dtypes, reference, what else there is to know
_UNARY: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "abs": ("ifc", np.abs, {"supports_complex_to_float": True, "aliases": ("absolute",)}),
    "neg": ("ifc", np.negative, {"aliases": ("negative",)}),
    "positive": ("ifc", np.positive, {"supports_out": False}),
    "square": ("bifc", np.square, {}),
    "sign": ("bif", lambda x: x if x.dtype == np.bool_ else np.nan_to_num(np.sign(x)), {}),
    "sgn": ("bifc", lambda x: x if x.dtype == np.bool_ else _sgn(x), {"handles_complex_extremal_values": False}),
    "ceil": ("if", np.ceil, {}),
    "floor": ("if", np.floor, {}),
    "trunc": ("if", np.trunc, {"aliases": ("fix",)}),
    "round": ("if", np.round, {}),
    "frac": ("f", lambda x: x - np.trunc(x), {"handles_large_floats": False}),
    "isnan": ("bifc", np.isnan, {"supports_out": False, "supports_autograd": False}),
    "isinf": ("bifc", np.isinf, {"supports_out": False, "supports_autograd": False}),
    "isfinite": ("bifc", np.isfinite, {"supports_out": False, "supports_autograd": False}),
    "isposinf": ("bif", np.isposinf, {"supports_autograd": False}),
    "isneginf": ("bif", np.isneginf, {"supports_autograd": False}),
    "isreal": ("bifc", np.isreal, {"supports_out": False, "supports_autograd": False}),
    "signbit": ("bif", lambda x: np.zeros(x.shape, bool) if x.dtype == np.bool_ else np.signbit(x)
                if x.dtype.kind == "f" else x < 0, {"supports_autograd": False}),
    "logical_not": ("bifc", np.logical_not, {"supports_autograd": False}),
    "bitwise_not": ("bi", np.bitwise_not, {"supports_autograd": False}),
    "conj_physical": ("bifc", np.conj, {"supports_sparse": True}),
    "nan_to_num": ("bif", np.nan_to_num, {}),
    **{name: ("bifc", promoted(getattr(np, name)), {"promotes_int_to_float": True, **more}) for name, more in {  # type: ignore[dict-item]
        "sin": {"handles_large_floats": False}, "cos": {"handles_large_floats": False}, "sinh": {}, "cosh": {},
        "tanh": {"handles_complex_extremal_values": False},
        "exp": {}, "log": {"domain": (0, None)}, "log2": {"domain": (0, None)}, "log10": {"domain": (0, None)},
        "sqrt": {"domain": (0, None)}, "expm1": {}, "log1p": {"domain": (-1, None)},
        "reciprocal": {}}.items()},
    **{name: ("bifc", promoted(getattr(np, f"arc{name[1:]}")), {"promotes_int_to_float": True, "domain": domain,
                                                                "aliases": (f"arc{name[1:]}",)})
       for name, domain in (("asin", (-1, 1)), ("acos", (-1, 1)), ("atan", (None, None)), ("asinh", (None, None)))},
    "tan": ("bifc", promoted(np.tan), {"promotes_int_to_float": True, "handles_large_floats": False,
                                       "handles_complex_extremal_values": False}),
    "exp2": ("bifc", promoted(np.exp2), {"promotes_int_to_float": True}),
    "sigmoid": ("bifc", promoted(_sigmoid), {"promotes_int_to_float": True, "aliases": ("special.expit",)}),
    "rsqrt": ("bifc", promoted(lambda x: 1 / np.sqrt(x)), {"promotes_int_to_float": True, "domain": (0, None)}),
    "deg2rad": ("bif", promoted(np.radians), {"promotes_int_to_float": True}),
    "rad2deg": ("bif", promoted(np.degrees), {"promotes_int_to_float": True}),
    "sinc": ("bifc", promoted(np.sinc), {"promotes_int_to_float": True, "handles_large_floats": False}),
    "angle": ("bifc", promoted(_angle), {"promotes_int_to_float": True, "supports_complex_to_float": True,
                                           "supports_inplace_autograd": False}),
    "erf": ("bif", None, {"promotes_int_to_float": True}),
    "erfc": ("bif", None, {"promotes_int_to_float": True}),
    "lgamma": ("bif", None, {"promotes_int_to_float": True}),
    "digamma": ("bif", None, {"promotes_int_to_float": True}),
    "nn.functional.relu": ("if", lambda x: np.maximum(x, 0), {"supports_out": False}),
    "nn.functional.relu6": ("if", lambda x: np.clip(x, 0, 6), {"supports_out": False}),
    "nn.functional.softsign": ("ifc", lambda x: x / (1 + np.abs(x)),
                               {"supports_out": False, "promotes_int_to_float": True,
                                "handles_complex_extremal_values": False}),
    "nn.functional.silu": ("f", lambda x: x * _sigmoid(x), {"supports_out": False}),
}
unary_ufuncs = [UnaryUfuncInfo(name, dtypes=_dtypes(kinds), ref=ref, **more)
                for name, (kinds, ref, more) in _UNARY.items()]

_POSITIVE, _NONZERO = {"low": 1}, {"exclude_zero": True}
_BINARY: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "add": ("bifc", np.add, {"supports_two_python_scalars": True}),
    "sub": ("ifc", np.subtract, {"supports_two_python_scalars": True, "aliases": ("subtract",)}),
    "mul": ("bifc", np.multiply, {"supports_two_python_scalars": True, "aliases": ("multiply",)}),
    "div": ("bifc", np.true_divide, {"promotes_int_to_float": True, "aliases": ("divide", "true_divide"),
                                     "supports_two_python_scalars": True, "rhs_make_tensor_kwargs": _NONZERO}),
    "pow": ("ifc", None, {"supports_one_python_scalar": True, "lhs_make_tensor_kwargs": {"low": 0, "high": 4},
                              "rhs_make_tensor_kwargs": {"low": 0, "high": 4}}),
    "fmod": ("if", np.fmod, {"rhs_make_tensor_kwargs": _NONZERO}),
    "remainder": ("if", np.remainder, {"rhs_make_tensor_kwargs": _NONZERO, "supports_one_python_scalar": True}),
    "floor_divide": ("if", np.floor_divide, {"rhs_make_tensor_kwargs": _NONZERO, "supports_autograd": False,
                                             "supports_two_python_scalars": True}),
    "maximum": ("bif", np.maximum, {"supports_rhs_python_scalar": False}),
    "minimum": ("bif", np.minimum, {"supports_rhs_python_scalar": False}),
    "fmax": ("bif", np.fmax, {"supports_rhs_python_scalar": False}),
    "fmin": ("bif", np.fmin, {"supports_rhs_python_scalar": False}),
    "atan2": ("bif", None, {"promotes_int_to_float": True, "supports_rhs_python_scalar": False,
                            "aliases": ("arctan2",)}),
    "hypot": ("f", np.hypot, {"supports_rhs_python_scalar": False}),
    "copysign": ("bif", None, {"promotes_int_to_float": True}),
    "logaddexp": ("fc", None, {"supports_rhs_python_scalar": False}),
    "nextafter": ("f", None, {"supports_autograd": False, "supports_rhs_python_scalar": False}),
    "xlogy": ("bif", None, {"promotes_int_to_float": True, "supports_one_python_scalar": True,
                            "rhs_make_tensor_kwargs": _POSITIVE}),
    "gcd": ("i", np.gcd, {"supports_autograd": False, "supports_rhs_python_scalar": False}),
    "lcm": ("i", None, {"supports_autograd": False, "supports_rhs_python_scalar": False}),
    "isclose": ("bifc", np.isclose, {"supports_autograd": False, "supports_out": False, "always_returns_bool": True,
                                     "supports_rhs_python_scalar": False}),
    **{name: (kinds, ref, {"supports_autograd": False, "always_returns_bool": True}) for name, kinds, ref in (
        ("eq", "bifc", np.equal), ("ne", "bifc", np.not_equal), ("lt", "bif", np.less), ("le", "bif", np.less_equal),
        ("gt", "bif", np.greater), ("ge", "bif", np.greater_equal))},
    **{name: ("bifc", getattr(np, name), {"supports_autograd": False, "always_returns_bool": True,
                                          "supports_rhs_python_scalar": False})
       for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: ("bi", getattr(np, name), {"supports_autograd": False, "supports_one_python_scalar": True})
       for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "heaviside": ("bif", None, {"supports_autograd": False, "supports_rhs_python_scalar": False}),
}
binary_ufuncs = [BinaryUfuncInfo(name, dtypes=_dtypes(kinds), ref=ref, **more)
                 for name, (kinds, ref, more) in _BINARY.items()]
binary_ufuncs_and_refs = list(binary_ufuncs)


def _whole(x: Any, **kwargs: Any) -> Any:
    return x.astype(np.int64) if x.dtype.kind in "biu" else x


def _reduction(fn: Callable[..., Any]) -> Callable[..., Any]:
    """One of NumPy's reductions; integers are summed in int64."""
    reduced = reference_reduction_numpy(fn)
    return lambda x, *args, **kwargs: reduced(_whole(x), *args, **kwargs)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, with PyTorch's correction of 1 and its names."""
    return lambda x, *args, unbiased=True, correction=None, **kwargs: function(
        x, *args, ddof=correction if correction is not None else int(unbiased), **kwargs)


_SPREAD: dict[str, Any] = {"nan_policy": "propagate", "promotes_int_to_float": True, "complex_to_real": True}
_REDUCTIONS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "sum": ("bifc", _reduction(np.sum), {"identity": 0, "nan_policy": "propagate", "promotes_int_to_int64": True}),
    "prod": ("bifc", prod_numpy, {"identity": 1, "nan_policy": "propagate", "promotes_int_to_int64": True,
                                  "supports_multiple_dims": False}),
    "nansum": ("bif", _reduction(np.nansum), {"identity": 0, "nan_policy": "omit", "promotes_int_to_int64": True}),
    "mean": ("fc", reference_reduction_numpy(np.mean), {"nan_policy": "propagate", "promotes_int_to_float": True}),
    "nanmean": ("f", reference_reduction_numpy(np.nanmean), {"nan_policy": "omit", "promotes_int_to_float": True}),
    "std": ("fc", reference_reduction_numpy(_spread(np.std)), _SPREAD),
    "var": ("fc", reference_reduction_numpy(_spread(np.var)), _SPREAD),
    "count_nonzero": ("bifc", reference_reduction_numpy(np.count_nonzero),
                      {"identity": 0, "result_dtype": int64, "supports_autograd": False}),
    "amax": ("bif", reference_reduction_numpy(np.amax), {"nan_policy": "propagate"}),
    "amin": ("bif", reference_reduction_numpy(np.amin), {"nan_policy": "propagate"}),
    "argmax": ("if", reference_reduction_numpy(np.argmax, supports_keepdims=False),
               {"result_dtype": int64, "supports_multiple_dims": False,
                "supports_autograd": False}),
    "argmin": ("if", reference_reduction_numpy(np.argmin, supports_keepdims=False),
               {"result_dtype": int64, "supports_multiple_dims": False,
                "supports_autograd": False}),
    "all": ("bifc", reference_reduction_numpy(np.all), {"identity": True, "result_dtype": bool_,
                                                        "supports_autograd": False}),
    "any": ("bifc", reference_reduction_numpy(np.any), {"identity": False, "result_dtype": bool_,
                                                        "supports_autograd": False}),
}
# What a reduction cannot do, by the names of the tests that PyTorch leaves out for it.
_LEFT_OUT = {
    "dim_empty dim_empty_keepdim": "sum prod nansum mean nanmean std var amax amin count_nonzero",
    "dim_default_keepdim": "sum prod mean std var count_nonzero",
    "dim_none dim_none_keepdim": "prod",
    "dim_none_keepdim dim_single_keepdim dim_multi_keepdim dim_multi_unsorted_keepdim dim_offbounds_keepdim":
        "count_nonzero",
}


def _left_out(name: str) -> tuple[DecorateInfo, ...]:
    found = [DecorateInfo(unittest.skip("this op cannot do it"), "TestReductions", f"test_{test}")
             for tests, ops in _LEFT_OUT.items() if name in ops.split() for test in tests.split()]
    if name in ("all", "any"):  # of bytes, they are bytes
        found.append(DecorateInfo(unittest.expectedFailure, "TestReductions", "test_result_dtype", dtypes=[uint8]))
    return tuple(found)


reduction_ops = [ReductionOpInfo(name, dtypes=_dtypes(kinds), ref=ref, skips=_left_out(name), **more)
                 for name, (kinds, ref, more) in _REDUCTIONS.items()]
reference_masked_ops: list[ReductionOpInfo] = []


def _repeats(op: Any, device: Any, dtype: dtype, requires_grad: bool, **kwargs: Any) -> Iterator[SampleInput]:
    for shape, times in (((), ()), ((), (2,)), ((2, 3), (1, 2)), ((2, 3), (2, 1, 3)), ((4,), (0,))):
        yield SampleInput(make_tensor(shape, device=device, dtype=dtype, requires_grad=requires_grad), times)


def _repeat(x: Any, times: Any) -> Any:
    return x.repeat(times)


shape_funcs = [
    ShapeFuncInfo(name, op=op, ref=np.tile, dtypes=_dtypes("bifc"), sample_inputs_func=_repeats, supports_out=False)
    for name, op in (("repeat", _repeat), ("tile", None))
]

_DIMENSIONS = {"": SpectralFuncType.OneD, "2": SpectralFuncType.TwoD, "n": SpectralFuncType.ND}
spectral_funcs = [
    SpectralFuncInfo(f"fft.{name}{ending}", ref=getattr(np.fft, name + ending, None), ndimensional=ndimensional,
                     dtypes=tuple(one for one in _dtypes(kinds) if one not in _HALVES), aten_name=f"fft_{name}{ending}",
                     promotes_int_to_float=True)
    for name, kinds in (("fft", "bifc"), ("ifft", "bifc"), ("rfft", "bif"), ("irfft", "bifc"), ("hfft", "bifc"),
                        ("ihfft", "bif"))
    for ending, ndimensional in _DIMENSIONS.items()
]

# Other ops: dtypes, whether they have `out=`, and the arguments of one call, made by a function that draws a tensor.
_OTHER: dict[str, tuple[str, bool, Callable[[Any], tuple[Any, ...]]]] = {
    "mm": ("ifc", True, lambda t: (t(3, 4), t(4, 5))),
    "bmm": ("ifc", True, lambda t: (t(2, 3, 4), t(2, 4, 5))),
    "mv": ("ifc", True, lambda t: (t(3, 4), t(4))),
    "dot": ("ifc", True, lambda t: (t(4), t(4))),
    "matmul": ("ifc", True, lambda t: (t(2, 3, 4), t(4, 5))),
    "addmm": ("ifc", True, lambda t: (t(3, 5), t(3, 4), t(4, 5))),
    "outer": ("bifc", True, lambda t: (t(3), t(4))),
    "kron": ("bifc", True, lambda t: (t(2, 3), t(3, 2))),
    "trace": ("ifc", False, lambda t: (t(3, 3),)),
    "tril": ("bifc", True, lambda t: (t(3, 4), 1)),
    "triu": ("bifc", True, lambda t: (t(3, 4), -1)),
    "diag": ("bifc", True, lambda t: (t(3, 3),)),
    "diagonal": ("bifc", False, lambda t: (t(3, 4), 1)),
    "t": ("bifc", False, lambda t: (t(2, 3),)),
    "transpose": ("bifc", False, lambda t: (t(2, 3, 4), 0, -1)),
    "permute": ("bifc", False, lambda t: (t(2, 3, 4), (2, 0, 1))),
    "reshape": ("bifc", False, lambda t: (t(2, 3, 4), (4, -1))),
    "flatten": ("bifc", False, lambda t: (t(2, 3, 4), 1)),
    "squeeze": ("bifc", False, lambda t: (t(2, 1, 4),)),
    "unsqueeze": ("bifc", False, lambda t: (t(2, 3), 1)),
    "movedim": ("bifc", False, lambda t: (t(2, 3, 4), 0, 2)),
    "flip": ("bifc", False, lambda t: (t(2, 3), (0, 1))),
    "roll": ("bifc", False, lambda t: (t(2, 3), 2, 1)),
    "rot90": ("bifc", False, lambda t: (t(2, 3), 1, (0, 1))),
    "cat": ("bifc", True, lambda t: ([t(2, 3), t(1, 3)],)),
    "stack": ("bifc", True, lambda t: ([t(2, 3), t(2, 3)], 1)),
    "hstack": ("bifc", True, lambda t: ([t(2, 3), t(2, 1)],)),
    "vstack": ("bifc", True, lambda t: ([t(2, 3), t(1, 3)],)),
    "split": ("bifc", False, lambda t: (t(5, 3), 2)),
    "chunk": ("bifc", False, lambda t: (t(5, 3), 2)),
    "unbind": ("bifc", False, lambda t: (t(3, 2),)),
    "clone": ("bifc", False, lambda t: (t(2, 3),)),
    "cumsum": ("ifc", True, lambda t: (t(3, 4), 1)),
    "cumprod": ("ifc", True, lambda t: (t(3, 4), 0)),
    "diff": ("bifc", True, lambda t: (t(3, 4),)),
    "sort": ("bif", True, lambda t: (t(3, 4), 1)),
    "msort": ("bif", True, lambda t: (t(3, 4),)),
    "topk": ("if", True, lambda t: (t(3, 4), 2)),
    "clamp": ("if", True, lambda t: (t(3, 4), 1, 3)),
    "masked_fill": ("bifc", False, lambda t: (t(3, 4), t(3, 4) == 0, 1)),
    "where": ("bifc", True, lambda t: (t(3, 4) == 0, t(3, 4), t(4))),
    "index_select": ("bifc", True, lambda t: (t(3, 4), 1, tensor([2, 0]))),
    "gather": ("bifc", True, lambda t: (t(3, 4), 1, tensor([[2], [0]]))),
    "take_along_dim": ("bifc", True, lambda t: (t(3, 4), tensor([[2], [0], [1]]), 1)),
    "count_nonzero": ("bifc", False, lambda t: (t(3, 4), 1)),
    "nonzero": ("bifc", True, lambda t: (t(3, 4),)),
    "logsumexp": ("bifc", True, lambda t: (t(3, 4), 1)),
    "softmax": ("f", False, lambda t: (t(3, 4), 1)),
    "log_softmax": ("f", False, lambda t: (t(3, 4), 1)),
    "nn.functional.linear": ("ifc", False, lambda t: (t(2, 4), t(3, 4), t(3))),
    "nn.functional.mse_loss": ("f", False, lambda t: (t(3), t(3))),
    "nn.functional.layer_norm": ("f", False, lambda t: (t(3, 4), (4,))),
    "nn.functional.gelu": ("f", False, lambda t: (t(3, 4),)),
}
_NO_GRADIENT = ("count_nonzero", "nonzero")


def _call(arguments: Callable[[Any], tuple[Any, ...]]) -> Callable[..., Iterator[SampleInput]]:
    def samples(op: Any, device: Any, dtype: dtype, requires_grad: bool, **kwargs: Any) -> Iterator[SampleInput]:
        first, *rest = arguments(lambda *shape: make_tensor(shape, device=device, dtype=dtype,
                                                            requires_grad=requires_grad))
        yield SampleInput(first, args=tuple(rest))

    return samples


_OTHERS = [OpInfo(name, dtypes=_dtypes(kinds), supports_out=has_out, sample_inputs_func=_call(arguments),
                  supports_autograd=name not in _NO_GRADIENT) for name, (kinds, has_out, arguments) in _OTHER.items()]

op_db: list[OpInfo] = [*unary_ufuncs, *binary_ufuncs, *reduction_ops, *shape_funcs, *spectral_funcs, *_OTHERS]
ops_and_refs = list(op_db)
python_ref_db: list[OpInfo] = []  # there is no second form of ops
reference_filtered_ops = [op for op in op_db if op.ref is not None]
sparse_unary_ufuncs: list[OpInfo] = []
sparse_csr_unary_ufuncs: list[OpInfo] = []
sparse_reduction_ops: list[OpInfo] = []
sparse_masked_reduction_ops: list[OpInfo] = []


def _lists(number: int) -> Callable[..., Iterator[SampleInput]]:
    """Samples of an op of this many lists."""

    def samples(op: Any, device: Any, dtype: dtype, requires_grad: bool, **kwargs: Any) -> Iterator[SampleInput]:
        for count in (1, 4):
            first, *rest = (sample_inputs_foreach(op, device, dtype, count, requires_grad=requires_grad)
                            for _ in range(number))
            yield SampleInput(first, args=tuple(rest))

    return samples


def _foreach(kinds: str, lists: int, *names: str, **more: Any) -> list[ForeachFuncInfo]:
    return [ForeachFuncInfo(name, dtypes=_dtypes(kinds), sample_inputs_func=_lists(lists), **more) for name in names]


foreach_unary_op_db = [
    *_foreach("bifc", 1, "exp", "acos", "asin", "atan", "cos", "cosh", "log", "log10", "log2", "tan", "tanh", "sin",
              "sinh", "sqrt", "expm1", "log1p", "reciprocal"),
    *_foreach("bif", 1, "erf", "erfc", "lgamma", "sign"), *_foreach("bifc", 1, "rsqrt", "sigmoid"),
    *_foreach("if", 1, "ceil", "floor", "round", "trunc"), *_foreach("f", 1, "frac"), *_foreach("ifc", 1, "neg"),
    *_foreach("ifc", 1, "abs"),
]
foreach_binary_op_db = [*_foreach("bifc", 2, "add", supports_alpha_param=True),
                        *_foreach("ifc", 2, "sub", supports_alpha_param=True), *_foreach("bifc", 2, "mul", "div"),
                        *_foreach("bif", 2, "maximum", "minimum", "clamp_min", "clamp_max")]
foreach_pointwise_op_db = [*_foreach("ifc", 3, "addcmul"), *_foreach("fc", 3, "addcdiv")]
foreach_reduce_op_db = _foreach("fc", 1, "norm")
foreach_other_op_db: list[ForeachFuncInfo] = []


def mask_not_all_zeros(shape: Any) -> Any:
    """A random mask that is not all zeros."""
    if 0 in tuple(shape):
        raise AssertionError("a mask without elements lets nothing through")
    mask = aten.rand(shape) > 0.5
    while not mask.any():
        mask = aten.rand(shape) > 0.5
    return mask
