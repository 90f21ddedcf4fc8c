"""`_foreach_*`: one op applied to every tensor of a list.

On the CPU PyTorch runs these as a loop over its ordinary ops, and a profile shows those nested inside; so they are
composites here too, and derivatives come from the ops inside. A device may have operators for whole lists
(`Device.foreach`), which are used where no gradient is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd.inplace import bump
from .._backends.base import device_of
from .._backends.geometry import shows_twice
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import DType
from .._memory_format import MemoryFormat
from .._tensor import Tensor, wrap

UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
)
# Public name -> the op that runs inside.
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "clamp_min": "clamp_min", "clamp_max": "clamp_max",
    "maximum": "clamp_min", "minimum": "clamp_max",
}
WITH_ALPHA = ("add", "sub")
WITH_TENSOR = ("add", "mul", "div")


def wrong_call(name: str, kinds: str, said: str) -> TypeError:
    """The error for arguments that fit none of the forms of a function."""
    return TypeError(f"{name}() received an invalid combination of arguments - got ({kinds}), but expected one of its "
                     f"forms: {said}")


def check_list(tensors: Any, name: str) -> None:
    """The first argument is a list of at least one tensor."""
    if not isinstance(tensors, (list, tuple)):
        kind = "Tensor" if isinstance(tensors, Tensor) else type(tensors).__name__
        said = f"argument 'self' (position 1) must be tuple of Tensors, not {kind}"
        several = name.removeprefix("_foreach_").rstrip("_") not in (*UNARY, "copy", "zero", "clone", "norm", "max")
        raise wrong_call(name, kind, said) if several else TypeError(f"{name}(): {said}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")


def check_lists(tensors: Any, *others: Any) -> None:
    """Lists of tensors are of one length."""
    for other in others:
        if len(other) != len(tensors):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
            )


def check_scalars(tensors: Any, scalars: Any) -> None:
    """There is one number for each tensor."""
    if len(scalars) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def is_list(value: Any) -> bool:
    """Whether an argument is a list of tensors or of numbers."""
    return isinstance(value, (list, tuple))


def holds_tensors(value: Any) -> bool:
    """Whether an argument is a list of tensors (rather than of numbers)."""
    return is_list(value) and any(isinstance(v, Tensor) for v in value)


def _result(tensors: Any, results: list[Any], inplace: bool) -> Any:
    """In-place forms hand back the list they were given, the others a tuple of new tensors."""
    return tensors if inplace else tuple(results)


def _declare(text: str, *, composite: Callable[..., Any], where: str) -> None:
    """Declare an op on lists, whose loop is not run where the device takes whole lists."""
    key = text.partition("(")[0].removeprefix("_foreach_")

    def run(tensors: Any, *rest: Any) -> Any:
        made = together(key, tensors, rest)
        return composite(tensors, *rest) if made is None else made

    declare(text, composite=run, where=where)


def together(key: str, tensors: Any, rest: tuple[Any, ...]) -> Any:
    """What a device makes of whole lists; None if it has nothing for this op, or the lists are not alike."""
    if not is_list(tensors) or not tensors or not isinstance(tensors[0], Tensor):
        return None
    first = tensors[0]._a
    kernel = None if type(first) is np.ndarray else device_of(first).foreach(key)
    if kernel is None:
        return None
    given: list[Any] = []
    for value in (tensors, *rest):
        if holds_tensors(value):
            if len(value) != len(tensors) or not all(
                    isinstance(one, Tensor) and type(one._a) is type(first) and one._a.dtype == first.dtype
                    and one._a.device == first.device and one._a.shape == tensors[i]._a.shape
                    and not (one._rg and THREAD.state.grad) for i, one in enumerate(value)):
                return None
            given.append([one._a for one in value])
        elif is_list(value):  # one number for each: the operators take one for all
            if len(value) != len(tensors) or any(one != value[0] for one in value):
                return None
            given.append(value[0])
        else:
            given.append(value)
    inplace = key.partition(".")[0].endswith("_")
    if inplace and any(shows_twice(one) for one in given[0]):
        return None
    made = kernel(*given)
    if made is NotImplemented:
        return None
    if not inplace:
        return tuple([wrap(one) for one in made])
    for tensor in tensors:
        bump(tensor)
    return tensors


def _declare_unary(name: str, suffix: str) -> None:
    public, inner, inplace = f"_foreach_{name}{suffix}", f"{name}{suffix}", suffix == "_"

    def each(tensors: Any) -> Any:
        check_list(tensors, public)
        op = getattr(aten, inner)
        return _result(tensors, [op(t) for t in tensors], inplace)

    _declare(f"{public}(Tensor[] self) -> {'()' if inplace else 'Tensor[]'}", composite=each, where="f")


def _declare_binary(name: str, suffix: str) -> None:
    public, inner, inplace = f"_foreach_{name}{suffix}", f"{BINARY[name]}{suffix}", suffix == "_"
    returns = "()" if inplace else "Tensor[]"
    alpha_text = ", *, Scalar alpha=1" if name in WITH_ALPHA else ""

    def by_scalar(tensors: Any, scalar: Any) -> Any:
        check_list(tensors, public)
        op = getattr(aten, inner)
        return _result(tensors, [op(t, scalar) for t in tensors], inplace)

    def by_scalars(tensors: Any, scalars: Any) -> Any:
        check_list(tensors, public)
        check_scalars(tensors, scalars)
        op = getattr(aten, inner)
        return _result(tensors, [op(t, s) for t, s in zip(tensors, scalars, strict=True)], inplace)

    def by_list(tensors: Any, other: Any, *alpha: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, other)
        op = getattr(aten, inner)
        options = {"alpha": alpha[0]} if alpha else {}
        return _result(tensors, [op(t, o, **options) for t, o in zip(tensors, other, strict=True)], inplace)

    def by_tensor(tensors: Any, other: Any, *alpha: Any) -> Any:
        check_list(tensors, public)
        if other.ndim:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements."
            )
        op = getattr(aten, inner)
        options = {"alpha": alpha[0]} if alpha else {}
        return _result(tensors, [op(t, other, **options) for t in tensors], inplace)

    _declare(f"{public}.Scalar(Tensor[] self, Scalar scalar) -> {returns}", composite=by_scalar, where="n")
    _declare(f"{public}.ScalarList(Tensor[] self, Scalar[] scalars) -> {returns}", composite=by_scalars, where="n")
    _declare(f"{public}.List(Tensor[] self, Tensor[] other{alpha_text}) -> {returns}", composite=by_list, where="n")
    if name in WITH_TENSOR:
        alpha_tensor = alpha_text if name == "add" else ""
        _declare(f"{public}.Tensor(Tensor[] self, Tensor other{alpha_tensor}) -> {returns}", composite=by_tensor,
                 where="n")

    def run(self: Any, other: Any = None, *, alpha: Any = 1, scalar: Any = None, scalars: Any = None) -> Any:
        other = next((v for v in (other, scalar, scalars) if v is not None), None)
        if other is None or type(other) is str:
            raise wrong_call(public, f"{type(self).__name__}, {type(other).__name__}", "the second argument is a "
                             "number, or a list of numbers or of tensors")
        options = {} if alpha == 1 else {"alpha": alpha}
        if isinstance(other, Tensor) and name not in WITH_TENSOR and not other.ndim:
            other = other.item()
        if isinstance(other, Tensor):
            if name not in WITH_TENSOR:
                raise wrong_call(public, f"{type(self).__name__}, Tensor", "the second argument is a number, or a list "
                                 "of numbers or of tensors")
            return getattr(aten, f"{public}__Tensor")(self, other, **options)
        if holds_tensors(other):
            return getattr(aten, f"{public}__List")(self, other, **options)
        if options:
            raise wrong_call(public, f"{type(self).__name__}, {type(other).__name__}, alpha={type(alpha).__name__}",
                             "alpha goes with tensors")
        return getattr(aten, f"{public}__{'ScalarList' if is_list(other) else 'Scalar'}")(self, other)

    _publish(public, run)


def _publish(public: str, function: Callable[..., Any]) -> None:
    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"torch.{public}: the op of this name on every tensor of a list."
    choose(public, where="f")(function)


def _declare_pointwise(name: str, suffix: str) -> None:
    """`addcmul` and `addcdiv`: three lists and one factor, or one factor each."""
    public, inner, inplace = f"_foreach_{name}{suffix}", f"{name}{suffix}", suffix == "_"
    returns = "()" if inplace else "Tensor[]"

    def each(tensors: Any, first: Any, second: Any, factors: Any) -> Any:
        op = getattr(aten, inner)
        done = [op(t, a, b, value=v) for t, a, b, v in zip(tensors, first, second, factors, strict=True)]
        return _result(tensors, done, inplace)

    def by_scalar(tensors: Any, first: Any, second: Any, value: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, first, second)
        return each(tensors, first, second, [value] * len(tensors))

    def by_scalars(tensors: Any, first: Any, second: Any, scalars: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, first, second)
        check_scalars(tensors, scalars)
        return each(tensors, first, second, scalars)

    def by_tensor(tensors: Any, first: Any, second: Any, scalars: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, first, second)
        if scalars.ndim != 1:
            raise RuntimeError(
                f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead."
            )
        if scalars.shape[0] != len(tensors):
            raise RuntimeError(
                f"Expected length of scalars to match input of length {len(tensors)} but got {scalars.shape[0]} "
                "instead."
            )
        return each(tensors, first, second, scalars.tolist())

    lists = "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2"
    _declare(f"{public}.Scalar({lists}, Scalar value=1) -> {returns}", composite=by_scalar, where="n")
    _declare(f"{public}.ScalarList({lists}, Scalar[] scalars) -> {returns}", composite=by_scalars, where="n")
    _declare(f"{public}.Tensor({lists}, Tensor scalars) -> {returns}", composite=by_tensor, where="n")

    def run(self: Any, tensor1: Any, tensor2: Any, *factor: Any, value: Any = 1, scalars: Any = None) -> Any:
        if factor or scalars is not None:
            value, = factor or (scalars,)
        elif isinstance(value, Tensor) and not value.ndim:
            value = value.item()  # by name, it is a number
        if type(value) is str:
            raise wrong_call(public, "list, list, list, str", "the last argument is a number, or one for each tensor")
        kind = "Tensor" if isinstance(value, Tensor) else "ScalarList" if is_list(value) else "Scalar"
        return getattr(aten, f"{public}__{kind}")(self, tensor1, tensor2, value)

    _publish(public, run)


def _declare_lerp(suffix: str) -> None:
    public, inner, inplace = f"_foreach_lerp{suffix}", f"lerp{suffix}", suffix == "_"
    returns = "()" if inplace else "Tensor[]"

    def each(tensors: Any, ends: Any, weights: Any) -> Any:
        op = getattr(aten, inner)
        return _result(tensors, [op(t, e, w) for t, e, w in zip(tensors, ends, weights, strict=True)], inplace)

    def by_scalar(tensors: Any, ends: Any, weight: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, ends)
        return each(tensors, ends, [weight] * len(tensors))

    def by_scalars(tensors: Any, ends: Any, weight: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, ends)
        check_scalars(tensors, weight)
        return each(tensors, ends, weight)

    def by_list(tensors: Any, ends: Any, weights: Any) -> Any:
        check_list(tensors, public)
        check_lists(tensors, ends, weights)
        return each(tensors, ends, weights)

    _declare(f"{public}.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> {returns}", composite=by_scalar,
             where="n")
    _declare(f"{public}.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> {returns}",
             composite=by_scalars, where="n")
    _declare(f"{public}.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> {returns}", composite=by_list,
             where="n")

    def run(self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None) -> Any:
        weight = weights if weight is None else weight
        weight = weight.item() if isinstance(weight, Tensor) else weight
        kind = "List" if holds_tensors(weight) else "ScalarList" if is_list(weight) else "Scalar"
        return getattr(aten, f"{public}__{kind}")(self, tensors1, weight)

    _publish(public, run)


def _declare_pow(suffix: str) -> None:
    public, inner, inplace = f"_foreach_pow{suffix}", f"pow{suffix}", suffix == "_"
    returns = "()" if inplace else "Tensor[]"

    def by_scalar(tensors: Any, exponent: Any) -> Any:
        check_list(tensors, public)
        op = getattr(aten, inner)
        return _result(tensors, [op(t, exponent) for t in tensors], inplace)

    def by_each(tensors: Any, exponent: Any) -> Any:
        check_list(tensors, public)
        (check_lists if holds_tensors(exponent) else check_scalars)(tensors, exponent)
        op = getattr(aten, inner)
        return _result(tensors, [op(t, e) for t, e in zip(tensors, exponent, strict=True)], inplace)

    _declare(f"{public}.Scalar(Tensor[] self, Scalar exponent) -> {returns}", composite=by_scalar, where="n")
    _declare(f"{public}.ScalarList(Tensor[] self, Scalar[] exponent) -> {returns}", composite=by_each, where="n")
    _declare(f"{public}.List(Tensor[] self, Tensor[] exponent) -> {returns}", composite=by_each, where="n")

    def run(self: Any, exponent: Any) -> Any:
        if isinstance(self, Tensor) and not self.ndim and is_list(exponent):
            self = self.item()
        if not inplace and not is_list(self) and not isinstance(self, Tensor):
            return aten._foreach_pow__ScalarAndTensor(self, exponent)
        if exponent is None or type(exponent) is str or (isinstance(exponent, Tensor) and exponent.ndim):
            kind = "Tensor" if isinstance(exponent, Tensor) else type(exponent).__name__
            raise wrong_call(public, f"{type(self).__name__}, {kind}", "the exponent is a number, or a list of numbers "
                             "or of tensors")
        kind = "List" if holds_tensors(exponent) else "ScalarList" if is_list(exponent) else "Scalar"
        return getattr(aten, f"{public}__{kind}")(self, exponent)

    _publish(public, run)


def _scalar_to_powers(base: Any, exponent: Any) -> Any:
    check_list(exponent, "_foreach_pow")
    return tuple([aten.pow(base, e) for e in exponent])


def _copy(tensors: Any, src: Any, non_blocking: bool) -> Any:
    check_list(tensors, "_foreach_copy_")
    if not isinstance(src, (list, tuple)):
        raise TypeError("_foreach_copy_(): argument 'src' (position 2) must be tuple of Tensors, not "
                        f"{type(src).__name__}")
    check_lists(tensors, src)
    for position, source in enumerate(src):
        if not isinstance(source, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 1, but got {type(source).__name__}")
    for tensor, source in zip(tensors, src, strict=True):
        aten.copy_(tensor, source, non_blocking)
    return tensors


def _zero(tensors: Any) -> Any:
    check_list(tensors, "_foreach_zero_")
    for tensor in tensors:
        aten.zero_(tensor)
    return tensors


def _clone(tensors: Any, memory_format: MemoryFormat | None) -> Any:
    check_list(tensors, "_foreach_clone")
    return tuple([aten.clone(t, memory_format=memory_format) for t in tensors])


def _norm(tensors: Any, order: Any, dtype: DType | None) -> Any:
    check_list(tensors, "_foreach_norm")
    if order == math.inf and not all(t.numel() for t in tensors):
        raise RuntimeError("_foreach_norm cannot compute the infinity norm on an empty tensor because the operation "
                           "does not have an identity")
    return tuple([aten.linalg_vector_norm(t, order, dtype=dtype) for t in tensors])


def _max(tensors: Any) -> Any:
    check_list(tensors, "_foreach_max")
    return tuple([aten.max(t) for t in tensors])


def _mm(tensors: Any, mat2: Any) -> Any:
    check_list(tensors, "_foreach_mm")
    check_lists(tensors, mat2)
    return tuple([aten.mm(a, b) for a, b in zip(tensors, mat2, strict=True)])


for _suffix in ("", "_"):
    for _name in UNARY:
        _declare_unary(_name, _suffix)
    for _name in BINARY:
        _declare_binary(_name, _suffix)
    for _name in ("addcmul", "addcdiv"):
        _declare_pointwise(_name, _suffix)
    _declare_lerp(_suffix)
    _declare_pow(_suffix)

_declare("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", composite=_scalar_to_powers,
         where="n")
_declare("_foreach_copy_(Tensor[] self, Tensor[] src, bool non_blocking=False) -> ()", composite=_copy, where="f")
_declare("_foreach_zero_(Tensor[] self) -> ()", composite=_zero, where="f")
_declare("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", composite=_clone, where="f")
_declare("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", composite=_norm,
         where="f")
_declare("_foreach_max(Tensor[] self) -> Tensor[]", composite=_max, where="f")
_declare("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", composite=_mm, where="f")
