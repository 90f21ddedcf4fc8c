"""Complex numbers: their parts, conjugates, and making them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import pointwise as kernels
from .._backends.flipped import FLIPS, is_conj, is_neg
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor
from .formulas import conj


def is_complex(x: Tensor) -> bool:
    """Whether the dtype is complex."""
    return x._a.dtype.kind == "c"


def _real(self: Tensor) -> Tensor:
    if not is_complex(self):
        return self
    return aten.select(aten.view_as_real(aten._conj(self) if is_conj(self._a) else self), -1, 0)


def _imag(self: Tensor) -> Tensor:
    if not is_complex(self):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if is_conj(self._a):
        return aten._neg_view(aten.select(aten.view_as_real(aten._conj(self)), -1, 1))
    return aten.select(aten.view_as_real(self), -1, 1)


def _positive(self: Tensor) -> Tensor:
    if self._a.dtype == np.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


declare("real(Tensor self) -> Tensor", where="f", composite=_real)
declare("imag(Tensor self) -> Tensor", composite=_imag, where="f")
declare("positive(Tensor self) -> Tensor", composite=_positive)
declare("_conj(Tensor self) -> Tensor", cpu=FLIPS["_conj"], view=True,
        grad={"self": lambda grad: aten.conj(grad)})
declare("_conj_copy(Tensor self) -> Tensor", cpu=np.conjugate, where="f", meta="same", node="ConjBackward0",
        grad={"self": lambda grad: aten.conj(grad)})
declare("_neg_view(Tensor self) -> Tensor", cpu=FLIPS["_neg_view"], view=True,
        grad={"self": lambda grad: aten.neg(grad)})


@choose("conj")
def conjugate(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is its own. On the host it is a view, on other devices it is computed."""
    if not isinstance(input, Tensor):
        raise TypeError(f"conj(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if not is_complex(input):
        return input
    return aten._conj(input) if input.is_cpu else aten._conj_copy(input)


declare("_conj_physical(Tensor self) -> Tensor", cpu=np.conjugate, meta="same",
        cpu_inplace=lambda a: np.conjugate(a, a) if a.dtype.kind == "c" else a, inplace_node="ConjPhysicalBackward1",
        node="ConjPhysicalBackward0", grad={"self": lambda grad: aten.conj_physical(grad)})
declare("conj_physical(Tensor self) -> Tensor",
        composite=lambda self: aten._conj_physical(self) if is_complex(self) else self)
declare("conj_physical_(Tensor self) -> Tensor", composite=lambda self: aten._conj_physical_(self))
declare("resolve_conj(Tensor self) -> Tensor",
        composite=lambda self: aten.clone(self) if is_conj(self._a) else self)
declare("resolve_neg(Tensor self) -> Tensor",
        composite=lambda self: aten.clone(self) if is_neg(self._a) else self)


def _angle_backward(grad: Tensor, self: Tensor) -> Any:
    if not is_complex(self):
        return aten.zeros_like(grad)
    size = aten.abs(self)
    return aten.where(size == 0.0, 0.0, self / aten.pow(size, 2) * (grad * 1j))


declare("angle(Tensor self) -> Tensor", cpu=kernels.angle, meta="broadcast", grad={"self": _angle_backward})
declare(
    "complex(Tensor real, Tensor imag) -> Tensor", cpu=kernels.complex_from_parts, where="f", meta="broadcast",
    grad={"real": lambda grad: aten.real(grad), "imag": lambda grad: aten.imag(grad)},
)
declare(
    "polar(Tensor abs, Tensor angle) -> Tensor", cpu=kernels.complex_from_polar, where="f", meta="broadcast",
    grad={
        "abs": lambda grad, result: aten.real(conj(grad) * aten.sgn(result)),
        "angle": lambda grad, result: aten.real(conj(grad) * (result * 1j)),
    },
)
