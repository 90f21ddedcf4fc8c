"""Forward-mode differentiation: tensors with a tangent, their direction of change.

There are no forward formulas. Ops on dual tensors are recorded as usual; a gradient is linear in what is put in at the
outputs, so differentiating it by that gives the tangent of a result when it is asked for. The values are forward
mode's; what runs with recording off loses its tangent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._tensor import Tensor, alias
from .api import grad
from .grad_mode import enable_grad, no_grad
from .graph import GradientEdge, Node, edge


class Dual(Node):
    """Where a dual tensor enters the graph."""

    __slots__ = ("tangent",)
    tangent: Tensor
    full_name = "DualBackward0"

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """The gradient goes on to the tensor that the dual was made of, if that wants one."""
        return tuple(grads[:len(self.edges)])


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


LEVELS: list[list[Dual]] = []  # the dual tensors of the level that is open


def enter_dual_level() -> int:
    """Begin to keep tangents; returns the number of the level."""
    if LEVELS:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    LEVELS.append([])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Forget the tangents of a level."""
    if not LEVELS:
        raise RuntimeError("Trying to exit a forward AD level that was not created.")
    if level not in (None, -1, len(LEVELS) - 1):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    LEVELS.pop()


class dual_level:
    """A context in which tensors can have tangents; they are gone at its end.

    >>> import mindtorch_v2 as torch
    >>> from mindtorch_v2.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor on the same memory with a tangent."""
    if not LEVELS:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    for name, one in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(one, Tensor):
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(one).__name__}")
        if not (one.dtype.is_floating_point or one.dtype.is_complex):
            raise ValueError(f"Expected {'primal' if name == 'tensor' else name} to be floating point or complex, but "
                             f"got: {one.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                           f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the given "
                           f"forward gradient is of size {list(tangent.shape)}.")
    if tensor.dtype is not tangent.dtype:
        raise RuntimeError("Trying to set a forward gradient that has a different dtype than that of the original "
                           f"Tensor, this is not supported: {tensor.dtype} and {tangent.dtype}.")
    if unpack_dual(tangent).tangent is not None:
        raise RuntimeError("Cannot set as tangent a tensor that has a forward gradient at the same level.")
    node = object.__new__(Dual)
    before = edge(tensor) if tensor.requires_grad else None
    node.edges = () if before is None else (before,)
    node.seq = THREAD.state.seq
    THREAD.state.seq += 1
    node.meta = ((tensor._a.shape, tensor._a.dtype),)
    node.hooks, node.tangent = None, tangent
    dual = alias(tensor)
    dual._rg, dual._edge = True, (node, 0)
    LEVELS[-1].append(node)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor and its tangent, None if it does not depend on a dual tensor of the open level."""
    if not LEVELS or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    found = edge(tensor)
    if found is not None and isinstance(found[0], Dual):
        primal = alias(tensor)
        if found[0].edges:
            primal._rg, primal._edge = True, found[0].edges[0]
        return UnpackedDualTensor(primal, found[0].tangent)
    tangent = _tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(tensor if _leads_out(tensor) else aten.detach(tensor), tangent)


def _tangent(tensor: Tensor) -> Tensor | None:
    duals = LEVELS[-1]
    if not duals:
        return None
    ends = [GradientEdge(node, 0) for node in duals]
    with enable_grad():
        with no_grad():
            probe = aten.zeros_like(tensor)
        probe.requires_grad = True
        pulled = grad(tensor, ends, probe, create_graph=True, allow_unused=True)
        used = [(one, node.tangent) for one, node in zip(pulled, duals) if one is not None]
        if not used:
            return None
        linear = [(one, tangent) for one, tangent in used if one.requires_grad]
        outside = _leads_out(tensor) or any(tangent.requires_grad for _, tangent in used)
        if linear:
            made = grad([one for one, _ in linear], probe, [tangent for _, tangent in linear],
                        create_graph=outside, retain_graph=True, allow_unused=True)[0]
            if made is not None:
                return made
    with no_grad():
        return aten.zeros_like(tensor)


def _leads_out(tensor: Tensor) -> bool:
    """Whether somebody can differentiate by something else than the dual tensors."""
    seen: set[int] = set()
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if not node.edges and not isinstance(node, Dual):
            return True
        waiting += [e[0] for e in node.edges if e is not None]
    return False
