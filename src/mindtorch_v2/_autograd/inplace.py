"""How histories follow in-place changes: of a tensor, of its base and of the views of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from .._backends.cpu.memory import preserving_clone_step
from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK
from .._dispatch.state import THREAD
from .._memory_format import contiguous_format
from .._tensor import VIEW_EDGE, Tensor, wrap
from .graph import Edge, Node, edge, new
from .watched import apply_watched, event_ids


class CopySlices(Node):
    """The history of a base after an in-place op on one of its views: `fn` inside the window, identity outside."""

    __slots__ = ("fn", "steps", "window")
    fn: Node
    steps: tuple[int, ...]
    window: Callable[[Tensor], Tensor]
    full_name = "torch::autograd::CopySlices"

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """The gradient of the old base, and of the in-place op's other inputs."""
        grad = grads[0]
        if grad is None:
            return tuple(None for _ in self.edges)
        whole = aten.copy_(aten.new_empty_strided(grad, self.meta[0][0], self.steps), grad)
        window = self.window(whole)
        inside = [aten.clone(window, memory_format=contiguous_format)]
        inner = self.fn.apply(*inside) if not HOOK["OBSERVING"] else apply_watched(
            self.fn, event_ids(self.fn)[1], inside)
        if self.edges[0] is None:
            return (None, *inner[1:])
        if inner[0] is None:
            aten.zero_(window)
        else:
            aten.copy_(window, inner[0])
        return (whole, *inner[1:])

    def release(self) -> None:
        """Forget what the inner node saved."""
        self.fn.release()


def check_inplace(tensor: Tensor) -> None:
    """PyTorch's refusals: a leaf that requires grad, or a view of one, is not changed in place."""
    if tensor._base is not None:
        base = tensor._base[0]
        if base._rg and base._edge is None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if tensor._rg and tensor.grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def bump(tensor: Tensor) -> None:
    """Count an in-place change."""
    if tensor._st is None:
        tensor.shared().version = 1
    else:
        tensor._st.version += 1


def original(tensor: Tensor) -> Tensor:
    """The value before an in-place op, for formulas that need it, with the history it had."""
    array = tensor._a
    kept = wrap(preserving_clone_step(array) if type(array) is ndarray else array.copy())
    kept._rg = tensor._rg
    kept._edge = edge(tensor) if tensor._rg else None
    return kept


def rebase(tensor: Tensor, node: Node) -> None:
    """Make `node` the history of a tensor that was just changed in place; its base and views follow."""
    if tensor._base is None:
        tensor._rg = True
        tensor._edge = (node, 0)
        return
    base = tensor._base[0]
    copy = new(CopySlices)
    copy.fn = node
    copy.window = window_of(base, tensor)
    copy.steps = tuple(s // base._a.dtype.itemsize for s in base._a.strides)
    copy.edges = (edge(base), *node.edges[1:])
    copy.seq = node.seq
    copy.meta = ((base._a.shape, base._a.dtype),)
    copy.hooks = None
    base._rg = True
    base._edge = (copy, 0)
    tensor._edge = None
    tensor._rg = True
    # An impossible version makes the next look at this view's edge derive it from the base.
    tensor._base = (base, -1)


def window_of(base: Tensor, view: Tensor) -> Callable[[Tensor], Tensor]:
    """A function that takes the same window out of any tensor of the base's shape."""
    item = base._a.dtype.itemsize
    sizes = tuple(view._a.shape)
    offset = (view.data_ptr() - base.data_ptr()) // item if view._a.size else 0
    view_steps = tuple(s // item for s in view._a.strides)
    base_steps = tuple(s // item for s in base._a.strides)
    return lambda whole: aten.as_strided(with_layout(whole, base_steps), sizes, view_steps,
                                         whole.storage_offset() + offset)


def with_layout(tensor: Tensor, steps: tuple[int, ...]) -> Tensor:
    """The tensor itself if its strides (in elements) are these, else a copy that has them."""
    item = tensor._a.dtype.itemsize
    if tuple(s // item for s in tensor._a.strides) == steps:
        return tensor
    return aten.copy_(aten.empty_strided(tensor._a.shape, steps, dtype=tensor.dtype, device=tensor.device), tensor)


def view_edge(view: Tensor) -> Edge | None:
    """The edge of a view. If its base was changed in place since, the view is derived from the base anew."""
    base, seen = view._base  # type: ignore[misc]
    if seen == view._version or base._edge is None or not base._rg:
        return view._edge
    state = THREAD.state
    enabled, state.grad = state.grad, True
    try:
        fresh = window_of(base, view)(base)
    finally:
        state.grad = enabled
    view._edge = fresh._edge
    view._rg = True
    view._base = (base, view._version)
    return view._edge


VIEW_EDGE.append(view_edge)
