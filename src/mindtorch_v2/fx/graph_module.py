"""`GraphModule`: a module whose forward is written from a graph."""

from __future__ import annotations

import copy
import linecache
from typing import Any

from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from .graph import Graph, PythonCode

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_count = 0


class _CodeOnlyModule(Module):
    """A module with another's attributes and no code of its own."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _compiled(code: PythonCode, name: str) -> Any:
    """The function in generated source, whose lines tracebacks can show."""
    global _count
    _count += 1
    place = f"<eval_with_key>.{_count}"
    linecache.cache[place] = (len(code.src), None, code.src.splitlines(keepends=True), place)
    space = code.globals.copy()
    exec(compile(code.src, place, "exec"), space)
    return space[name]


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the attribute that another has under a path, with empty modules on the way."""
    *way, last = target.split(".")
    for part in way:
        below, there = getattr(from_module, part), getattr(to_module, part, None)
        if below is there:
            return  # both share what is below
        if there is None:
            there = Module()
            setattr(to_module, part, there)
        from_module, to_module = below, there
    value = getattr(from_module, last)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(last, value, last not in from_module._non_persistent_buffers_set)
    else:
        setattr(to_module, last, value)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Set an attribute under a path, with empty modules on the way; a tensor becomes a buffer."""
    *way, last = target.split(".")
    for part in way:
        if getattr(to_module, part, None) is None:
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        to_module.register_buffer(last, from_obj)
    else:
        setattr(to_module, last, from_obj)


class GraphModule(Module):
    """A module with a graph, and a forward that computes it.

    Setting `graph`, or calling `recompile()` after changing it, writes forward again. `root` is the module, or the
    dictionary of paths, from which the attributes come that the graph names.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Each instance has its own class, because each has its own forward."""
        base = next(one for one in cls.__mro__ if "GraphModuleImpl" not in one.__qualname__)
        return super().__new__(type("GraphModuleImpl", (base,), {"__qualname__": "GraphModule.__new__.<locals>."
                                                                                 "GraphModuleImpl"}))

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(targets, key=lambda path: path.count(".")):
                if target not in root:
                    raise RuntimeError(f"Node target {target} was referenced in the graph, but no attribute of that "
                                       "name was given in the dictionary")
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {type(root)} passed for root!")
        self.graph = graph
        self._tracer_cls = None if graph._tracer_cls is None or "<locals>" in graph._tracer_cls.__qualname__ \
            else graph._tracer_cls
        self._tracer_extras = graph._tracer_extras
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """What forward does."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Write forward again from the graph."""
        code = self._graph.python_code("self")
        self._code = code.src
        type(self).forward = _compiled(code, self._graph._codegen._func_name)  # type: ignore[method-assign]
        return code

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module under a path; False if something else is in the way."""
        *way, last = target.split(".")
        place: Any = self
        for part in way:
            below = getattr(place, part, None)
            if below is None:
                below = Module()
                setattr(place, part, below)
            if not isinstance(below, Module):
                return False
            place = below
        place.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module under a path; False if there is none."""
        *way, last = target.split(".")
        place: Any = self
        for part in way:
            place = getattr(place, part, None)
            if not isinstance(place, Module):
                return False
        if not isinstance(getattr(place, last, None), Module):
            return False
        delattr(place, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node uses."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    inner = self.get_submodule(str(node.target))
                    used |= {f"{node.target}.{name}" for name, _ in inner.named_modules() if name}
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The module as the source of a class; it is printed too, unless told not to."""
        body = "\n".join(f"    {line}" if line.strip() else "" for line in self._code.strip().splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, *args: Any, **kwargs: Any) -> None:
        """Not supported."""
        raise NotImplementedError("GraphModule.to_folder is not supported: use torch.save and the module's code")

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        fake = Module()
        fake.__dict__ = {key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()
                         if key not in ("_graph", "_tracer_cls", "_tracer_extras")}
        base: Any = type(self).__mro__[1]
        made = base.__new__(base)
        GraphModule.__init__(made, fake, copy.deepcopy(self._graph), type(self).__name__)
        made.__dict__.update({key: value for key, value in fake.__dict__.items()
                              if key not in ("_code", "_graph")})
        made.meta = copy.copy(self.meta)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = copy.copy(self.meta)
        return made

    def __reduce__(self) -> Any:
        """Pickled by its code: reading it traces that code again."""
        body = self.__dict__.copy()
        del body["_graph"]
        code = self._graph.python_code("self")
        return reduce_graph_module, (body, code.src, {name: value for name, value in code.globals.items()
                                                      if name not in ("torch", "device", "inf", "nan")},
                                     type(self).__name__)

    def __str__(self) -> str:
        shown = super().__str__()
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{shown}\n{self._code}\n{hint}"


def reduce_graph_module(body: dict[str, Any], source: str, names: dict[str, Any], class_name: str) -> GraphModule:
    """A GraphModule from its pickled state."""
    import importlib

    package = importlib.import_module(__name__.partition(".")[0])
    space = {"torch": package, "device": package.device, "inf": float("inf"), "nan": float("nan"), **names}
    holder = _CodeOnlyModule(body)
    forward = _compiled(PythonCode(source, space), "forward")
    type(holder).forward = forward  # type: ignore[method-assign]
    from ._symbolic_trace import Tracer

    class KeepModules(Tracer):
        """A tracer that records every module as a call."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    graph = KeepModules().trace(holder)
    graph._tracer_cls = body.get("_tracer_cls") or Tracer
    made = GraphModule(holder, graph, class_name)
    made.__dict__.update({key: value for key, value in body.items() if key not in made.__dict__ or key == "meta"})
    return made
