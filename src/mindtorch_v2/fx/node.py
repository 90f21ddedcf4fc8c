"""`Node`: one call, attribute, argument or result in a graph."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .._dispatch.overriding import PACKAGE
from .._dtype import dtype
from .._faces import name_of
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effects: set[Any] = set()


def has_side_effect(fn: Any) -> Any:
    """Mark a function: nodes that call it stay, even if nobody uses their result."""
    _side_effects.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """The same structure of tuples, lists, dictionaries and slices, with their items passed through a function."""
    if isinstance(a, tuple):
        items = [map_aggregate(one, fn) for one in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(one, fn) for one in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """`map_aggregate` for nodes only."""
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda one: fn(one) if isinstance(one, Node) else one)


def qualified_name(function: Callable[..., Any]) -> str:
    """How generated code can name a function: `torch.relu`, `operator.add`."""
    name = getattr(function, "__name__", type(function).__name__)
    if getattr(builtins, name, None) is function:
        return name
    public = name_of(function)
    if public is not None:
        return public
    module = getattr(function, "__module__", "") or ""
    if module.startswith(PACKAGE) and getattr(sys.modules[PACKAGE], name, None) is function:
        return f"torch.{name}"
    return f"{module.replace('mindtorch_v2', 'torch', 1)}.{name}" if module else name


_get_qualified_name = qualified_name  # PyTorch's name


class Node:
    """A part of a graph: `op` is the kind of step, `target` its function or name, `args` and `kwargs` its arguments."""

    def __init__(self, graph: Graph, name: str, op: str, target: Target, args: tuple[Argument, ...],
                 kwargs: dict[str, Argument], return_type: Any = None) -> None:
        if op not in OPS:
            raise AssertionError(f"Node {name} has op {op!r}; ops are {', '.join(OPS)}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph!r}, name = {name!r}] target {target!r} has type {type(target)} but "
                             "a Callable is expected")
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph!r}, name = {name!r}] target {target!r} has type {type(target)} but "
                             "a str is expected")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = immutable_dict()
        self._set(args, kwargs)

    @property
    def next(self) -> Node:
        """The node after it; the graph's root after the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    @property
    def args(self) -> tuple[Argument, ...]:
        """Positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that it uses, each once."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """Where the program called it, if the tracer was asked to note that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _set(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), use)
        self._kwargs = map_arg(dict(kwargs), use)

    def _rename(self, candidate: str) -> None:
        """Give it another name, or one like it if that is in use."""
        if candidate != self.name:
            self.name = self.graph._namespace.create_name(candidate, None)
            self.graph._namespace.associate_name_with_obj(self.name, self)

    def prepend(self, x: Node) -> None:
        """Put another node before this one."""
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if x is self:
            return
        x._take_out()
        x._prev, x._next = self._prev, self
        self._prev._next = x
        self._prev = x

    def append(self, x: Node) -> None:
        """Put another node after this one."""
        self._next.prepend(x)

    def _take_out(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Set one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put a positional argument before others."""
        assert 0 <= idx <= len(self.args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True,
                              *, propagate_meta: bool = False) -> list[Node]:
        """Let the nodes that use this one use another; returns those nodes."""
        if propagate_meta:
            assert not replace_with.meta, "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but " \
                                          "replace_with already has .meta keys"
            replace_with.meta.update(self.meta)
        chosen = [user for user in list(self.users) if delete_user_cb(user)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use one node in place of another."""
        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay although nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects
        if self.op == "call_module":
            module = self.graph.owning_module
            assert module is not None, "self.graph.owning_module not set for purity check"
            return getattr(module.get_submodule(str(self.target)), "_is_impure", False)
        return False

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module in ("builtins", "_operator", "operator"):
            return f"{'builtins' if module == 'builtins' else 'operator'}.{target.__name__}"
        return qualified_name(target)

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None,
                    **options: Any) -> str | None:
        """One line of text about it."""
        if self.op == "placeholder":
            kind = f"{_type_repr(self.type)} " if self.type else ""
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target} : {_type_repr(self.type)}" if self.type else str(self.target))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return (f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
                    f"[target={self._pretty_print_target(self.target)}]")
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        kind = f"{_type_repr(self.type)} " if self.type else ""
        args = ", ".join(_format_arg(one) for one in self.args)
        kwargs = ", ".join(f"{key}: {_format_arg(value)}" for key, value in self.kwargs.items())
        comma = "," if len(self.args) == 1 else ""
        return (f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
                f"[target={self._pretty_print_target(self.target)}](args = ({args}{comma}), kwargs = {{{kwargs}}})")

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name


def _format_arg(arg: Any) -> str:
    if isinstance(arg, list):
        return f"[{', '.join(map(_format_arg, arg))}]"
    if isinstance(arg, tuple):
        return f"({', '.join(map(_format_arg, arg))}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {_format_arg(value)}' for key, value in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _type_repr(kind: Any) -> str:
    """A type as generated code writes it."""
    if isinstance(kind, type) and not isinstance(kind, dtype):
        module = kind.__module__.replace("mindtorch_v2", "torch", 1)
        return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
    return "..." if kind is ... else kind.__name__ if isinstance(kind, FunctionType) else repr(kind)
