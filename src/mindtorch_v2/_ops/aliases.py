"""Second names of pointwise ops: ops of their own in PyTorch, each of which only calls the other."""

from __future__ import annotations

from typing import Any

from .._dispatch.dispatcher import write_results
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import float64
from .._tensor import Tensor


def alias(name: str, target: str, arguments: str, *, inplace: bool = True, functions: str = "fm") -> None:
    """Declare `name` as another name of `target`; `arguments` are those of the schema."""
    keyword = arguments.rpartition("*, ")[2] if "*, " in arguments else ""
    keyword_name = keyword.partition("=")[0].split()[-1] if keyword else ""

    def forward(of: str) -> Any:
        if keyword_name:
            return lambda *args: getattr(aten, of)(*args[:-1], **{keyword_name: args[-1]})
        return lambda *args: getattr(aten, of)(*args)

    def into(*args: Any) -> Any:
        named = {keyword_name: args[-2]} if keyword_name else {}
        return getattr(aten, target)(*args[:-2 if keyword_name else -1], out=args[-1], **named)

    star = "" if keyword else "*, "
    declare(f"{name}({arguments}) -> Tensor", composite=forward(target), where="n")
    declare(f"{name}.out({arguments}, {star}Tensor out) -> Tensor", composite=into, where="n")

    @choose(name, where=functions)
    def face(*args: Any, out: Any = None, **kwargs: Any) -> Tensor:
        if out is None:
            return getattr(aten, f"{name}__default")(*args, **kwargs)
        return getattr(aten, f"{name}__out")(*args, out=out, **kwargs)

    face.__name__ = face.__qualname__ = name
    face.__doc__ = f"Another name of torch.{target}."
    if inplace:
        declare(f"{name}_({arguments}) -> Tensor", composite=forward(f"{target}_"), where=functions)


ONE = "Tensor self"
TWO = "Tensor self, Tensor other"
for _name, _target in (("negative", "neg"), ("absolute", "abs"), ("fix", "trunc"), ("arcsin", "asin"),
                       ("arccos", "acos"), ("arctan", "atan"), ("arcsinh", "asinh"), ("arccosh", "acosh"),
                       ("arctanh", "atanh")):
    alias(_name, _target, ONE)
for _name, _target in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"),
                       ("not_equal", "ne"), ("multiply", "mul"), ("true_divide", "div")):
    alias(_name, _target, TWO, functions="fm")
for _name in ("divide", "divide_"):
    _target = _name.replace("divide", "div")
    declare(f"{_name}.Tensor(Tensor self, Tensor other) -> Tensor", where="n",
            composite=lambda self, other, to=_target: getattr(aten, to)(self, other))
    declare(f"{_name}.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", where="n",
            composite=lambda self, other, rounding_mode, to=_target: getattr(aten, to)(
                self, other, rounding_mode=rounding_mode))
declare("divide.out(Tensor self, Tensor other, *, Tensor out) -> Tensor", where="n",
        composite=lambda self, other, out: aten.div(self, other, out=out))
declare("divide.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor out) -> Tensor", where="n",
        composite=lambda self, other, rounding_mode, out: aten.div(self, other, rounding_mode=rounding_mode, out=out))


@choose("divide")
def divide(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Another name of torch.div."""
    if out is not None:
        mode = {} if rounding_mode is None else {"rounding_mode": rounding_mode}
        return (aten.divide__out_mode if mode else aten.divide__out)(input, other, **mode, out=out)
    if rounding_mode is None:
        return aten.divide__Tensor(input, other)
    return aten.divide__Tensor_mode(input, other, rounding_mode=rounding_mode)


@choose("divide_", where="m")
def divide_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Another name of Tensor.div_."""
    if rounding_mode is None:
        return aten.divide___Tensor(input, other)
    return aten.divide___Tensor_mode(input, other, rounding_mode=rounding_mode)


alias("subtract", "sub", TWO + ", *, Scalar alpha=1")
alias("arctan2", "atan2", TWO)
for _name, _target in (("special_expit", "sigmoid"), ("special_erf", "erf"), ("special_erfc", "erfc"),
                       ("special_erfinv", "erfinv"), ("special_gammaln", "lgamma"), ("special_digamma", "digamma"),
                       ("special_psi", "digamma"), ("special_exp2", "exp2"), ("special_expm1", "expm1"),
                       ("special_log1p", "log1p"), ("special_sinc", "sinc"), ("special_i0", "i0")):
    alias(_name, _target, ONE, inplace=False, functions="n")
alias("special_round", "round", ONE + ", *, int decimals=0", inplace=False, functions="n")
for _name in ("softmax", "log_softmax"):
    _star = "*, " if _name == "log_softmax" else ""
    declare(f"special_{_name}(Tensor self, int dim, {_star}ScalarType? dtype=None) -> Tensor", where="n",
            composite=lambda self, dim, dtype, to=_name: getattr(aten, to)(self, dim, dtype))
alias("special_logsumexp", "logsumexp", "Tensor self, int[1] dim, bool keepdim=False", inplace=False, functions="n")
alias("linalg_matmul", "matmul", TWO, inplace=False, functions="n")
alias("special_xlogy", "xlogy", TWO, inplace=False, functions="n")
alias("special_logit", "logit", "Tensor self, float? eps=None", inplace=False, functions="n")
declare("special_polygamma(int n, Tensor self) -> Tensor", composite=lambda n, self: aten.polygamma(n, self), where="n")


def _as_double(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    wanted = float64.to_complex() if value.dtype.is_complex else float64
    return aten.to(value, wanted)


def _float_power(self: Tensor, exponent: Any) -> Tensor:
    if not isinstance(exponent, (Tensor, complex)):
        exponent = float(exponent)
    return aten.pow(_as_double(self), _as_double(exponent))


declare("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", composite=_float_power, where="n")


@choose("float_power")
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """`input ** exponent` computed in double precision."""
    made = aten.float_power__Tensor_Tensor(input, exponent)
    return made if out is None else write_results("float_power", out, made)
