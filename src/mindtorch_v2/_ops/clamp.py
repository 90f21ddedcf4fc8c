"""Clamping between bounds that are numbers, tensors or absent."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import compare as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor


def _inside(self: Tensor, min: Any, max: Any) -> Any:
    if min is None:
        return aten.le(self, max)
    above = aten.ge(self, min)
    return above if max is None else aten.logical_and_(above, aten.le(self, max))


def _masked(mask: Any, grad: Tensor) -> Any:
    return aten.where__self(mask, grad, aten.scalar_tensor(0.0, dtype=grad.dtype, device=grad.device))


def _grad_low(grad: Tensor, self: Tensor, min: Any, max: Any) -> Any:
    below = aten.lt(self, min)
    return _masked(below if max is None else aten.logical_and_(below, aten.lt(min, max)), grad)


def _grad_high(grad: Tensor, self: Tensor, min: Any, max: Any) -> Any:
    above = aten.gt(self, max)
    return _masked(above if min is None else aten.logical_or_(above, aten.lt(max, min)), grad)


declare(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", cpu=kernels.clamp, inplace=True, where="n",
    meta="broadcast", node="ClampBackward1",
    grad={"self": lambda grad, self, min, max: _masked(_inside(self, min, max), grad)},
)
declare(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", cpu=kernels.clamp_by_tensors,
    inplace=True, where="n",
    grad={"self": lambda grad, self, min, max: _masked(_inside(self, min, max), grad),
          "min": _grad_low, "max": _grad_high},
)


def _one_sided(name: str, bound: str, kernel: Any, tensor_kernel: Any, keeps: str, passes: str) -> None:
    def self_grad(grad: Tensor, self: Tensor, limit: Any) -> Any:
        return _masked(getattr(aten, keeps)(self, limit), grad)

    def bound_grad(grad: Tensor, self: Tensor, limit: Any) -> Any:
        return _masked(getattr(aten, passes)(self, limit), grad)

    # A formula's parameter names say what it needs, so that each bound has formulas of its own.
    formulas: dict[str, Any] = {
        "min": (lambda grad, self, min: self_grad(grad, self, min),
                lambda grad, self, min: bound_grad(grad, self, min)),
        "max": (lambda grad, self, max: self_grad(grad, self, max),
                lambda grad, self, max: bound_grad(grad, self, max)),
    }
    for_self, for_bound = formulas[bound]
    declare(f"{name}(Tensor self, Scalar {bound}) -> Tensor", cpu=kernel, inplace=True, where="n", meta="broadcast",
            grad={"self": for_self})
    declare(f"{name}.Tensor(Tensor self, Tensor {bound}) -> Tensor", cpu=tensor_kernel, inplace=True, where="n",
            node=f"Clamp{bound.title()}Backward1", grad={"self": for_self, bound: for_bound})


_one_sided("clamp_min", "min", kernels.clamp_min, kernels.clamp_min_tensor, "ge", "lt")
_one_sided("clamp_max", "max", kernels.clamp_max, kernels.clamp_max_tensor, "le", "gt")


def _bounds(input: Tensor, min: Any, max: Any) -> tuple[bool, Any, Any]:
    """Whether any bound is a tensor; then both are."""
    if not (isinstance(min, Tensor) or isinstance(max, Tensor)):
        return False, min, max
    if not all(bound is None or isinstance(bound, Tensor) for bound in (min, max)):
        if not any(isinstance(bound, Tensor) and (bound.ndim or bound.requires_grad) for bound in (min, max)):
            # Beside a number, a tensor without dimensions is one too.
            return False, *(bound.item() if isinstance(bound, Tensor) else bound for bound in (min, max))
        raise TypeError("clamp() received an invalid combination of arguments - got (Tensor, "
                        f"max={type(max).__name__}, min={type(min).__name__}): both are numbers, or both tensors")
    return True, min, max


@choose("clamp")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Values kept between `min` and `max`."""
    by_tensors, low, high = _bounds(input, min, max)
    return (aten.clamp__Tensor if by_tensors else aten.clamp__default)(input, low, high, out=out)


@choose("clamp_")
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place `clamp`."""
    by_tensors, low, high = _bounds(input, min, max)
    return (aten.clamp___Tensor if by_tensors else aten.clamp___default)(input, low, high)


@choose("clamp_min")
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Tensor:
    """Values not less than `min`."""
    return (aten.clamp_min__Tensor if isinstance(min, Tensor) else aten.clamp_min__default)(input, min, out=out)


@choose("clamp_min_")
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place `clamp_min`."""
    return (aten.clamp_min___Tensor if isinstance(min, Tensor) else aten.clamp_min___default)(input, min)


@choose("clamp_max")
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Tensor:
    """Values not more than `max`."""
    return (aten.clamp_max__Tensor if isinstance(max, Tensor) else aten.clamp_max__default)(input, max, out=out)


@choose("clamp_max_")
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place `clamp_max`."""
    return (aten.clamp_max___Tensor if isinstance(max, Tensor) else aten.clamp_max___default)(input, max)


declare("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", where="n",
        composite=lambda self, min, max: clamp(self, min, max))
declare("clip_(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        composite=lambda self, min, max: clamp_(self, min, max))


@choose("clip")
def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """`clamp` by another name."""
    return aten.clip__default(input, min, max) if out is None else clamp(input, min, max, out=out)
