"""`torch.gradient`: derivatives estimated from neighbouring elements."""

from __future__ import annotations

from typing import Any

from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import FLOAT, DefaultDtype, bool_, uint8
from .._shape import wrap_dim
from .._tensor import Tensor


def _piece(x: Tensor, dim: int, start: int, end: int) -> Tensor:
    return aten.narrow(x, dim, start, end - start)


def _along(values: Any, dim: int, ndim: int) -> Any:
    return aten.view(values, (-1, *(1,) * (ndim - 1 - dim))) if isinstance(values, Tensor) else values


def _one_gradient(x: Tensor, spacing: Any, dim: int, edge_order: int) -> Tensor:
    """Central differences inside, one-sided ones of the given order at the ends."""
    n = x._a.shape[dim]
    if isinstance(spacing, Tensor):
        return _gradient_at(x, spacing, dim, edge_order)

    def piece(start: int, end: int) -> Tensor:
        return aten.slice(x, dim, start, end)

    center = aten.div__Scalar(piece(2, n) - piece(0, n - 2), spacing)
    if edge_order == 1:
        start = piece(1, 2) - piece(0, 1)
        start = aten.div__Scalar(start, spacing)
        end = piece(n - 1, n) - piece(n - 2, n - 1)
    else:
        times = aten.mul__Scalar
        a, b, c = times(piece(0, 1), -1.5), times(piece(1, 2), 2), times(piece(2, 3), 0.5)
        start = aten.div__Scalar(a + b - c, spacing)
        a, b, c = times(piece(n - 3, n - 2), 0.5), times(piece(n - 2, n - 1), 2), times(piece(n - 1, n), 1.5)
        end = a - b + c
    end = aten.div__Scalar(end, spacing)
    return aten.cat([start, aten.div__Scalar(center, 2), end], dim)


def _gradient_at(x: Tensor, points: Tensor, dim: int, edge_order: int) -> Tensor:
    """The same where the elements are at given coordinates."""
    n, ndim = x._a.shape[dim], x.ndim
    gaps = aten.diff(points)
    left, right = _along(_piece(gaps, 0, 0, n - 2), dim, ndim), _along(_piece(gaps, 0, 1, n - 1), dim, ndim)
    first = [aten.select(gaps, 0, 0), aten.select(gaps, 0, 1 if n > 2 else 0)]
    last = [aten.select(gaps, 0, n - 2), aten.select(gaps, 0, n - 3 if n > 2 else 0)]
    low, middle, high = _piece(x, dim, 0, n - 2), _piece(x, dim, 1, n - 1), _piece(x, dim, 2, n)
    inner = (low * (-right / (left * (left + right))) + middle * ((right - left) / (left * right))
             + high * (left / (right * (left + right))))

    def edge(points: list[Tensor], steps: list[Any]) -> Tensor:
        if edge_order == 1:
            return (points[1] - points[0]) / steps[0]
        one, two = steps
        return (points[0] * (-(2.0 * one + two) / (one * (one + two))) + points[1] * ((one + two) / (one * two))
                - points[2] * (one / (two * (one + two))))

    start = edge([_piece(x, dim, k, k + 1) for k in range(edge_order + 1)], first)
    end = -edge([_piece(x, dim, n - 1 - k, n - k) for k in range(edge_order + 1)], last)
    return aten.cat([start, inner, end], dim)


def _gradient(input: Tensor, spacing: Any, dim: Any, edge_order: int) -> tuple[Tensor, ...]:
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = [dim] if isinstance(dim, int) else list(range(input.ndim)) if dim is None else list(dim)
    dims = [wrap_dim(d, input.ndim) for d in dims]
    if any(input._a.shape[d] < edge_order + 1 for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    for step in spacings:
        if isinstance(step, Tensor) and step.ndim > 1:
            raise RuntimeError("torch.gradient expected each element of spacing to have one dimension, but got an "
                               f"element with {step.ndim} dimensions!")
    if len(spacings) != len(dims) and dim is not None:
        raise RuntimeError("torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
                           "arguments to have the same length, but got a spacing argument of length "
                           f"{len(spacings)} and a dim argument of length {len(dims)}.")
    if len(spacings) != len(dims):
        raise RuntimeError("torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                           f"'self.dim() = {len(dims)}', since dim argument was not given, but got a list of length "
                           f"{len(spacings)}")
    if input.dtype is bool_:
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")
    work = input if input.dtype.category >= FLOAT else aten.to(input, DefaultDtype.value)
    return tuple(_one_gradient(work, step, d, edge_order) for step, d in zip(spacings, dims, strict=True))


for _overload, _spacing, _dim in (("scalarint", "Scalar? spacing=None, ", "int? dim=None"),
                                  ("scalararray", "Scalar spacing, ", "int[] dim"),
                                  ("scalarrayint", "Scalar[] spacing, ", "int? dim=None"),
                                  ("scalarrayarray", "Scalar[] spacing, ", "int[] dim"),
                                  ("tensorarrayint", "Tensor[] spacing, ", "int? dim=None"),
                                  ("tensorarray", "Tensor[] spacing, ", "int[] dim")):
    declare(f"gradient.{_overload}(Tensor self, *, {_spacing}{_dim}, int edge_order=1) -> Tensor[]",
            composite=_gradient, where="n")
declare("gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", where="n",
        composite=lambda self, dim, edge_order: _gradient(self, None, dim, edge_order))


@choose("gradient", where="f")
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivative along each dimension, estimated from neighbouring elements."""
    several = isinstance(dim, (list, tuple))
    for step in spacing if isinstance(spacing, (list, tuple)) else ():
        if isinstance(step, Tensor) and step.device != input.device:
            raise RuntimeError("torch.gradient expected each tensor to be on the same device, but got devices "
                               f"{input.device} and {step.device}!")
    wrapped = [wrap_dim(d, input.ndim) for d in dim] if several else []
    if len(set(wrapped)) != len(wrapped):
        twice = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    if several and spacing is None:
        return aten.gradient__array(input, dim=dim, edge_order=edge_order)
    if not isinstance(spacing, (list, tuple)):
        form = aten.gradient__scalararray if several else aten.gradient__scalarint
    elif any(isinstance(s, Tensor) for s in spacing):
        form = aten.gradient__tensorarray if several else aten.gradient__tensorarrayint
    else:
        form = aten.gradient__scalarrayarray if several else aten.gradient__scalarrayint
    return form(input, spacing=spacing, dim=dim, edge_order=edge_order)
