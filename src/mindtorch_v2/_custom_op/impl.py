"""`torch._custom_op.impl`: an op that is defined in parts, and the table of these ops."""

from __future__ import annotations

import importlib
import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .._dispatch.state import THREAD
from .._library import table
from .._library.definition import Definition, below_autograd
from .._library.generated import Formula
from .._library.infer_schema import infer_schema
from .._library.libraries import Library
from .._library.schema import parse
from .._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "RESERVED_NS",
    "SUPPORTED_DEVICE_TYPE_TO_KEY",
    "CustomOp",
    "custom_op",
    "get_op",
    "global_registry",
    "infer_schema",
    "parse_qualname",
    "validate_namespace",
]

RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}


class CustomOp:
    """One op and what was registered for it so far."""

    def __init__(self, namespace: str, name: str, schema: str, *_: Any, _private_access: bool = False) -> None:
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private: use custom_op(...) to create a CustomOp object")
        self._qualname = f"{namespace}::{name}"
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

    def _destroy(self) -> None:
        """Forget the op."""
        self.library._destroy()
        del global_registry[self._qualname]

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


global_registry: dict[str, CustomOp] = {}


def get_op(qualname: str) -> Any:
    """The only overload of an op, as `torch.ops` has it."""
    namespace, name = parse_qualname(qualname)
    ops = importlib.import_module(f"{__name__.partition('.')[0]}.ops")
    try:
        return getattr(ops.namespace(namespace), name).default
    except AttributeError:
        raise ValueError(f"Could not find the operator {qualname}. Please make sure you have already registered the "
                         "operator.") from None


def find_custom_op(qualname: str) -> CustomOp:
    """The op that `custom_op` has made under a name."""
    if qualname not in global_registry:
        raise ValueError(f"Could not find the operator {qualname}. Please make sure you have already registered the "
                         "operator with custom_op.")
    return global_registry[qualname]


def parse_qualname(qualname: str) -> tuple[str, str]:
    """`ns::name` in its two parts."""
    namespace, found, name = qualname.partition("::")
    if not found or "::" in name:
        raise ValueError(f"Expected there to be a namespace in {qualname}, i.e. The operator name should look "
                         "something like ns::foo")
    if "." in name:
        raise ValueError("The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. "
                         f"Please name your operator something like ns::foo. Got: {qualname}")
    validate_namespace(namespace)
    return namespace, name


def validate_namespace(ns: str) -> None:
    """Refuse namespaces that have ops already."""
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else.")


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an op, by a function with annotations (whose body does not run) or by its signature."""
    namespace, name = parse_qualname(qualname)

    def define(schema: str) -> None:
        try:
            parsed = parse(namespace, name + schema)
        except RuntimeError as error:
            raise AssertionError(f"Invalid function schema: {name}{schema}") from error
        if parsed.is_mutable or not parsed.returns or any(one.alias_info is not None for one in parsed.returns):
            raise ValueError("custom_op only supports functional operators (ops that do not mutate any inputs, do not "
                             "return views of the inputs, and has at least one return). Got the following "
                             f"non-functional schema: {name + schema}")
        global_registry[qualname] = CustomOp(namespace, name, schema, _private_access=True)

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
