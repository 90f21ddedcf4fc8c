"""Custom differentiable functions: `autograd.Function`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch.namespace import aten
from .._dispatch.observer import event_id, span
from .._dispatch.state import THREAD
from .._dtype import FLOAT, FROM_NUMPY
from .._tensor import Tensor, alias
from .graph import Node, apply_pack_hooks, bump, check_inplace, edge, rebase, save, save_result, unpack, unpack_result


class FunctionNode(Node):
    """The node of a custom function, which is also the `ctx` its forward and backward see."""

    __slots__ = ("__dict__", "dirty", "materialize", "needs_input_grad", "non_differentiable", "pending", "positions",
                 "saved", "to_save_outputs")
    saved_names = ("saved",)
    function: type[Function]
    dirty: tuple[Any, ...]
    materialize: bool
    needs_input_grad: tuple[bool, ...]
    non_differentiable: tuple[Any, ...]
    pending: tuple[Any, ...] | None
    positions: tuple[int, ...]
    saved: Any
    to_save_outputs: dict[int, int]

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward, with version checks."""
        self.pending = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Only of use to forward-mode differentiation, which this runtime does not have."""
        raise NotImplementedError("save_for_forward: forward-mode differentiation is not available in this runtime")

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept."""
        if self.saved is None:
            return tuple(self.pending or ())
        items = unpack(self, self.saved)
        for i, number in self.to_save_outputs.items():
            items[i] = unpack_result(self, self.saved[i], number)
        return tuple(items)

    saved_variables = saved_tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare inputs that forward changed in place."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare outputs that no gradient flows through."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing output gradients arrive as zeros (the default) or as None."""
        self.materialize = value

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        """Run the user's backward and line its results up with the tensor inputs."""
        if self.materialize:
            grads = tuple(aten.zeros(shape, dtype=FROM_NUMPY[d]) if g is None else g
                          for g, (shape, d, _) in zip(grads, self.meta))
        function = type(self).function
        if function.vjp is not Function.vjp and function.backward is not Function.backward:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
                               "only implement one of them.")
        backward = function.vjp if function.vjp is not Function.vjp else function.backward
        results = backward(self, *grads)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        count = len(self.needs_input_grad)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got "
                f"{len(results)})"
            )
        return tuple(results[i] for i in self.positions)


class Function:
    """A differentiable step with a hand-written backward.

    >>> import mindtorch_v2 as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = torch.ones(1, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor([2.])
    """

    generate_vmap_rule = False
    _node: type[FunctionNode]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, "
                           "so you should invoke them on the class itself.")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = f"{cls.__name__}Backward"
        cls._node = type(name, (FunctionNode,), {"__slots__": (), "function": cls})

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; the first argument is `ctx` unless `setup_context` is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Fill `ctx` after forward, if forward does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs from the gradients of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record this function in the graph."""
        with span(event_id(cls.__name__, "op"), THREAD.state.seq):
            return _apply(cls, args, kwargs)


Function._node = FunctionNode


def _apply(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    state = THREAD.state
    node: FunctionNode = object.__new__(cls._node)
    node.dirty = ()
    node.non_differentiable = ()
    node.materialize = True
    node.pending = node.saved = None
    node.to_save_outputs = {}
    node.hooks = None
    node.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    node.positions = tuple(i for i, a in enumerate(args) if isinstance(a, Tensor))
    recording = state.grad and any(node.needs_input_grad)
    # Edges are taken before forward runs, since forward may change its inputs in place.
    node.edges = tuple(edge(args[i]) for i in node.positions) if recording else ()
    before, state.grad = state.grad, False
    try:
        if cls.setup_context is not Function.setup_context:
            result = cls.forward(*args, **kwargs)
            cls.setup_context(node, args, result)
        else:
            result = cls.forward(node, *args, **kwargs)
    finally:
        state.grad = before
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    outputs = tuple(_fresh_output(o, args, node) for o in outputs)
    dirty: tuple[Any, ...] = node.dirty
    for changed in dirty:
        bump(changed)
    if recording:
        _record(node, args, outputs, state)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*outputs)
    return type(result)(outputs) if isinstance(result, (tuple, list)) else outputs[0]


def _fresh_output(output: Any, inputs: tuple[Any, ...], node: FunctionNode) -> Any:
    """An input returned as it is becomes an alias, so that the input's own history stays."""
    if isinstance(output, Tensor) and any(output is i for i in inputs) and not any(output is d for d in node.dirty):
        return alias(output)
    return output


def _record(node: FunctionNode, args: tuple[Any, ...], outputs: tuple[Any, ...], state: Any) -> None:
    node.seq = state.seq
    state.seq += 1
    tensors = [o for o in outputs if isinstance(o, Tensor)]
    node.meta = tuple((o._a.shape, o._a.dtype, type(o._a)) if isinstance(o, Tensor) else ((), FLOAT, object)
                      for o in outputs)
    for tensor in node.dirty:
        check_inplace(tensor)
    saved: list[Any] = []
    for i, item in enumerate(node.pending or ()):
        position = next((n for n, o in enumerate(outputs) if o is item), None)
        if isinstance(item, Tensor) and position is not None and not any(item is d for d in args):
            saved.append(save_result(item))
            node.to_save_outputs[i] = position
        else:
            saved.append(save(item))
    node.saved = saved
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor) or any(output is t for t in node.non_differentiable):
            continue
        if FROM_NUMPY[output._a.dtype].category < FLOAT:
            continue
        if any(output is t for t in node.dirty):
            rebase(output, node)
        else:
            output._rg = True
            output._edge = (node, number)
    if state.pack_hooks and tensors:
        apply_pack_hooks(node)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a backward that is not itself differentiable: a second backward raises."""

    @functools.wraps(function)
    def inside(ctx: Any, *grads: Any) -> Any:
        state = THREAD.state
        before, state.grad = state.grad, False
        try:
            results = function(ctx, *grads)
        finally:
            state.grad = before
        if not state.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        listed = results if isinstance(results, tuple) else (results,)
        marked = tuple(_not_again(r) if isinstance(r, Tensor) else r for r in listed)
        return marked if isinstance(results, tuple) else marked[0]

    return inside


class _OnceOnly(Node):
    __slots__ = ()

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _not_again(tensor: Tensor) -> Tensor:
    node = object.__new__(_OnceOnly)
    node.edges = ()
    node.seq = THREAD.state.seq
    node.meta = ((tensor._a.shape, tensor._a.dtype, type(tensor._a)),)
    node.hooks = None
    marked = alias(tensor)
    marked._rg = True
    marked._edge = (node, 0)
    return marked
