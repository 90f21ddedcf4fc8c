"""Distances, cross products and forms in two vectors."""

from __future__ import annotations

from typing import Any

from .._autograd.grad_mode import no_grad
from .._backends.cpu import distance as kernels
from .._backends.cpu.matmul import linalg_cross
from .._backends.cpu.trilinear import trilinear
from .._dispatch.namespace import aten
from .._dispatch.promotion import C_NAMES, pretty
from .._dispatch.registry import choose, declare
from .._dtype import promote_types
from .._shape import broadcast_shapes
from .._tensor import Tensor
from .._warn import warn_once
from .formulas import conj

declare(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", cpu=linalg_cross, promote="binary", where="n",
    grad={
        "other": lambda grad, self, dim: aten.linalg_cross(grad, conj(self), dim=dim),
        "self": lambda grad, other, dim: aten.linalg_cross(conj(other), grad, dim=dim),
    },
)


def _cross(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    if dim is None:
        # The old default: the first dimension of extent 3.
        if 3 not in self._a.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = self._a.shape.index(3)
        warn_once("Using torch.cross without specifying the dim arg is deprecated. Please either pass the dim "
                  "explicitly or use torch.linalg.cross, whose default is the last dimension.")
    if self.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {pretty(self.dtype)} but found {pretty(other.dtype)}")
    return aten.linalg_cross(self, other, dim=dim)


declare("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", composite=_cross)

# -- cdist ---------------------------------------------------------------------------------------------------------


def _gradient_of_second(grad: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor) -> Tensor:
    return aten._cdist_backward(aten.contiguous(aten.transpose(grad, -2, -1)), x2, x1, p,
                                aten.contiguous(aten.transpose(result, -2, -1)))


declare(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cpu=kernels.cdist, where="n",
    node="CdistBackward0",
    grad={"x1": lambda grad, x1, x2, p, result: aten._cdist_backward(aten.contiguous(grad), x1, x2, p, result),
          "x2": _gradient_of_second},
)


def _no_second(grad: Tensor) -> Any:
    raise NotImplementedError("the derivative for '_cdist_backward' is not implemented.")


declare("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
        cpu=kernels.cdist_backward, where="n", grad={("grad", "x1", "x2", "cdist"): _no_second})


declare(
    "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", cpu=kernels.euclidean, where="f",
    grad={("x1", "x2"): lambda grad, x1, x2, result: _euclidean_backward(grad, x1, x2, result)},
)


def _euclidean_backward(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor) -> tuple[Tensor, Tensor]:
    ratio = aten.masked_fill(aten.div(grad, result), aten.eq(result, 0), 0)
    first = aten.sub(aten.mul(x1, aten.sum(ratio, (-1,), True)), aten.matmul(ratio, x2))
    total = aten.unsqueeze(aten.sum(ratio, (-2,), False), -1)
    second = aten.sub(aten.mul(x2, total), aten.matmul(aten.transpose(ratio, -2, -1), x1))
    return first, second


def _cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    if x1.ndim < 2 or x2.ndim < 2:
        which, found = ("X1", x1) if x1.ndim < 2 else ("X2", x2)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {found.ndim}D")
    if x1._a.shape[-1] != x2._a.shape[-1]:
        raise RuntimeError("X1 and X2 must have the same number of columns. "
                           f"X1: {x1._a.shape[-1]} X2: {x2._a.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1._a.dtype != x2._a.dtype:
        raise RuntimeError(f"expected scalar type {pretty(x1.dtype)} but found {pretty(x2.dtype)}")
    broadcast_shapes(x1._a.shape[:-2], x2._a.shape[:-2])
    rows, columns = x1._a.shape[-2], x2._a.shape[-2]
    # Large Euclidean problems go through a matrix product, at some loss of precision.
    by_product = p == 2 and (compute_mode == 1 or (compute_mode in (None, 0) and (rows > 25 or columns > 25)))
    if not by_product:
        return aten._cdist_forward(x1, x2, p, compute_mode)
    batch = broadcast_shapes(x1._a.shape[:-2], x2._a.shape[:-2])
    first = aten.expand(x1, (*batch, *x1._a.shape[-2:]))
    second = aten.expand(x2, (*batch, *x2._a.shape[-2:]))
    return aten._euclidean_dist(first, second)


MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}
declare("cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", composite=_cdist, where="n")


@choose("cdist", where="f")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Distance of every row of `x1` from every row of `x2`, in the p-norm."""
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, one in (("X1", x1), ("X2", x2)):
        if isinstance(one, Tensor) and not one.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {pretty(one.dtype)}")
    return aten.cdist__default(x1, x2, p, MODES[compute_mode])


def _no_second_gradient(grad: Tensor) -> Any:
    raise NotImplementedError("the derivative for '_pdist_backward' is not implemented.")


declare(
    "_pdist_forward(Tensor self, float p=2.) -> Tensor", cpu=kernels.pdist, where="n", node="PdistBackward0",
    grad={"self": lambda grad, self, p, result: aten._pdist_backward(grad, self, p, result)},
)
declare("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor", cpu=kernels.pdist_backward,
        where="n", grad={("grad", "self"): lambda grad: _no_second_gradient(grad)})


def _pdist(self: Tensor, p: float) -> Tensor:
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if not self.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return aten._pdist_forward(aten.contiguous(self), p)


declare("pdist(Tensor self, float p=2.) -> Tensor", composite=_pdist, where="f")


def _pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    gap = aten.add__Scalar(aten.sub(x1, x2), eps)
    return aten.norm__ScalarOpt_dim(gap, p, (max(x1.ndim, x2.ndim) - 1,), keepdim)


declare("pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False) -> Tensor",
        composite=_pairwise_distance, where="f")


def _cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    to = promote_types(x1.dtype, x2.dtype)
    if not to.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {to.name}")
    if x1._a.shape != x2._a.shape:
        shape = broadcast_shapes(x1._a.shape, x2._a.shape)
        x2, x1 = aten.expand(x2, shape), aten.expand(x1, shape)
    x1, x2 = (x if x.dtype is to else aten.to(x, to) for x in (x1, x2))
    norms = [aten.clone(aten.linalg_vector_norm(x, 2, (dim,), True)) for x in (x1, x2)]
    with no_grad():
        for norm in norms:
            aten.clamp_min_(norm, eps)
    return aten.sum(aten.mul(aten.div(x1, norms[0]), aten.div(x2, norms[1])), (dim,), False)


declare("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", composite=_cosine_similarity,
        where="f")

# -- bilinear ------------------------------------------------------------------------------------------------------


def _trilinear_gradients(grad: Tensor, i1: Tensor, i2: Tensor, i3: Tensor, expand1: Any, expand2: Any, expand3: Any,
                         sumdim: Any, unroll_dim: int, needs: Any) -> tuple[Any, Any, Any]:
    first = aten._trilinear(grad, i2, i3, sumdim, expand2, expand3, expand1, unroll_dim) if needs[0] else None
    second = aten._trilinear(i1, grad, i3, expand1, sumdim, expand3, expand2, unroll_dim) if needs[1] else None
    third = aten._trilinear(i1, i2, grad, expand1, expand2, sumdim, expand3, unroll_dim) if needs[2] else None
    return first, second, third


declare(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor", cpu=trilinear, where="f",
    grad={("i1", "i2", "i3"): _trilinear_gradients},
)


def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    named = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if len({one._a.dtype for one in named.values()}) > 1:
        raise RuntimeError("All tensors must have the same dtype, got "
                           + ", ".join(f"{name}: {C_NAMES.get(one._a.dtype.name, one._a.dtype.name)}"
                                       for name, one in named.items()))
    if input1.ndim != input2.ndim:
        raise RuntimeError("bilinear(): input dimensions do not match: "
                           f"got {input1.ndim} and {input2.ndim}")
    for i in range(input1.ndim - 1):
        if input1._a.shape[i] != input2._a.shape[i]:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got "
                               f"{input1._a.shape[i]} and {input2._a.shape[i]}")
    for number, tensor in enumerate((input1, input2), start=1):
        if tensor._a.shape[-1] != weight._a.shape[number]:
            raise RuntimeError(f"bilinear(): input{number} size does not match weight size: got "
                               f"{tensor._a.shape[-1]} but expected {weight._a.shape[number]}")
    if bias is not None and bias._a.shape[0] != weight._a.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias._a.shape[0]} but expected "
                           f"{weight._a.shape[0]}")
    flat1 = aten.reshape(input1, (-1, input1._a.shape[-1]))
    flat2 = aten.reshape(input2, (-1, input2._a.shape[-1]))
    # Dimensions of the common layout: batch, output, first input, second input.
    made = aten._trilinear(flat1, weight, flat2, [1, 3], [0], [1, 2], [2, 3])
    made = aten.reshape(made, (*input1._a.shape[:-1], weight._a.shape[0]))
    return made if bias is None else aten.add(made, bias)


declare("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", composite=_bilinear,
        where="f")
