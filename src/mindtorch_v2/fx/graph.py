"""`Graph`: nodes in the order in which they run, and the Python code that they stand for."""

from __future__ import annotations

import builtins
import copy
import keyword
import math
import operator
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import GenericAlias, UnionType
from typing import Any

from .._device import device
from .._dtype import dtype
from .._shape import Size
from .node import PACKAGE, Argument, Node, Target, _type_repr, map_arg, qualified_name

__all__ = ["CodeGen", "Graph", "PythonCode"]

_INFIX = {operator.add: "{} + {}", operator.sub: "{} - {}", operator.mul: "{} * {}", operator.truediv: "{} / {}",
          operator.floordiv: "{} // {}", operator.mod: "{} % {}", operator.lshift: "{} << {}",
          operator.rshift: "{} >> {}", operator.and_: "{} & {}", operator.or_: "{} | {}", operator.xor: "{} ^ {}",
          operator.matmul: "{} @ {}", operator.lt: "{} < {}", operator.gt: "{} > {}", operator.eq: "{} == {}",
          operator.ne: "{} != {}", operator.le: "{} <= {}", operator.ge: "{} >= {}", operator.pow: "{} ** {}",
          operator.getitem: "{}[{}]", operator.pos: "+{}", operator.neg: "-{}", operator.invert: "~{}"}
# What `typing` calls the classes of which its types with parts are.
_TYPING = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet,  # noqa: UP006
           tuple: typing.Tuple}  # noqa: UP006
_INPLACE = {operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=",
            operator.ifloordiv: "//=", operator.imod: "%=", operator.iand: "&=", operator.ior: "|=",
            operator.ixor: "^=", operator.imatmul: "@=", operator.ipow: "**=", operator.ilshift: "<<=",
            operator.irshift: ">>="}


@dataclass
class PythonCode:
    """Source text, and the objects that it names."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _Namespace:
    """Makes names that are not in use."""

    def __init__(self) -> None:
        self._owner: dict[Any, str] = {}
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like the candidate: `add`, then `add_1`. The same object gets the same name again."""
        if obj is not None and obj in self._owner:
            return self._owner[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = candidate, None
        ending = re.fullmatch(r"(.*)_(\d+)", candidate)
        if ending:
            base, number = ending.group(1), int(ending.group(2))
        name = base if number is None else candidate
        count = number or self._next.get(base, 0)
        while name in self._used or self._is_taken(name, obj):
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        self._next[base] = count
        if obj is not None:
            self._owner[obj] = name
        return name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Take a name for an object."""
        self._used.add(name)
        self._owner[obj] = name

    @staticmethod
    def _is_taken(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        return name in ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")


class CodeGen:
    """Writes a graph as the source of a function."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line with `def`."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument, *, descs: Any = None) -> str:
        """The line with `return`."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The function's arguments, as its placeholders take them."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result, from the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More objects that the code names."""
        return []

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, namespace: _Namespace) -> PythonCode:
        return _Writer(self, list(nodes), root_module, namespace).written()


class _Writer:
    """One writing of one graph."""

    def __init__(self, codegen: CodeGen, nodes: list[Node], root: str, namespace: _Namespace) -> None:
        self.codegen, self.nodes, self.root, self.namespace = codegen, nodes, root, namespace
        self.globals: dict[str, Any] = {}
        self.free: list[str] = []
        self.body: list[str] = []
        self.returns = ""

    def written(self) -> PythonCode:
        for name, value in self.codegen.additional_globals():
            self.globals[name] = value
        last_uses = self._last_uses()
        for node in self.nodes:
            self.body.append(self._line(node) + self._deletions(node, last_uses.get(node, [])))
        if not self.body:
            self.body.append("pass\n")
        if self.codegen._body_transformer is not None:
            self.body = self.codegen._body_transformer(self.body)
        head = self.codegen.gen_fn_def(self.free, self.returns)
        code = "".join(f"    {line}\n" for line in "".join(self.body).split("\n"))
        return PythonCode(f"\n\n\n{head}\n{code}    ", self.globals, {})  # PyTorch's code ends with an open line

    def _last_uses(self) -> dict[Node, list[Node]]:
        """After which node a value is no longer needed, so that its memory can go."""
        found: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    found.setdefault(node, []).append(used)
        return found

    def _deletions(self, node: Node, done: list[Node]) -> str:
        if node.op in ("placeholder", "output"):
            return ""
        gone = [*done, *([] if node.users else [node])]
        return f";  {' = '.join([one.name for one in gone] + ['None'])}\n" if gone else "\n"

    def _line(self, node: Node) -> str:
        kind = "" if node.type is None else f" : {self._type(node.type)}"
        name = node.name
        if node.op == "placeholder":
            default = f" = {self._text(node.args[0])}" if node.args else ""
            self.free.append(f"{node.target}{kind}{default}")
            raw = str(node.target).replace("*", "")
            return "" if raw == name else f"{name} = {raw}\n"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self._type(node.type)}"
            return self.codegen.generate_output(_Raw(self._text(node.args[0])))
        if node.op == "get_attr":
            return f"{name}{kind} = {_attribute(self.root, str(node.target))}"
        if node.op == "call_method":
            first, *rest = node.args
            method = _attribute(self._text(first), str(node.target))
            return f"{name}{kind} = {method}({self._arguments(rest, node.kwargs)})"
        if node.op == "call_module":
            module = _attribute(self.root, str(node.target))
            return f"{name}{kind} = {module}({self._arguments(node.args, node.kwargs)})"
        return self._call(node, kind)

    def _call(self, node: Node, kind: str) -> str:
        name, target = node.name, node.target
        infix = _INFIX.get(target) if not node.kwargs else None  # type: ignore[arg-type]
        if infix is not None and infix.count("{}") == len(node.args):
            return f"{name}{kind} = {infix.format(*map(self._text, node.args))}"
        if target in _INPLACE and not node.kwargs:
            first, second = map(self._text, node.args)
            return f"{first} {_INPLACE[target]} {second};  {name}{kind} = {first}"  # type: ignore[index]
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{name}{kind} = {_attribute(self._text(node.args[0]), node.args[1])}"
        function = self._global(qualified_name(target), target)  # type: ignore[arg-type]
        return f"{name}{kind} = {function}({self._arguments(node.args, node.kwargs)})"

    def _arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self._text, args), *(f"{key} = {self._text(value)}" for key, value in kwargs.items())])

    def _type(self, kind: Any) -> str:
        """A type, in names that the code has as globals: `typing_List[torch.Tensor]`."""
        if kind is None:
            return "None"
        if kind is device or kind is type(None):
            self.globals.setdefault(kind.__name__, kind)  # names that are kept for them
            return kind.__name__
        if kind is ...:
            return self._global("_", kind)
        if isinstance(kind, UnionType):
            return "|".join(map(self._type, kind.__args__))
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            own = isinstance(kind, type) and kind.__module__.startswith(PACKAGE)
            return self._global(qualified_name(kind) if own else _type_repr(kind), kind)
        parts = getattr(kind, "__args__", None)
        if parts is not None and not isinstance(kind, GenericAlias):
            origin = _TYPING.get(origin, origin)
        name = self._global(_type_repr(origin), origin)
        return f"{name}[{','.join(map(self._type, parts))}]" if parts else name

    def _text(self, value: Any) -> str:
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            kind = self._global(type(value).__qualname__, type(value))
            return f"{kind}({', '.join(map(self._text, value))})"
        if isinstance(value, tuple):
            text = f"({', '.join(map(self._text, value))}{',' if len(value) == 1 else ''})"
            return f"{self._global('torch.Size', Size)}({text})" if isinstance(value, Size) else text
        if isinstance(value, list):
            return f"[{', '.join(map(self._text, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self._text(one)}' for key, one in value.items())}}}"
        if isinstance(value, slice):
            return f"slice({self._text(value.start)}, {self._text(value.stop)}, {self._text(value.step)})"
        if isinstance(value, device):
            self.globals.setdefault("device", device)
            return repr(value)
        if isinstance(value, dtype):
            return self._global(str(value), value)
        if isinstance(value, float) and not math.isfinite(value):
            for word in ("inf", "nan"):
                self.globals.setdefault(word, float(word))
            return repr(value)
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)) or value is ...:
            return repr(value)
        if isinstance(value, type) or callable(value):
            return self._global(qualified_name(value), value)
        if hasattr(type(value), "__members__"):
            return f"{self._global(type(value).__qualname__, type(value))}.{value.name}"
        return self._global(type(value).__name__, value)

    def _global(self, hint: str, value: Any) -> str:
        """The text that names an object: a path below `torch`, or a global of its own."""
        if vars(builtins).get(hint) is value:
            return hint
        if hint.startswith("torch."):
            package = _package()
            found: Any = package
            for part in hint.split(".")[1:]:
                found = getattr(found, part, None)
            if found is value:
                self.globals.setdefault("torch", package)
                return hint
        name = hint.replace(".", "_")
        try:
            hash(value)
        except TypeError:
            made = self.namespace.create_name(name, None)
        else:
            made = self.namespace.create_name(name, value)
        self.globals[made] = value
        return made


class _Raw:
    """Text whose repr is itself."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _package() -> Any:
    import importlib

    return importlib.import_module(__name__.partition(".")[0])


def _attribute(root: str, path: str) -> str:
    """`self.layer`, and `getattr(…, "0")` where an attribute is not a name."""
    found = root
    for part in path.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        found = f"{found}.{part}" if plain else f'getattr({found}, "{part}")'
    return found


class _NodeList:
    """The nodes of a graph, in order."""

    def __init__(self, graph: Graph, reverse: bool = False) -> None:
        self.graph, self.reverse = graph, reverse

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        step = "_prev" if self.reverse else "_next"
        root = self.graph._root
        node = getattr(root, step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, step)

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, not self.reverse)


class _InsertPoint:
    """Where new nodes go, from now on; at the end of a `with` block, where they went before."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *problem: object) -> None:
        self.graph._insert = self.before


class Graph:
    """A list of nodes, each of which uses nodes before it.

    >>> from mindtorch_v2 import fx
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_method("relu", (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_method[target=relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> Any:
        """The module whose graph this is."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _NodeList:
        """The nodes, in order."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """The node of the result."""
        last = next(iter(reversed(self.nodes)))
        assert last.op == "output", "the graph has no output node at its end"
        return last

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes with an op and, if given, a target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # -- making nodes ----------------------------------------------------------------------------------------------

    def create_node(self, op: str, target: Target, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """Add a node at the place where nodes are inserted now."""
        args, kwargs = args or (), kwargs or {}
        assert isinstance(args, tuple), "args must be a tuple"
        assert isinstance(kwargs, dict), "kwargs must be a dict"
        chosen = self._namespace.create_name(name if name is not None else self._target_to_str(target), None)
        node = Node(self, chosen, op, target, args, kwargs, type_expr)
        for used in node.all_input_nodes:
            if used.graph is not self:
                raise RuntimeError(f"Argument '{used}' of Node '{chosen}' does not belong to this Graph, but was used "
                                   "as an argument! If you are copying nodes from another graph, make sure to use "
                                   "``arg_transform`` on node_copy() to remap values")
        self._namespace.associate_name_with_obj(chosen, node)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """A call of a module inside the module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None,
                      kwargs: dict[str, Argument] | None = None, type_expr: Any = None,
                      name: str | None = None) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Add a copy of a node, of another graph perhaps, whose arguments are mapped."""
        copied = self.create_node(node.op, node.target, map_arg(node.args, arg_transform),
                                  map_arg(node.kwargs, arg_transform), node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add all nodes of another graph; returns what its output node returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda used: val_map[used])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda used: val_map[used])
        return None

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            name = getattr(target, "__name__", type(target).__name__)
        else:
            name = target
            if name.startswith("__") and name.endswith("__") and len(name) > 4:
                name = name[2:-2]
        name = name.replace(".", "_")
        return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if name[:1].isupper() or ("_" not in name \
            and not name.islower()) else name.lower()

    # -- changing it -----------------------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the "
                               f"graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        to_erase._take_out()
        to_erase._erased = True
        to_erase._set((), {})

    def inserting_before(self, n: Node | None = None) -> Any:
        """A context in which new nodes come before a node, or first."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph is self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """A context in which new nodes come after a node, or last."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph is self, "Node to insert after is not in graph."
        place = [n]

        def after(node: Node) -> None:
            place[0].append(node)
            place[0] = node

        return _InsertPoint(self, after)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove what nothing uses; returns whether anything was removed."""
        if self.owning_module is not None:
            self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in list(reversed(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Check it: nodes use nodes before them, names are different, targets exist in the module."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was "
                                       "used as an argument!")
                if used not in seen:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                                       "Please check that Nodes in the graph are topologically ordered\n"
                                       f"{self}")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        place = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(place, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of "
                                   f"{type(place).__name__}")
            place = getattr(place, part)
        if node.op == "call_module" and not callable(getattr(place, "forward", None)):
            raise RuntimeError(f"Node {node} target {node.target} {node.target} of does not reference an nn.Module")

    # -- text ------------------------------------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the code."""
        self._codegen = codegen

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The source of a function that does what the graph says."""
        namespace = _Namespace()
        for node in self.nodes:
            namespace.associate_name_with_obj(node.name, node)
        return self._codegen._gen_python_code(self.nodes, root_module, namespace)

    def on_generate_code(self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]) -> Any:
        """Have a function change the lines of code whenever they are written; undone when the context is left."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def undone() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return undone()

    def process_inputs(self, *args: Any) -> Any:
        """Arguments as placeholders take them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of the output node as callers get it."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(node.op, node.name, str(node.target), str(node.args), str(node.kwargs)) for node in self.nodes]
        widths = [max(len(row[place]) for row in rows) for place in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        print("\n".join(lines))

    def __str__(self) -> str:
        names: list[str] = []
        returns = [""]
        lines = [node.format_node(None, returns) for node in self.nodes]
        return "\n    ".join([f"graph({', '.join(names)}){returns[0]}:", *(line for line in lines if line)])

    def __len__(self) -> int:
        return len(self.nodes)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        result = made.graph_copy(self, val_map := {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, old = result
            new = made.output(value, type_expr=old.type)
            new.meta = copy.copy(old.meta)
            val_map[old] = new
        return made

    def __getstate__(self) -> dict[str, Any]:
        raise NotImplementedError("a torch.fx.Graph is pickled as part of its GraphModule")
