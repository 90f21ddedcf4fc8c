"""`Proxy`: stands for a value while a function is traced; what is done with it becomes nodes."""

from __future__ import annotations

import dis
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from .._device import device
from .._dtype import dtype
from .._memory_format import memory_format
from .._shape import Size
from .._tensor import Tensor
from ..overrides import is_tensor_method_or_property
from .graph import Graph
from .node import Argument, Node, Target, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

_CONSTANTS = (str, int, float, bool, complex, type(None), type(...), dtype, device, Tensor, Size, memory_format)


class TraceError(ValueError):
    """A traced value was asked for something that is known only when the program runs."""


class TracerBase:
    """Makes nodes and proxies."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node's value."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:
        """Add a node whose arguments may hold proxies; returns the proxy of its value."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        if self.record_stack_traces:
            frames = [frame for frame in traceback.extract_stack()
                      if "/fx/" not in frame.filename.replace("\\", "/")]
            node.stack_trace = "".join(traceback.StackSummary.from_list(frames).format()).strip()
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(one) for one in a))
        if isinstance(a, Size):
            return tuple(a)
        if isinstance(a, (tuple, list)):
            return type(a)(self.create_arg(one) for one in a)
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, _CONSTANTS) or callable(a) or hasattr(type(a), "__members__"):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        key = self.create_arg(key)
        if isinstance(key, Node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Refuse: the direction of a branch is not known yet."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Proxy]:
        """Its parts, if the calling code says how many (`a, b = x`)."""
        frame = sys._getframe(2)  # of the code that unpacks
        code = frame.f_code
        found = [one for one in dis.get_instructions(code) if one.offset == frame.f_lasti]
        if found and found[0].opname == "UNPACK_SEQUENCE":
            return (obj[number] for number in range(found[0].argval))
        raise TraceError("Proxy object cannot be iterated: how many parts it has is not known before the program runs. "
                         "Loops over it, and `*` or `**` of it, cannot be traced")

    def keys(self, obj: Proxy) -> Any:
        """Its keys: a call of `keys`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds to an existing graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope: Any = None
        self.module_stack: dict[str, Any] = {}


class Proxy:
    """Stands for a value; functions, methods and operators on it make nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("node", "tracer") or (k.startswith("__") and k.endswith("__")):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            raise NotImplementedError("tracing of assertions (trace_asserts) is not supported")
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """For `**proxy`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError("'len' is not supported in symbolic tracing by default; torch.fx.wrap('len') at the top of "
                           "the module makes it a call in the graph")

    def __getitem__(self, index: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(f"'{type(self).__name__}' object does not support item assignment")

    def __contains__(self, item: Any) -> bool:
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def __hash__(self) -> int:
        return id(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        tracers: list[TracerBase] = []

        def find(one: Any) -> None:
            if isinstance(one, Proxy) and not any(one.tracer is known for known in tracers):
                tracers.append(one.tracer)

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {tracers} while trying to trace operations "
                               f"{orig_method}")
        tracer = tracers[0]
        if is_tensor_method_or_property(orig_method):
            if getattr(orig_method, "__name__", "") == "__get__":  # a property, asked of another argument
                return tracer.create_proxy("call_function", getattr, (args[0], orig_method.__self__.fget.__name__), {})
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=None)


class Attribute(Proxy):
    """`x.something`: a node of its own only if it is not called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute, made when somebody uses it as a value."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        """Of the parameter."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """Of the parameter."""
        return self.param.size(*args)

    def dim(self) -> int:
        """Of the parameter."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """Of the parameter."""
        return self.param.ndim

    def numel(self) -> int:
        """Of the parameter."""
        return self.param.numel()


_BINARY = ("add", "sub", "mul", "floordiv", "truediv", "mod", "lshift", "rshift", "and", "or", "xor", "pow", "matmul")
_SAME = ("lt", "gt", "eq", "ne", "le", "ge")
_UNARY = ("pos", "neg", "invert")


def _function(word: str) -> Any:
    return getattr(operator, f"{word}_" if word in ("and", "or") else word)


def _operators() -> None:
    for word in (*_BINARY, *_SAME, *_UNARY):
        function = _function(word)

        def forward(self: Proxy, *others: Any, function: Any = function) -> Proxy:
            return self.tracer.create_proxy("call_function", function, (self, *others), {})

        setattr(Proxy, f"__{word}__", forward)
    for word in _BINARY:
        function = _function(word)

        def backward(self: Proxy, other: Any, function: Any = function) -> Proxy:
            return self.tracer.create_proxy("call_function", function, (other, self), {})

        setattr(Proxy, f"__r{word}__", backward)


_operators()
