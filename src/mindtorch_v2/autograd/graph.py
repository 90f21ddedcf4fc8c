"""`torch.autograd.graph`: a look at, and hooks into, the recorded graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._autograd.graph import Node, RemovableHandle, edge
from .._autograd.inplace import bump
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._tensor import Tensor


class saved_tensors_hooks:
    """Decide how tensors saved for backward are kept: `pack(tensor)` when saving, `unpack(value)` when needed.

    >>> import mindtorch_v2 as torch
    >>> kept = []
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
    ...     y = x * x
    >>> len(kept)
    2
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        THREAD.state.pack_hooks.append(self.hooks)

    def __exit__(self, *exc: object) -> None:
        THREAD.state.pack_hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory until backward needs them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, aten.to(t, "cpu")), lambda kept: aten.to(kept[1], kept[0]))


class GradientEdge(tuple[Any, ...]):
    """Where a tensor's gradient goes: `(node, output_nr)`."""

    def __new__(cls, node: Node, output_nr: int) -> GradientEdge:
        return tuple.__new__(cls, (node, output_nr))

    @property
    def node(self) -> Node:
        """The node."""
        return self[0]

    @property
    def output_nr(self) -> int:
        """Which of its outputs."""
        return self[1]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of a tensor that requires grad."""
    found = edge(tensor)
    if found is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*found)


def increment_version(tensor: Any) -> None:
    """Count an in-place change that autograd could not see."""
    for one in (tensor if isinstance(tensor, (list, tuple)) else (tensor,)):
        bump(one)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call `fn` with the gradients of several tensors when all (or any) of them are known."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    seen: dict[int, Any] = {}
    fired = [False]

    def hook_for(position: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            if mode == "any":
                if not fired[0]:
                    fired[0] = True
                    fn(grad)
                return
            seen[position] = grad
            if len(seen) == len(tensors):
                fn([seen[i] for i in range(len(tensors))])
                seen.clear()

        return hook

    handles = [t.register_hook(hook_for(i)) for i, t in enumerate(tensors)]  # type: ignore[attr-defined]

    class Handles(RemovableHandle):
        def __init__(self) -> None:
            super().__init__({})

        def remove(self) -> None:
            for handle in handles:
                handle.remove()

    return Handles()


__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version", "register_multi_grad_hook",
           "save_on_cpu", "saved_tensors_hooks"]
