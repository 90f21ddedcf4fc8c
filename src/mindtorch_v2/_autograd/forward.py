"""Forward-mode differentiation: tensors with a tangent, which is their direction of change.

While a level is open, a tap looks at every op (see `observer.tap`). If an op's arguments have tangents, it runs a
second time, recorded, to get the tangents of its results. There are no forward formulas: a gradient is linear in the
gradients of the outputs, so differentiating it by these gives the tangent. A view of a tensor has the same view of its
tangent.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy import ndarray

from .._backends.array import phantom, seen_through
from .._backends.flipped import FlippedArray
from .._dispatch.dispatch_modes import is_whole, tensors_in
from .._dispatch.namespace import aten
from .._dispatch.observer import tap
from .._dispatch.registry import Op
from .._dispatch.state import THREAD
from .._dispatch.watching import Watcher
from .._dtype import FLOAT, FROM_NUMPY
from .._random import StreamStates
from .._tensor import LEVELS, Tensor, alias
from .api import grad
from .grad_mode import enable_grad, no_grad
from .graph import GradientEdge, Node, edge, laid_out_as


class Dual(Node):
    """The point where a tensor with a tangent enters the graph of one op."""

    __slots__ = ("tangent",)
    tangent: Tensor

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """The gradient continues to the tensor itself, if that needs one."""
        return tuple(grads[:len(self.edges)])


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


class _Thread(threading.local):
    """Whether a thread keeps tangents."""

    enabled = True


MINE = _Thread()
# Arguments that some ops change although their signatures do not say so.
CHANGED = {"running_mean", "running_var"}
# Ends of names of ops that are parts of others: their results depend on their arguments, also without a formula.
PARTS = ("_backward", "_forward_only", "_rescale_qkv")
NO_TANGENT = "Trying to use forward AD with {} that does not support it because it has not been implemented yet."


class Level(Watcher):
    """The tangents of an open level, and the tap that follows them.

    A tangent belongs to an array, not to a tensor: a node that saves its result keeps only the array.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tangents: dict[int, tuple[Callable[[], Any], Tensor | None]] = {}

    # -- tangents

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """A tensor's tangent; a view has its part of its base's."""
        found = self.tangents.get(id(tensor._a))
        if found is not None and found[0]() is tensor._a:
            return found[1]
        if tensor._of is None:
            return None
        base = tensor._of[0]
        found = self.tangents.get(id(base._a))
        if found is None or found[0]() is not base._a or found[1] is None:
            return None
        with self:
            return aten.as_strided(found[1], tensor.shape, tensor.stride(),
                                   tensor.storage_offset() - base.storage_offset() + found[1].storage_offset())

    def keep(self, tensor: Tensor, tangent: Tensor | None) -> None:
        """Set a tensor's tangent, in the memory order of the tensor."""
        array = tensor._a
        if tangent is not None and tangent._a.strides != array.strides:
            tangent = laid_out_as(tensor, tangent)
        key = id(array)
        try:
            reference: Callable[[], Any] = weakref.ref(array, lambda _: self.tangents.pop(key, None))
        except TypeError:  # an array of a device stays as long as the level

            def reference() -> Any:
                return array

        self.tangents[key] = (reference, tangent)

    def change(self, tensor: Tensor, tangent: Tensor) -> None:
        """A tensor was changed in place. So is its tangent, which its base or its views may share."""
        known = self.tangent(tensor)
        if known is None and tensor._of is not None and tensor._of[0]._a.dtype == tensor._a.dtype:
            base = tensor._of[0]
            self.keep(base, aten.zeros_like(base))
            known = self.tangent(tensor)
        if known is None or known.shape != tangent.shape:
            self.keep(tensor, tangent)
        else:
            aten.copy_(known, tangent)

    @staticmethod
    def another(array: Any) -> Any:
        """The same memory as a separate array, which has no tangent."""
        return array.view() if type(array) is ndarray else seen_through(array, phantom(array)[...])

    # -- the tap

    def wants(self) -> bool:
        """Whether this thread's ops are looked at."""
        return MINE.enabled and bool(self.tangents)

    def watch(self, op: Op, inplace: bool, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Run an op, and find the tangents of its results."""
        if op.composite is not None and not is_whole(op):
            return self.looked_at(function, arguments)  # its parts ask
        duals = [one for one in tensors_in(arguments.values()) if self.tangent(one) is not None]
        if not duals or op.namespace != "aten":
            return self.looked_at(function, arguments)
        if arguments.get("out") is not None and len(arguments) > len(op.schema.arguments):
            raise NotImplementedError(f"Trying to use forward AD with {op.name}_out that does not support it because "
                                      "it is an out= function")
        with self:
            if op.name == "detach":
                made = self.looked_at(function, arguments)
                made._a = Level.another(made._a)
            elif op.view and not inplace:
                made = self.looked_at(function, arguments)
                shown = function(**{name: self.tangent(value) if isinstance(value, Tensor) else value
                                    for name, value in arguments.items()})
                for one, tangent in zip(several(made), several(shown)):
                    self.keep(one, tangent if differentiable(one) else None)
            elif inplace or (op.composite is not None and op.name[-1:] == "_" != op.name[-2:-1]):
                tangents = self.pushed(op, function, arguments, True)
                made = self.looked_at(function, arguments)
                for one, tangent in zip(several(next(iter(arguments.values()))), tangents):
                    if tangent is not None:
                        self.change(one, tangent)
            else:
                tangents = self.pushed(op, function, arguments, False)
                made = self.looked_at(function, arguments)
                for one, tangent in zip(several(made), tangents):
                    if tangent is not None:
                        self.keep(one, tangent)
            return made

    def pushed(self, op: Op, function: Any, arguments: dict[str, Any], inplace: bool) -> list[Tensor | None]:
        """The tangents of what an op is about to return. Streams of random numbers keep their position."""
        nodes: list[Dual] = []
        state = THREAD.state
        streams = StreamStates()
        packing, state.pack_hooks = state.pack_hooks, []
        wanted = state.grad and any(one.requires_grad or ((tangent := self.tangent(one)) is not None
                                                          and tangent.requires_grad)
                                    for one in tensors_in(arguments.values()))
        try:
            with enable_grad():
                given = {name: self.entering(value, nodes) for name, value in arguments.items()}
                first = next(iter(given))
                for name in given.keys() & (CHANGED | {first} if inplace else CHANGED):
                    given[name] = copied(given[name])
                made = several(function(**given))
                if inplace and isinstance(given[first], (tuple, list)):
                    made = several(given[first])
                if not op.grad and op.composite is None:  # the results are constants, except for parts of gradients
                    if op.name.endswith(PARTS) and any(map(differentiable, made)):
                        raise NotImplementedError(NO_TANGENT.format(op.name))
                    return [None] * len(made)
                return [tangent_through(one, nodes, wanted) if differentiable(one) else None for one in made]
        except RuntimeError as error:
            if "is not implemented" in str(error):  # the gradient cannot be differentiated
                raise NotImplementedError(NO_TANGENT.format(op.name)) from error
            raise
        finally:
            state.pack_hooks = packing
            streams.go_on_from_here()

    def entering(self, value: Any, nodes: list[Dual]) -> Any:
        """An argument for the second run: tensors with tangents begin a graph."""
        if isinstance(value, (list, tuple)):
            if not any(self.tangent(one) is not None for one in tensors_in([value])):
                return value
            return type(value)([self.entering(one, nodes) for one in value])
        tangent = self.tangent(value) if isinstance(value, Tensor) else None
        if tangent is None:
            return value
        node = object.__new__(Dual)
        before = edge(value) if value.requires_grad else None
        node.edges = () if before is None else (before,)
        node.seq = THREAD.state.seq
        THREAD.state.seq += 1
        node.meta = ((value._a.shape, value._a.dtype),)
        node.hooks, node.tangent = None, tangent
        nodes.append(node)
        entered = alias(value)
        entered._rg, entered._edge = True, (node, 0)
        return entered


def several(made: Any) -> tuple[Any, ...]:
    """An op's result as a tuple."""
    return tuple(made) if isinstance(made, (tuple, list)) else (made,)


def copied(value: Any) -> Any:
    """An argument that the second run may change."""
    if isinstance(value, (tuple, list)):
        return [copied(one) for one in value]
    return aten.clone(value) if isinstance(value, Tensor) else value


def differentiable(value: Any) -> bool:
    """Whether a result can have a tangent."""
    return isinstance(value, Tensor) and FROM_NUMPY[value._a.dtype].category >= FLOAT


def tangent_through(tensor: Tensor, duals: list[Dual], wanted: bool) -> Tensor | None:
    """The tangent of a tensor that an op made from tensors that begin at these nodes."""
    if not tensor.requires_grad:
        return None
    with no_grad():
        probe = aten.zeros_like(tensor)
    probe.requires_grad = True
    pulled = grad(tensor, [GradientEdge(node, 0) for node in duals], probe, create_graph=True, allow_unused=True)
    used = [(one, node.tangent) for one, node in zip(pulled, duals) if one is not None]
    if not used:
        return None
    linear = [(one, tangent) for one, tangent in used if one.requires_grad]
    if linear:
        made = grad([one for one, _ in linear], probe, [tangent for _, tangent in linear], create_graph=wanted,
                    retain_graph=True, allow_unused=True)[0]
        if made is not None:
            # A gradient may pass through an op unchanged. A tangent that is changed in place must not be shared.
            place = made.untyped_storage().data_ptr()
            shared = any(node.tangent.untyped_storage().data_ptr() == place for node in duals)
            return aten.clone(made) if shared else made
    with no_grad():
        return aten.zeros_like(tensor)


def enter_dual_level() -> int:
    """Begin to keep tangents; returns the number of the level."""
    if LEVELS:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    LEVELS.append(Level())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Drop the tangents of a level."""
    if level not in (None, len(LEVELS) - 1):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    if not LEVELS:
        raise RuntimeError("Dual level must be a positive number.")
    LEVELS.pop()
    tap(None, "tangents")


class dual_level:
    """A context in which tensors can have tangents; they are dropped at its end.

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
    if level is None:
        level = len(LEVELS) - 1
    if level < 0:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    if level != len(LEVELS) - 1:
        raise RuntimeError("Invalid level given to _make_dual" if level else "Trying to access a forward AD level with "
                           "an invalid index. This index was either not created or is already deleted.")
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
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level is not "
                           "supported.")
    if unpack_dual(tensor).tangent is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                           "level is not supported.")
    if not _alike(tensor, tangent):
        # Views of the tensor that reach beyond it are views of the tangent's memory too.
        whole = aten.zeros(tensor.untyped_storage().nbytes() // tensor._a.dtype.itemsize, dtype=tensor.dtype,
                           device=tensor.device)
        window = aten.as_strided(whole, tensor.shape, tensor.stride(), tensor.storage_offset())
        window = aten._conj(window) if tensor.is_conj() else window
        tangent = aten.copy_(aten._neg_view(window) if tensor.is_neg() else window, tangent)
    dual = aten.alias(tensor)
    dual._a = Level.another(dual._a)
    LEVELS[-1].keep(dual, tangent)
    tap(LEVELS[-1], "tangents")
    return dual


def _alike(tensor: Tensor, tangent: Tensor) -> bool:
    """Whether a tangent can be kept as it is: its memory has the size and the meaning of its tensor's."""
    if type(tensor._a) not in (ndarray, FlippedArray) or not tensor._a.size:
        return True
    return tensor.is_conj() == tangent.is_conj() and tensor.is_neg() == tangent.is_neg() and (
        tensor.untyped_storage().nbytes() == tangent.untyped_storage().nbytes())


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor and its tangent, None if it does not depend on a dual tensor of the open level."""
    tangent = LEVELS[-1].tangent(tensor) if LEVELS and MINE.enabled else None
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    if level not in (None, len(LEVELS) - 1):
        raise RuntimeError("Invalid level given to _fw_primal")
    with LEVELS[-1]:
        primal = aten.alias(tensor)
    primal._a = Level.another(primal._a)
    LEVELS[-1].keep(primal, None)
    return UnpackedDualTensor(primal, tangent)


def keep_tangent(tensor: Tensor, tangent: Tensor) -> Tensor:
    """Give a tensor a tangent in the open level."""
    LEVELS[-1].keep(tensor, tangent)
    return tensor


def is_fwd_grad_enabled() -> bool:
    """Whether this thread's ops have tangents."""
    return MINE.enabled


class set_fwd_grad_enabled:
    """Set whether this thread's ops have tangents; takes effect at once, and the end of a context undoes it."""

    def __init__(self, mode: bool) -> None:
        self.before, MINE.enabled = MINE.enabled, mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        MINE.enabled = self.before


def without_history(tensor: Tensor) -> Tensor:
    """`detach` that keeps the tangent, for transforms inside a level."""
    made = aten.detach(tensor)
    tangent = LEVELS[-1].tangent(tensor) if LEVELS else None
    return made if tangent is None else keep_tangent(made, aten.detach(tangent))
