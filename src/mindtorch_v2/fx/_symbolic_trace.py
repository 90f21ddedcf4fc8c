"""`symbolic_trace`: run a module with proxies in place of values, and keep what it did as a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from .._dispatch.overriding import ACTIVE, PACKAGE, arm, faces
from .._functions import _assert
from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils import _pytree
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap"]

T = TypeVar("T")
# Functions that are calls of their own in a graph: the globals they are in, and their name there.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_MISSING = object()
_tracing = 0


def is_fx_tracing() -> bool:
    """Whether a module is being traced now."""
    return _tracing > 0


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """A class that can be made of proxies while a function is traced."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls)  # type: ignore[call-overload]
        if is_fx_tracing():
            found: list[Proxy] = []
            for one in _pytree.tree_leaves((args, kwargs)):
                if isinstance(one, Proxy):
                    found.append(one)
            if found:
                tracer = found[0].tracer
                return tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made


def wrap(fn_or_name: T) -> T:
    """Mark a function of this module: it is not traced into, but becomes one call in the graph.

    Called at the top of a module, as a decorator or with the name of a function that is or will be there.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = str(getattr(fn_or_name, "__name__", fn_or_name))
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def _find_proxy(*values: Any) -> Proxy | None:
    return next((one for one in _pytree.tree_leaves(values) if isinstance(one, Proxy)), None)


def _recorded(function: Any) -> Any:
    """A function that becomes a node if it is given a proxy."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = _find_proxy(args, kwargs)
        if found is None:
            return function(*args, **kwargs)
        return found.tracer.create_proxy("call_function", function, args, kwargs)

    call.__fx_already_patched = True  # type: ignore[attr-defined]
    return call


class _Patches:
    """Attributes and globals that are replaced for a while."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class or module."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if before is _MISSING else setattr(owner, name, before))

    def entry(self, space: dict[str, Any], name: str, value: Any) -> None:
        """Set a global."""
        before = space.get(name, _MISSING)
        space[name] = value
        self._undo.append(lambda: space.__delitem__(name) if before is _MISSING else space.__setitem__(name, before))

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()


def _is_own(function: Callable[..., Any]) -> bool:
    """Whether a function is this runtime's, whose annotations say nothing that a graph has."""
    return str(function.__module__).partition(".")[0] == PACKAGE


class Tracer(TracerBase):
    """How a module is traced; subclasses decide which modules are leaves, and what is recorded."""

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False) -> None:
        super().__init__()
        self._autowrap_functions = {id(value) for module in autowrap_modules for name, value in vars(module).items()
                                    if not name.startswith("_") and callable(value)}
        self._autowrap_functions |= {id(function) for function in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root: Module = Module()
        self.tensor_attrs: dict[Any, str] = {}
        self.module_stack: dict[str, Any] = {}
        self.scope = Scope("", None)
        self.root_module_name = ""

    # -- what subclasses change ------------------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one call in the graph; those of `torch.nn` are, but for containers."""
        kind = type(m).__module__
        ours = kind.startswith((f"{PACKAGE}.nn", f"{PACKAGE}.ao.nn", "torch.nn", "torch.ao.nn"))
        return ours and type(m).__name__ not in ("Sequential",)

    def path_of_module(self, mod: Module) -> str:
        """Where in the root a module is."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a module's call: that of a node, or of its own forward."""
        path = self.path_of_module(m)
        with self._inside(path, m):
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)

    @contextmanager
    def _inside(self, path: str, module: Module) -> Iterator[None]:
        scope, self.scope = self.scope, Scope(path, type(module))
        key = f"{path}@{len(self.module_stack)}" if path in self.module_stack else path
        self.module_stack[key] = (path, type(module))
        try:
            yield
        finally:
            del self.module_stack[key]
            self.scope = scope

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value of a module's attribute while tracing."""
        if isinstance(attr_val, Parameter):
            return self._attribute_proxy(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if isinstance(attr_val, Tensor) and not isinstance(attr_val, Parameter) and self.proxy_buffer_attributes:
            return self._attribute_proxy(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _attribute_proxy(self, value: Any, named: Any, cache: dict[str, Any]) -> Any:
        for name, one in named:
            if one is value:
                if name not in cache:
                    def make(node: Node, name: str = name) -> Proxy:
                        return (ParameterProxy(self, node, name, value) if self.param_shapes_constant
                                else Proxy(node, self))

                    cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
                return cache[name]
        return value

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument: parameters, buffers, modules and other tensors become attributes of the root."""
        if isinstance(a, Parameter):
            for name, one in self.root.named_parameters():
                if one is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a, "_tensor_constant"), (), {})
        if isinstance(a, Module):
            for name, one in self.root.named_modules():
                if one is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(one) for one in a), {})
        if isinstance(type(a), ProxyableClassMeta):
            return self.create_node("get_attr", self._constant(a, f"_{type(a).__name__}_constant_"), (), {})
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> str:
        known = next((name for one, name in self._constants if one is value), None)
        if known is None:
            number = 0
            while hasattr(self.root, f"{prefix}{number}"):
                number += 1
            known = f"{prefix}{number}"
            setattr(self.root, known, value)
            self._constants.append((value, known))
        return known

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: Any = None) -> tuple[Callable[..., Any], list[Any]]:
        """The arguments of the traced function: the module, and a proxy for each parameter."""
        function = inspect.unwrap(root_fn)
        code: CodeType = function.__code__
        names = list(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
        fixed = dict(concrete_args) if isinstance(concrete_args, dict) else {}
        args: list[Any] = []
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
            names = names[1:]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(names):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete "
                                   "arguments")
            fixed = dict(zip(names, concrete_args))
        parameters = dict(inspect.signature(function).parameters)
        if _is_own(function):
            parameters = {name: one.replace(annotation=one.empty) for name, one in parameters.items()}
        args += [self._argument(name, parameters[name], fixed) for name in names]
        keyword_only = code.co_kwonlyargcount
        more: list[Any] = []
        if code.co_flags & inspect.CO_VARARGS:
            more.append(self._placeholder("*" + code.co_varnames[code.co_argcount + keyword_only]))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            place = code.co_argcount + keyword_only + bool(code.co_flags & inspect.CO_VARARGS)
            more.append(self._placeholder("**" + code.co_varnames[place]))
        if not more and not keyword_only:
            return root_fn, args
        # A copy of the function that takes its `*args` and `**kwargs` as two plain parameters: they are proxies too.
        flat = code.replace(co_argcount=len(args) + len(more), co_kwonlyargcount=0, co_posonlyargcount=0,
                            co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
        return FunctionType(flat, function.__globals__, function.__name__, None, function.__closure__), [*args, *more]

    def _placeholder(self, name: str, args: tuple[Any, ...] = (), kind: Any = None) -> Proxy:
        return self.create_proxy("placeholder", name, args, {}, type_expr=kind)

    def _argument(self, name: str, parameter: inspect.Parameter, fixed: dict[str, Any]) -> Any:
        default = () if parameter.default is parameter.empty else (parameter.default,)
        kind = None if parameter.annotation is parameter.empty else parameter.annotation
        if name in fixed and not isinstance(fixed[name], PHBase):
            value = fixed[name]
            parts = _pytree.tree_leaves(value) if isinstance(value, (dict, list, tuple)) else ()
            if any(isinstance(one, PHBase) for one in parts):
                raise NotImplementedError("concrete_args with placeholders (PH) inside lists and dictionaries are not "
                                          "supported; give whole arguments")
            self._expect(name, value, default)
            return value
        return self._placeholder(name, default, kind)

    def _expect(self, name: str, value: Any, default: tuple[Any, ...]) -> None:
        """Keep an argument whose value was given, and have the graph check it."""
        message = f"{name} has been specialized to have value {value} but got another value"
        plain = isinstance(value, (bool, int, float, str))
        stand_in = self._placeholder(f"{name}_1", default)
        if plain:
            same = self.create_proxy("call_function", operator.eq, (stand_in, value), {})
            self.create_proxy("call_function", _assert, (same, message), {})
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (stand_in, message), {})
        else:
            warnings.warn(f"Was not able to add assertion to guarantee correct input {name} to specialized function: "
                          "give what it was specialized with", UserWarning, stacklevel=2)

    # -- tracing ---------------------------------------------------------------------------------------------------

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's forward, or of a function."""
        global _tracing
        if isinstance(root, Module):
            self.root = root
            assert hasattr(type(root), self.traced_func_name), (
                f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = type(root).__name__
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = Module()
            function = root
        self._constants: list[tuple[Any, str]] = [
            (value, name) for name, value in vars(self.root).items() if isinstance(value, Tensor)]
        self.graph = Graph(tracer_cls=type(self))
        if hasattr(root, "forward") and not isinstance(root, Module):
            raise TypeError(f"symbolic_trace takes a module or a function, not {type(root).__name__}")
        patches = _Patches()
        made_active = object()
        try:
            _tracing += 1
            arm(False)
            ACTIVE.append(made_active)  # while this exists, functions ask
            function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            self._patch(patches, function)
            result = function(*args)
            plain = inspect.unwrap(function)
            kind = None if _is_own(plain) else getattr(plain, "__annotations__", {}).get("return")
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        finally:
            patches.undo()
            ACTIVE.remove(made_active)
            faces().FACES.disarm()
            _tracing -= 1
            self.submodule_paths = None
        return self.graph

    def _patch(self, patches: _Patches, function: Callable[..., Any]) -> None:
        own_call, own_getattr = Module.__call__, Module.__getattr__
        cache: dict[str, Any] = {}
        tracer = self

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return own_call(module, *args, **kwargs)

            tracer._wrap_globals(patches, getattr(type(module).forward, "__globals__", {}))
            return tracer.call_module(module, forward, args, kwargs)

        def get(module: Any, name: str) -> Any:
            return tracer.getattr(name, own_getattr(module, name), cache)

        self._seen: set[int] = set()
        patches.attribute(Module, "__call__", call)
        patches.attribute(Module, "__getattr__", get)
        for (_, name), space in list(_wrapped_fns_to_patch.items()):
            value = space.get(name, getattr(builtins, name, _MISSING))
            if value is not _MISSING and not getattr(value, "__fx_already_patched", False):
                patches.entry(space, name, _recorded(value))
        for cls, name in _wrapped_methods_to_patch:
            patches.attribute(cls, name, _recorded_method(cls, name))
        self._wrap_globals(patches, getattr(inspect.unwrap(function), "__globals__", {}))
        for module in self._autowrap_search:
            if module is math:
                self._wrap_globals(patches, vars(math))

    def _wrap_globals(self, patches: _Patches, space: dict[str, Any]) -> None:
        """Functions that are to be calls of their own, wherever a module's code finds them."""
        if id(space) in self._seen:
            return
        self._seen.add(id(space))
        for name, value in list(space.items()):
            if not name.startswith("_") and callable(value) and id(value) in self._autowrap_functions:
                patches.entry(space, name, _recorded(value))


def _recorded_method(cls: type, name: str) -> Any:
    own = getattr(cls, name)

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = _find_proxy(args, kwargs)
        if found is None:
            return own(*args, **kwargs)
        return found.tracer.create_proxy("call_method", name, args, kwargs)

    return call


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


class Scope:
    """The module that is being traced: its path, and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class PHBase:
    """`PH`: a part of `concrete_args` that stays an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """One with a key, by which the program recognises it."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key

    def transfer_meta(self, fx_node: Any) -> None:
        """Note the key on a node."""
        if self.ph_key:
            fx_node.meta["ph_key"] = self.ph_key


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does the same as another, or as a function, with a graph that can be inspected and changed.

    Branches and loops go the way they go for proxies; one that depends on a tensor's value raises `TraceError`.
    `concrete_args` gives arguments that are values rather than proxies.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
