"""How histories follow in-place changes: of a tensor, of its base and of the views of both."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from .._backends.base import device_of
from .._backends.cpu.memory import preserving_clone_step
from .._backends.flipped import is_conj, is_neg
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

    @property
    def may_run_user_code(self) -> bool:  # type: ignore[override]
        """Whether the in-place op's own node does."""
        return self.fn.may_run_user_code

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
        """Drop what the inner node saved, unless that node is on the way of this pass itself: it runs later."""
        walk = THREAD.state.walk
        if walk is None or not walk.visits(self.fn):
            self.fn.release()


# How a view was made, in the third place of `Tensor._of`: 0 if autograd can follow its in-place changes.
NO_GRAD, MANY, INFERENCE, CUSTOM = 1, 2, 3, 4
REFUSED = {
    NO_GRAD: "Whether the change is to be recorded is not clear: move both the view and the in-place operation inside "
             "the no_grad block, or both outside.",
    MANY: "This view is the output of a function that returns multiple views. Such functions do not allow the output "
          "views to be modified inplace. Use an out-of-place operation instead.",
    INFERENCE: "Move both the view and the in-place operation inside the inference_mode block, or both outside.",
    CUSTOM: "This view was created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated with the custom "
            "Function. Clone the output of the custom Function.",
}


def refuse_view(view: Tensor, kind: int, doing: str) -> None:
    """Raise an error that says why autograd cannot follow an in-place change of a view, or of its base."""
    made = view._edge
    if kind in (NO_GRAD, INFERENCE) or made is None:
        mode, now = ("inference", "in normal mode") if kind == INFERENCE else ("no_grad", "with grad mode enabled")
        which = "A view was" if made is None else f"{output_name(made)} is a view of a view which was"
        raise RuntimeError(f"{which} created in {mode} mode and {doing} modified inplace {now}. {REFUSED[kind]}")
    raise RuntimeError(f"{output_name(made)} is a view and {doing} modified inplace. {REFUSED[kind]}")


def output_name(made: Edge) -> str:
    """How an error calls a view that an op has made."""
    name = re.sub(r"Backward\d*$", "", made[0].name())
    return f"Output {made[1]} of {name}"


def check_inference(tensor: Tensor) -> None:
    """Raise an error if memory of inference mode is changed outside of it."""
    if not THREAD.state.inference:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. "
                           "Clone it to get a normal tensor before doing inplace update.")


def check_inplace(tensor: Tensor) -> None:
    """Raise PyTorch's errors: a leaf that requires grad, or a view of one, must not be changed in place."""
    if tensor._of is not None:
        base, _, kind = tensor._of
        if kind:
            refuse_view(tensor, kind, "is being")
        if base._edge is None and (tensor._rg or base._rg):
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
    """The value before an in-place op, with its history, for formulas that need it."""
    array = tensor._a
    kept = wrap(preserving_clone_step(array) if type(array) is ndarray else device_of(array).clone(array))
    kept._rg = tensor._rg
    kept._edge = edge(tensor) if tensor._rg else None
    return kept


def rebase(tensor: Tensor, node: Node) -> None:
    """Make `node` the history of a tensor that was just changed in place; its base and views follow."""
    if tensor._of is None:
        before, tensor._edge = tensor._edge, (node, 0)
        tensor._rg = True
        follow(tensor, before)
        return
    base, _, kind = tensor._of
    copy = new(CopySlices)
    copy.fn = node
    copy.window = window_of(base, tensor)
    copy.steps = tuple(s // base._a.dtype.itemsize for s in base._a.strides)
    copy.edges = (edge(base), *node.edges[1:])
    copy.seq = THREAD.state.seq  # later than the inner node
    THREAD.state.seq += 1
    copy.meta = ((base._a.shape, base._a.dtype),)
    copy.hooks = None
    base._rg = True
    before, base._edge = base._edge, (copy, 0)
    follow(base, before)
    tensor._rg = True
    # An impossible version makes the next look-up of this view's edge derive it from the base.
    tensor._of = (base, -1, kind)
    if tensor._ag is not None and tensor._ag.retains_grad:
        view_edge(tensor)
    else:
        tensor._edge = None


def follow(tensor: Tensor, before: Edge | None) -> None:
    """A tensor that retains its gradient retains that of its new value."""
    if before is None or tensor._ag is None or not tensor._ag.retains_grad or before[0].hooks is None:
        return
    kept = before[0].hooks.capture.pop(before[1], None)
    if kept is not None and tensor._edge is not None:
        tensor._edge[0].ensure_hooks().capture[tensor._edge[1]] = kept


def window_of(base: Tensor, view: Tensor) -> Callable[[Tensor], Tensor]:
    """A function that takes the same window out of any tensor of the base's shape."""
    base_item, item = base._a.dtype.itemsize, view._a.dtype.itemsize
    sizes = tuple(view._a.shape)
    offset = (view.data_ptr() - base.data_ptr()) if view._a.size else 0
    base_steps = tuple(s // base_item for s in base._a.strides)
    steps = view._a.strides
    parts = item < base_item  # the view is of the parts of complex numbers
    pairs = item > base_item  # the view takes pairs of numbers for complex ones
    if pairs:
        sizes, steps, item = (*sizes, 2), (*steps, base_item), base_item
    view_steps = tuple(s // item for s in steps)
    conj, neg = (is_conj(view._a) != is_conj(base._a)) and not parts, is_neg(view._a) != is_neg(base._a)

    def window(whole: Tensor) -> Tensor:
        whole = with_layout(whole, base_steps)
        if parts:
            whole = aten.view_as_real(whole)
        made = aten.as_strided(whole, sizes, view_steps, whole.storage_offset() + offset // item)
        if pairs:
            made = aten.view_as_complex(made)
        if conj:
            made = aten._conj(made)
        return aten._neg_view(made) if neg else made

    return window


def with_layout(tensor: Tensor, steps: tuple[int, ...]) -> Tensor:
    """The tensor itself if it has these strides (in elements), otherwise a copy that has them."""
    item = tensor._a.dtype.itemsize
    if tuple(s // item for s in tensor._a.strides) == steps:
        return tensor
    return aten.copy_(aten.empty_strided(tensor._a.shape, steps, dtype=tensor.dtype, device=tensor.device), tensor)


def view_edge(view: Tensor) -> Edge | None:
    """The edge of a view. If its base was changed in place since, the view is derived from the base again."""
    base, seen, kind = view._of  # type: ignore[misc]
    version = view._st.version  # type: ignore[union-attr]
    if seen == version or not base._rg:
        return view._edge
    if base._edge is None and kind not in (NO_GRAD, INFERENCE):
        return view._edge  # the base is a leaf, and the history is still right
    if kind and seen >= 0:
        refuse_view(view, kind, "its base or another view of its base has been")
    state = THREAD.state
    enabled, state.grad = state.grad, True
    try:
        fresh = window_of(base, view)(base)
    finally:
        state.grad = enabled
    before, view._edge = view._edge, fresh._edge
    view._rg = True
    view._of = (base, version, kind)
    follow(view, before)
    return view._edge


VIEW_EDGE.append(view_edge)
