"""`torch._custom_ops`: the older way to define ops, in parts that are registered one by one; now `torch.library`."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from ._dispatch.state import THREAD
from ._library import table
from ._library.definition import Definition, below_autograd
from ._library.generated import Formula
from ._library.infer_schema import infer_schema
from ._library.libraries import Library, device_key
from ._library.schema import parse
from ._tensor import Tensor
from .utils._pytree import tree_flatten, tree_unflatten

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

RESERVED = ("prim", "prims", "aten", "at", "torch", "pytorch")
DEVICES = ("cpu", "cuda")


class _CustomOp:
    """One op and what was registered for it so far."""

    def __init__(self, namespace: str, name: str, schema: str) -> None:
        self.name, self.library = name, Library(namespace, "FRAGMENT")
        self.library.define(name + schema)
        self.definition: Definition = table.lookup(f"{namespace}::{name}")
        self.save: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.library.impl(name, self._without_backward, "Autograd")

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self.definition.schema.name}")>'

    def _without_backward(self, *args: Any, **kwargs: Any) -> Any:
        """The op before its derivative is registered."""
        leaves = tree_flatten((args, kwargs))[0]
        if THREAD.state.grad and any(isinstance(one, Tensor) and one.requires_grad for one in leaves):
            if self.backward is not None or self.save is not None:
                have, missing = ("backward", "save_for_backward") if self.save is None else ("save_for_backward",
                                                                                            "backward")
                raise RuntimeError(f"We found a '{have}' registration for {self} but were unable to find a '{missing}' "
                                   "registration: both are needed.")
            raise RuntimeError(f"Autograd has not been implemented for operator {self}")
        with below_autograd():
            return self.definition(*args, **kwargs)

    def complete(self) -> None:
        """Register the op's formula once both halves of the gradient are known."""
        if self.save is not None and self.backward is not None:
            self.definition.kernels.pop("Autograd", None)
            self.definition.formula = Formula(self._backward, self._setup)

    def _setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Any = None) -> None:
        assert self.save is not None
        values = dict(zip((one.name for one in self.definition.schema.arguments), inputs))
        values.update(keyword_only_inputs or {})
        given: Any = namedtuple(f"{self.name}_args", list(values))  # type: ignore[misc]
        leaves, spec = tree_flatten(self.save(given(**values), output))
        ctx.save_for_backward(*[one for one in leaves if isinstance(one, Tensor)])
        ctx._kept = [None if isinstance(one, Tensor) else one for one in leaves], [
            isinstance(one, Tensor) for one in leaves], spec

    def _backward(self, ctx: Any, *grads: Any) -> Any:
        assert self.backward is not None
        plain, are_tensors, spec = ctx._kept
        tensors = iter(ctx.saved_tensors)
        saved = tree_unflatten([next(tensors) if one else other for one, other in zip(are_tensors, plain)], spec)
        return self._checked(self.backward(ctx, saved, *grads))

    def _checked(self, made: Any) -> Any:
        """The gradients from the program's backward, in the order of the arguments."""
        start = f"In the backward function defined for {self} using the CustomOp API,"
        if not isinstance(made, dict):
            raise RuntimeError(f"{start} expected the output of the backward function to be a dict but got "
                               f"{type(made)}")
        arguments = [one for one in self.definition.schema.arguments if not one.kwarg_only]
        wanted = {one.name for one in arguments if one.is_tensor}
        if made.keys() != wanted:
            raise RuntimeError(f"{start} expected the returned grad_input dict to have keys {wanted} but got "
                               f"{made.keys()}: a gradient, or None, for each tensor argument")
        for name, grad in made.items():
            for one in grad if isinstance(grad, (list, tuple)) else (grad,):
                if one is not None and not isinstance(one, Tensor):
                    raise RuntimeError(f"{start} got object of type {type(one)} as the gradient for input '{name}', "
                                       "but expected the gradient to be either None or a Tensor")
        return tuple(made.get(one.name) for one in arguments)


_OPS: dict[str, _CustomOp] = {}


def _find(qualname: str) -> _CustomOp:
    if qualname not in _OPS:
        raise ValueError(f"Could not find the operator {qualname}. Please make sure you have already registered the "
                         "operator with custom_op.")
    return _OPS[qualname]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an op, by a function with annotations (whose body does not run) or by its signature."""
    namespace, found, name = qualname.partition("::")
    if not found or "::" in name:
        raise ValueError(f"Expected there to be a namespace in {qualname}, i.e. The operator name should look "
                         "something like ns::foo")
    if namespace in RESERVED:
        raise ValueError(f"custom_op(..., ns='{namespace}'): '{namespace}' is a reserved namespace, please choose "
                         "something else.")

    def define(schema: str) -> None:
        parsed = parse(namespace, name + schema)
        if parsed.is_mutable or not parsed.returns or any(one.alias_info is not None for one in parsed.returns):
            raise ValueError("custom_op only supports functional operators (ops that do not mutate any inputs, do not "
                             "return views of the inputs, and has at least one return). Got the following "
                             f"non-functional schema: {name + schema}")
        _OPS[qualname] = _CustomOp(namespace, name, schema)

    def decorate(function: Any) -> Any:
        if not inspect.isfunction(function):
            raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
        if function.__name__ != name:
            raise ValueError(f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but "
                             f"got '{function.__name__}'.")
        define(infer_schema(function, mutates_args=()))
        return function

    if func_or_schema is None:
        return decorate
    return define(func_or_schema) if isinstance(func_or_schema, str) else decorate(func_or_schema)


def impl(qualname: str, *, device_types: str | Sequence[str] = DEVICES, func: Callable[..., Any] | None = None) -> Any:
    """Register the op for device types, as a decorator or with the function given."""
    types = [device_types] if isinstance(device_types, str) else list(device_types)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = _find(qualname)
        for one in types:
            if one not in DEVICES:
                raise ValueError(f"CustomOp.impl(device_types=[{one}, ...]): we only support device_type in {DEVICES}.")
            if device_key(one) in op.definition.kernels:
                raise RuntimeError(f"Attempting to register a {one} impl for operator {qualname} that already has a "
                                   f"{one} impl registered from Python. This is not supported.")
            op.library.impl(op.name, function, device_key(one))
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Register what the op does on tensors without data."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _find(qualname).definition.fake = function
        return function

    return register if func is None else register(func)


def impl_save_for_backward(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """`func(inputs, output)` returns what the backward needs."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = _find(qualname)
        op.save = function
        op.complete()
        return function

    return register if func is None else register(func)


def impl_backward(qualname: str, output_differentiability: Sequence[bool] | None = None, *,
                  func: Callable[..., Any] | None = None) -> Any:
    """`func(ctx, saved, *grads)` returns a dictionary with a gradient for each tensor argument."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = _find(qualname)
        if output_differentiability is not None:
            if len(output_differentiability) != len(op.definition.schema.returns):
                raise RuntimeError("impl_backward(output_differentiability): expected output_differentiability to be a "
                                   "list of bools with length equal to the number of outputs of this CustomOp got: "
                                   f"{output_differentiability}")
            if not all(output_differentiability):
                raise NotImplementedError("torch._custom_ops.impl_backward: outputs without a gradient are not "
                                          "supported here; give them one, or use torch.library.custom_op")
        op.backward = function
        op.complete()
        return function

    return register if func is None else register(func)


def _destroy(qualname: str) -> None:
    """Forget an op."""
    _find(qualname).library._destroy()
    del _OPS[qualname]
