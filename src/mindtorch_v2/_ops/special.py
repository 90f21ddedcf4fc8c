"""`torch.special`: Bessel and incomplete gamma functions, the normal distribution, orthogonal polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._backends.cpu import special_bessel as bessel
from .._backends.cpu import special_gamma as gamma
from .._backends.cpu import special_normal as normal
from .._backends.cpu import special_polynomials as polynomials
from .._backends.cpu.pointwise import unsupported
from .._dispatch.dispatcher import write_results
from .._dispatch.namespace import aten
from .._dispatch.promotion import promote_number
from .._dispatch.registry import choose, declare, default_node_name
from .._dtype import HALF_TYPES, bool_
from .._tensor import Tensor
from .formulas import large

Kernel = Callable[..., Any]


def in_double(name: str, function: Kernel, *, halves: bool = False) -> Kernel:
    """A kernel that computes in float64; `halves` says whether PyTorch has it for 16-bit types."""

    def kernel(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype.kind == "c" or dtype.kind in "iub" or (not halves and dtype in HALF_TYPES):
            raise unsupported(f"{name}_cpu", dtype)
        made = function(*[a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in arrays])
        return np.asarray(made).astype(dtype)

    return kernel


def unary(name: str, function: Kernel, formula: Any = None, *, halves: bool = False, node: str | None = None,
          argument: str = "self") -> None:
    """Declare `torch.special.<name>` of one tensor."""
    declare(f"special_{name}(Tensor {argument}) -> Tensor", cpu=in_double(name, function, halves=halves),
            promote="float", where="n", meta="same", node=node, grad=None if formula is None else {"self": formula})


# -- Bessel functions ------------------------------------------------------------------------------------------------


def _i1e_backward(grad: Any, self: Any, result: Any) -> Any:
    far = large(self)
    safe = aten.where(far, self, 1.0)
    slope = aten.special_i0e(safe) - result * (aten.sgn(safe) + aten.reciprocal(safe))
    return grad * aten.where(far, slope, 0.5)


unary("i0e", lambda x: bessel.bessel_i_scaled(x, 0),
      lambda grad, self, result: grad * (aten.special_i1e(self) - aten.sgn(self) * result), halves=True,
      node="SpecialI0EBackward0")
unary("i1e", lambda x: bessel.bessel_i_scaled(x, 1), _i1e_backward, halves=True, node="SpecialI1EBackward0")
unary("airy_ai", bessel.airy, argument="x")
unary("bessel_j0", lambda x: bessel.bessel_j(x, 0))
unary("bessel_j1", lambda x: bessel.bessel_j(x, 1))
unary("bessel_y0", lambda x: bessel.bessel_y(x, 0))
unary("bessel_y1", lambda x: bessel.bessel_y(x, 1))
unary("modified_bessel_i0", lambda x: bessel.bessel_i(x, 0))
unary("modified_bessel_i1", lambda x: bessel.bessel_i(x, 1))
unary("modified_bessel_k0", lambda x: bessel.bessel_k(x, 0, False))
unary("modified_bessel_k1", lambda x: bessel.bessel_k(x, 1, False))
unary("scaled_modified_bessel_k0", lambda x: bessel.bessel_k(x, 0, True), argument="x")
unary("scaled_modified_bessel_k1", lambda x: bessel.bessel_k(x, 1, True), argument="x")
unary("spherical_bessel_j0", bessel.spherical_j0, argument="x")

# -- the normal distribution and entropies ---------------------------------------------------------------------------

unary("entr", normal.entr, lambda grad, self: grad * -(1 + aten.log(self)), halves=True)
unary("erfcx", normal.erfcx, lambda grad, self, result: (2.0 * self * result - 2.0 / math.sqrt(math.pi)) * grad)
unary("log_ndtr", normal.log_ndtr,
      lambda grad, self: grad / aten.special_erfcx(self * -math.sqrt(0.5)) * math.sqrt(2.0 / math.pi))
unary("ndtri", normal.ndtri,
      lambda grad, result: grad * math.sqrt(2.0 * math.pi) * aten.exp(aten.square(result) / 2))
declare("special_ndtr(Tensor self) -> Tensor", where="n",
        composite=lambda self: aten.mul__Scalar(
            aten.add__Scalar(aten.erf(aten.mul__Scalar(self, math.sqrt(0.5))), 1), 0.5))


# -- two operands ----------------------------------------------------------------------------------------------------


def binary(name: str, function: Kernel, grad: Any, *, halves: bool = False, node: str | None = None) -> None:
    """Declare `torch.special.<name>` of two operands, either of which may be a number."""
    op = f"special_{name}"
    kernel = in_double(name, function, halves=halves)
    node = node or default_node_name(op)
    declare(f"{op}(Tensor self, Tensor other) -> Tensor", cpu=kernel, promote="ternary_float", where="n",
            meta="broadcast", grad=grad, node=node)
    declare(f"{op}.self_scalar(Scalar self, Tensor other) -> Tensor", where="n", promote="float", meta="same",
            cpu=lambda number, b: kernel(*reversed(promote_number(b, number))), grad={"other": grad["other"]},
            node=f"{node[:-1]}1")
    declare(f"{op}.other_scalar(Tensor self, Scalar other) -> Tensor", where="n", promote="float", meta="same",
            cpu=lambda a, number: kernel(*promote_number(a, number)), grad={"self": grad["self"]},
            node=f"{node[:-1]}2")

    @choose(op, where="n")
    def face(input: Any, other: Any, *, out: Any = None) -> Tensor:
        if not isinstance(input, Tensor):
            return getattr(aten, f"{op}__self_scalar")(input, other, out=out)
        form = "default" if isinstance(other, Tensor) else "other_scalar"
        return getattr(aten, f"{op}__{form}")(input, other, out=out)

    face.__name__ = face.__qualname__ = op


def polynomial(name: str, kernel: Kernel) -> None:
    """Declare a polynomial of degree `n` at `x`, either of which may be a number."""
    op = f"special_{name}"
    declare(f"{op}(Tensor x, Tensor n) -> Tensor", cpu=kernel, promote="binary_float", scalar_overload="n_scalar",
            where="n", meta="broadcast")
    declare(f"{op}.x_scalar(Scalar x, Tensor n) -> Tensor", where="n", promote="float", meta="same",
            cpu=lambda number, n: kernel(*reversed(promote_number(n, number))))

    @choose(op, where="n")
    def face(x: Any, n: Any, *, out: Any = None) -> Tensor:
        if isinstance(x, Tensor):
            return getattr(aten, f"{op}__default")(x, n, out=out)
        return getattr(aten, f"{op}__x_scalar")(x, n, out=out)

    face.__name__ = face.__qualname__ = op


def _underivable(label: str) -> Any:
    def formula(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{label}' is not implemented.")

    return formula


def _xlog1py_backward(grad: Any, self: Any, other: Any) -> Any:
    made = aten.special_xlog1py(grad, other)
    if isinstance(other, Tensor):
        return aten.masked_fill(made, aten.bitwise_and(self == 0, aten.le(other, -1)), 0)
    return made if float(other) > -1 else aten.masked_fill(made, self == 0, 0)


binary("xlog1py", normal.xlog1py,
       {"self": _xlog1py_backward, "other": lambda grad, self, other: grad * self / (other + 1)}, halves=True,
       node="SpecialXlog1PyBackward0")
binary("zeta", gamma.zeta,
       {"self": _underivable("zeta"),
        "other": lambda grad, self, other: grad * -self * aten.special_zeta(self + 1.0, other)})


def _hermite(physicists: bool) -> Kernel:
    inner = polynomials.hermite(physicists)

    def kernel(x: Any, n: Any) -> Any:
        if x.dtype not in polynomials.HERMITE_LIMIT:
            raise unsupported(f"hermite_polynomial_{'h' if physicists else 'he'}_cpu", x.dtype)
        limit = polynomials.HERMITE_LIMIT[x.dtype]
        made = inner(x.astype(np.float64), np.minimum(n, limit).astype(np.float64))
        return np.where(n > limit, np.nan, made).astype(x.dtype)

    return kernel


for _kind in "tuvw":
    for _prefix in ("", "shifted_"):
        _name = f"{_prefix}chebyshev_polynomial_{_kind}"
        polynomial(_name, in_double(_name, polynomials.chebyshev(_kind, bool(_prefix))))
polynomial("laguerre_polynomial_l", in_double("laguerre_polynomial_l", polynomials.laguerre))
polynomial("legendre_polynomial_p", in_double("legendre_polynomial_p", polynomials.legendre))
polynomial("hermite_polynomial_h", _hermite(True))
polynomial("hermite_polynomial_he", _hermite(False))

# -- gamma -----------------------------------------------------------------------------------------------------------


def _density(self: Any, other: Any) -> Any:
    """The derivative of the lower incomplete gamma function by its second argument."""
    return aten.exp((self - 1) * aten.log(other) - other - aten.lgamma(self))


for _position, _name in enumerate(("igamma", "igammac")):
    declare(
        f"{_name}(Tensor self, Tensor other) -> Tensor", promote="ternary", inplace=True, meta="broadcast",
        cpu=in_double(_name, lambda a, x, which=_position: gamma.incomplete(a, x)[which], halves=True),
        grad={"self": _underivable(f"{_name}: input"),
              "other": (lambda grad, self, other: grad * _density(self, other)) if _position == 0 else
                       (lambda grad, self, other: -grad * _density(self, other))},
    )
declare("special_gammainc(Tensor self, Tensor other) -> Tensor", where="n",
        composite=lambda self, other: aten.igamma(self, other))
declare("special_gammaincc(Tensor self, Tensor other) -> Tensor", where="n",
        composite=lambda self, other: aten.igammac(self, other))


def _mvlgamma_backward(grad: Any, self: Any, p: int) -> Any:
    steps = aten.arange(-p * 0.5 + 0.5, 0.5, 0.5, dtype=self.dtype, device=self.device)
    return grad * aten.sum__dim_IntList(aten.digamma(steps + aten.unsqueeze(self, -1)), (-1,))


@choose("mvlgamma")
def mvlgamma(input: Tensor, p: int, *, out: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    if isinstance(input, Tensor) and input.dtype is bool_:
        raise RuntimeError("mvlgamma: The input tensor may not be a boolean tensor.")
    return aten.mvlgamma__default(input, p, out=out)


declare("mvlgamma(Tensor self, int p) -> Tensor", promote="float", inplace=True, meta="same",
        cpu=in_double("mvlgamma", gamma.mvlgamma, halves=True), grad={"self": _mvlgamma_backward})
declare("special_multigammaln(Tensor self, int p) -> Tensor", where="n",
        composite=lambda self, p: aten.mvlgamma(self, p))
def _polygamma_inplace(self: Tensor, n: int) -> Tensor:
    made = aten.polygamma(n, aten.clone(self))
    # Of integers the result is a float, which they cannot hold.
    return aten.copy_(self, made) if self.is_floating_point() else write_results("polygamma_", self, made)


declare("polygamma_(Tensor self, int n) -> Tensor", where="m", composite=_polygamma_inplace)
