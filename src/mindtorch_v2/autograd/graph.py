"""`torch.autograd.graph`: a look at, and hooks into, the recorded graph."""

from __future__ import annotations

import abc
import functools
import importlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._autograd.function import DelayedError, FunctionCtx
from .._autograd.graph import AccumulateGrad, GradientEdge, RemovableHandle, edge
from .._autograd.graph import Node as RecordedNode
from .._autograd.inplace import bump
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._tensor import Tensor


class Node(abc.ABC):  # noqa: B024  # it is asked about, and neither made nor inherited from
    """What nodes of the graph are instances of, and the `ctx` of custom functions.

    >>> import mindtorch_v2 as torch
    >>> isinstance((torch.ones(2, requires_grad=True) * 2).grad_fn, torch.autograd.graph.Node)
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Can't instantiate abstract class Node with abstract methods metadata, name, next_functions, "
                        "register_hook, register_prehook")

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return issubclass(subclass, (RecordedNode, FunctionCtx, DelayedError))


for _name in ("_input_metadata", "metadata", "name", "next_functions", "register_hook", "register_prehook"):
    setattr(Node, _name, RecordedNode.__dict__[_name])

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
        if HOOKS_DISABLED:
            raise RuntimeError(HOOKS_DISABLED[-1])
        if not all(map(callable, self.hooks)):
            raise TypeError("saved_tensors_hooks(): incompatible function arguments: expected two functions, to pack "
                            "and to unpack")
        THREAD.state.pack_hooks.append(self.hooks)

    def __exit__(self, *exc: object) -> None:
        THREAD.state.pack_hooks.pop()


def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
    """One backward pass, for programs that start it themselves."""
    from ._engine_names import _engine_run_backward as run  # it needs all of autograd

    return run(t_outputs, *args, **kwargs)


HOOKS_DISABLED: list[str] = []  # why hooks on saved tensors may not be used now


def saved_tensors_hooks_disabled() -> str | None:
    """Why hooks on saved tensors may not be used now, if they may not."""
    return HOOKS_DISABLED[-1] if HOOKS_DISABLED else None


class disable_saved_tensors_hooks:
    """Refuse hooks on saved tensors inside, with a message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        if THREAD.state.pack_hooks:
            raise RuntimeError(self.message)
        HOOKS_DISABLED.append(self.message)

    def __exit__(self, *exc: object) -> None:
        HOOKS_DISABLED.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


class _unsafe_preserve_version_counter:
    """In-place changes inside do not count: backward will not notice them."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)

    def __enter__(self) -> None:
        self.before = [tensor._version for tensor in self.tensors]

    def __exit__(self, *exc: object) -> None:
        for tensor, version in zip(self.tensors, self.before):
            tensor.shared().version = version


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory until backward needs them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, aten.to(t, "cpu")), lambda kept: aten.to(kept[1], kept[0]))


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of a tensor that requires grad."""
    found = edge(tensor)
    if found is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*found, tensor if isinstance(found[0], AccumulateGrad) else None)


def increment_version(tensor: Any) -> None:
    """Count an in-place change that autograd could not see."""
    for one in (tensor if isinstance(tensor, (list, tuple)) else (tensor,)):
        bump(one)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted: gradients are added up where they were computed, so that there is nothing to warn of."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted: there are no captures of streams here."""


def region_activation_memory_budget(budget: float) -> Any:
    """Only compiled programs have such a budget."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region, and nothing is compiled here")


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call `fn` with the gradients of several tensors when all (or any) of them are known."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    passes: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()  # what came, by backward pass
    lock = threading.Lock()

    def hook_for(position: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            walk = THREAD.state.walk
            with lock:
                came = passes.setdefault(walk, {})
                first = not came
                came[position] = grad
                expected = sum(walk.will_reach(node) for node in nodes)
            if mode == "any":
                if first:
                    fn(grad)
            elif len(came) == expected:
                fn([came.get(i) for i in range(len(tensors))])

        return hook

    nodes = [get_gradient_edge(t).node for t in tensors]
    handles = [t.register_hook(hook_for(i)) for i, t in enumerate(tensors)]

    class Handles(RemovableHandle):
        def __init__(self) -> None:
            super().__init__({})

        def remove(self) -> None:
            for handle in handles:
                handle.remove()

    return Handles()


def __getattr__(name: str) -> Any:
    if name == "allow_mutation_on_saved_tensors":  # it needs dispatch modes, which need more than few programs do
        return importlib.import_module(".mutation", __package__).allow_mutation_on_saved_tensors
    raise AttributeError(f"module 'torch.autograd.graph' has no attribute '{name}'")


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",  # noqa: F822
           "get_gradient_edge", "increment_version", "region_activation_memory_budget", "register_multi_grad_hook",
           "save_on_cpu", "saved_tensors_hooks", "set_override_stale_capture_stream",
           "set_warn_on_accumulate_grad_stream_mismatch"]
