"""`torch.utils._pytree`: nested containers as flat lists of leaves, and back."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

PyTree = Any
Context = Any
Flatten = Callable[[Any], tuple[list[Any], Any]]
Unflatten = Callable[[Iterable[Any], Any], Any]


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A place in a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


FlattenWithKeys = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]


class NodeDef(NamedTuple):
    """How one type of container is taken apart and put together."""

    type: type[Any]
    flatten_fn: Flatten
    unflatten_fn: Unflatten
    flatten_with_keys_fn: FlattenWithKeys | None = None


class TreeSpec:
    """The shape of a tree: container type, what is needed to rebuild it, and the shapes of its children."""

    __slots__ = ("children_specs", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, kind: Any, context: Any, children: list[TreeSpec]) -> None:
        self.type = kind
        self.context = context
        self.children_specs = children
        self.num_children = len(children)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in children)
        self.num_leaves: int = 1 if kind is None else sum(child.num_leaves for child in children)

    def is_leaf(self) -> bool:
        """Whether this is a single leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """A tree of this shape with the given leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                             f"pytree that holds {self.num_leaves} items ({self}).")
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> PyTree:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TreeSpec) and self.type is other.type and self.context == other.context
                and self.children_specs == other.children_specs)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, tuple(map(hash, self.children_specs))))

    def __repr__(self) -> str:
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.type is None:
            return "*"
        children = f",\n{' ' * (indent + 2)}".join(child._shown(indent + 2) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of a single leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF = LeafSpec()
SUPPORTED_NODES: dict[Any, NodeDef] = {}


class WrittenAs(NamedTuple):
    """How a type of container stands in a text."""

    name: str | None
    to_plain: Callable[[Any], Any] | None
    from_plain: Callable[[Any], Any] | None


WRITTEN_AS: dict[Any, WrittenAs] = {}
TYPES_BY_NAME: dict[str, Any] = {}
TREESPEC_PROTOCOL = 1  # the only one that PyTorch has had so far
FlattenFunc, UnflattenFunc, FlattenWithKeysFunc = Flatten, Unflatten, FlattenWithKeys
KeyPath = tuple[Any, ...]


def register_pytree_node(cls: type[Any], flatten_fn: Flatten, unflatten_fn: Unflatten, *,
                         serialized_type_name: str | None = None,
                         to_dumpable_context: Callable[[Any], Any] | None = None,
                         from_dumpable_context: Callable[[Any], Any] | None = None,
                         flatten_with_keys_fn: FlattenWithKeys | None = None) -> None:
    """Treat instances of a class as containers. With a name, their shape can be written by `treespec_dumps`."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    if serialized_type_name is not None:
        if not isinstance(serialized_type_name, str):
            raise ValueError(f"serialized_type_name of {cls} has to be a str")
        TYPES_BY_NAME[serialized_type_name] = cls
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    WRITTEN_AS[cls] = WrittenAs(serialized_type_name, to_dumpable_context, from_dumpable_context)


_register_pytree_node = register_pytree_node


class _NamedTuple:
    """Stands for all named tuples, which have no common base class."""


def _key(tree: Any) -> Any:
    """The key of the tree's container type, None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return _NamedTuple if isinstance(tree, tuple) and hasattr(tree, "_fields") else None


def _get_node_type(tree: Any) -> Any:
    """The type that decides how a tree is taken apart; of a leaf, its own."""
    key = _key(tree)
    return type(tree) if key is None else namedtuple if key is _NamedTuple else key


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(place), value) for place, value in enumerate(d)], None


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d, strict=True)], type(d)


register_pytree_node(tuple, _list_flatten, lambda items, _: tuple(items), flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(list, _list_flatten, _list_unflatten, flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(dict, _dict_flatten, _dict_unflatten, flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(OrderedDict, _dict_flatten, lambda items, keys: OrderedDict(zip(keys, items, strict=True)),
                     flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
                     lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
                     flatten_with_keys_fn=_defaultdict_flatten_with_keys)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda items, maxlen: deque(items, maxlen),
                     flatten_with_keys_fn=lambda d: (_list_flatten_with_keys(d)[0], d.maxlen))
register_pytree_node(_NamedTuple, lambda t: (list(t), type(t)), lambda items, kind: kind(*items),
                     flatten_with_keys_fn=_namedtuple_flatten_with_keys)


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """All leaves, left to right, and the shape of the tree.

    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([4, 5, 6], spec)
    {'a': 4, 'b': (5, 6)}
    """
    leaves: list[Any] = []
    spec = _flatten_into(leaves, tree, is_leaf)
    return leaves, spec


def _flatten_into(leaves: list[Any], node: PyTree, is_leaf: Callable[[PyTree], bool] | None) -> TreeSpec:
    """Append the leaves and return the shape. A function inside another that calls itself is a reference cycle, which
    would keep the leaves alive until the garbage collector runs."""
    kind = None if is_leaf is not None and is_leaf(node) else _key(node)
    if kind is None:
        leaves.append(node)
        return LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(node)
    return TreeSpec(kind, context, [_flatten_into(leaves, child, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a shape with the given leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got "
                        f"item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """All leaves, left to right."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def _up_to(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The parts of `tree` at the places where a tree of the given shape has its leaves."""
    if spec.is_leaf():
        return [tree]
    if _key(tree) is not spec.type:
        raise ValueError(f"Type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children, context = SUPPORTED_NODES[spec.type].flatten_fn(tree)
    if len(children) != len(spec.children_specs) or context != spec.context:
        raise ValueError(f"Node arity or context mismatch; expected {spec.context!r} with "
                         f"{len(spec.children_specs)} children, but got {context!r} with {len(children)}.")
    return [part for child_spec, child in zip(spec.children_specs, children, strict=True)
            for part in _up_to(child_spec, child)]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
             is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Apply a function to all leaves; with several trees, to leaves at the same place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(_up_to(spec, rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
              is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Like `tree_map`, for the function's side effects; returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _matcher(choice: Any) -> Callable[[Any], bool]:
    if isinstance(choice, (type, tuple)):
        return lambda value: isinstance(value, choice)
    if callable(choice):
        return choice
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Apply a function to leaves of certain types (or that a predicate accepts)."""
    chosen = _matcher(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether the predicate holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether the predicate holds for any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None,
                           ) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """All leaves with the keys that lead to them, and the shape of the tree.

    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_with_paths(tree, is_leaf, ())), tree_structure(tree, is_leaf)


def _with_paths(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None,
                path: tuple[Any, ...]) -> Iterable[tuple[tuple[Any, ...], Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn "
                         "argument to register_pytree_node.")
    for key, child in with_keys(tree)[0]:
        yield from _with_paths(child, is_leaf, (*path, key))


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
                       is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """`tree_map` whose function is given the keys that lead to a leaf before the leaf itself."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *(_up_to(spec, rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def keystr(kp: tuple[Any, ...]) -> str:
    """The keys that lead to a leaf, as a program would write them."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: tuple[Any, ...]) -> Any:
    """What the keys lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether the predicate holds for all leaves of certain types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether the predicate holds for any leaf of certain types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                   is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Like `tree_map_only`, for the function's side effects; returns the tree itself."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None,
                          ) -> list[tuple[tuple[Any, ...], Any]]:
    """All leaves with the keys that lead to them."""
    return list(_with_paths(tree, is_leaf, ()))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """All leaves of a call's arguments."""
    return [leaf for one in (*args, *kwargs.values()) for leaf in tree_leaves(one)]


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec,
                              is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any] | None:
    """The leaves of a tree, each as often as the shape has leaves below it; None if they do not fit."""
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != len(treespec.children_specs) or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by `namedtuple`."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and (
        callable(getattr(cls, "_make", None)))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Either."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is a structure of C that reads like a tuple, such as `time.struct_time`."""
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and all(
        isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Either."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def treespec_leaf() -> LeafSpec:
    """The shape of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The shape of a tuple of such."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The shape of a dictionary of such."""
    made = dict(mapping, **kwargs)
    return TreeSpec(dict, list(made), list(made.values()))


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a tree is a single leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def register_dataclass(cls: type[Any], *, field_names: list[str] | None = None,
                       drop_field_names: list[str] | None = None, serialized_type_name: str | None = None) -> None:
    """Treat instances of a data class as containers of their fields."""
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError("field_names must be specified with a list of all fields used to initialize the class, as "
                             f"{cls} is not a dataclass")
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    elif dataclasses.is_dataclass(cls):
        known = {field.name for field in dataclasses.fields(cls) if field.init}
        if known != {*field_names, *(drop_field_names or ())}:
            raise ValueError("field_names does not include all dataclass fields.\n\nDataclass fields in "
                             f"`field_names` but not in dataclass: {sorted({*field_names} - known)}, missing fields: "
                             f"{sorted(known - {*field_names, *(drop_field_names or ())})}")
    names = [name for name in field_names if name not in (drop_field_names or ())]

    def flatten_with_keys(one: Any) -> tuple[list[tuple[Any, Any]], Any]:
        present = [name for name in names if getattr(one, name) is not None]
        absent = [name for name in names if getattr(one, name) is None]
        return [(GetAttrKey(name), getattr(one, name)) for name in present], [present, absent]

    def flatten(one: Any) -> tuple[list[Any], Any]:
        pairs, context = flatten_with_keys(one)
        return [value for _, value in pairs], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)


CONSTANT_TYPES: set[type[Any]] = set()


class _Held:
    """A constant as part of a tree's shape: equal if the constants are."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"ConstantNode({self.value!r})"


def register_constant(cls: type[Any]) -> None:
    """Treat instances of a class as parts of a tree's shape: they are no leaves."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is object.__hash__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda one: ([], _Held(one)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda one: ([], _Held(one)))
    CONSTANT_TYPES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether `register_constant` was called for a class."""
    return cls in CONSTANT_TYPES


_CONTAINER_NAMES = {"builtins.tuple": tuple, "builtins.list": list, "builtins.dict": dict,
                    "collections.OrderedDict": OrderedDict, "collections.defaultdict": defaultdict,
                    "collections.deque": deque, "collections.namedtuple": _NamedTuple}
_NAMES_OF_CONTAINERS = {kind: name for name, kind in _CONTAINER_NAMES.items()}


def _name_of_type(kind: Any) -> str:
    if kind in _NAMES_OF_CONTAINERS:
        return _NAMES_OF_CONTAINERS[kind]
    written = WRITTEN_AS.get(kind)
    if written is None or written.name is None:
        raise NotImplementedError(f"No registered serialization name for {kind} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    return written.name


def _plain_context(kind: Any, context: Any) -> Any:
    if kind is _NamedTuple:
        if context not in WRITTEN_AS or WRITTEN_AS[context].name is None:
            raise NotImplementedError("Can't serialize TreeSpec of namedtuple class because we didn't register a "
                                      "serializated_type_name. Please register using `_register_namedtuple`.")
        return WRITTEN_AS[context].name
    if kind is defaultdict:
        return {"default_factory_module": context[0].__module__, "default_factory_name": context[0].__qualname__,
                "dict_context": context[1]} if context[0] is not None else {"dict_context": context[1]}
    to_plain = WRITTEN_AS[kind].to_plain if kind in WRITTEN_AS else None
    if to_plain is not None:
        return to_plain(context)
    try:
        return json.dumps(context)
    except TypeError as error:
        raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom "
                        "serializer using _register_pytree_node.") from error


def _context_again(kind: Any, plain: Any) -> Any:
    if kind is _NamedTuple:
        return TYPES_BY_NAME[plain]
    if kind is defaultdict:
        factory = None if "default_factory_name" not in plain else getattr(
            importlib.import_module(plain["default_factory_module"]), plain["default_factory_name"])
        return [factory, plain["dict_context"]]
    from_plain = WRITTEN_AS[kind].from_plain if kind in WRITTEN_AS else None
    return json.loads(plain) if from_plain is None else from_plain(plain)


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class that `namedtuple` made a name by which `treespec_dumps` writes it."""
    WRITTEN_AS[cls] = WrittenAs(serialized_type_name, None, None)
    TYPES_BY_NAME[serialized_type_name] = cls


def _spec_as_dict(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    return {"type": _name_of_type(spec.type), "context": _plain_context(spec.type, spec.context),
            "children_spec": [_spec_as_dict(child) for child in spec.children_specs]}


def _spec_from_dict(text: dict[str, Any]) -> TreeSpec:
    if text["type"] is None and text["context"] is None and not text["children_spec"]:
        return LEAF
    kind = _CONTAINER_NAMES.get(text["type"]) or TYPES_BY_NAME.get(text["type"])
    if kind is None:
        raise NotImplementedError(f"Deserializing {text['type']} in pytree is not registered.")
    children = [_spec_from_dict(one) for one in text["children_spec"]]
    return TreeSpec(kind, _context_again(kind, text["context"]), children)


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The shape of a tree as a text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got "
                        f"item of type {type(treespec)}.")
    if protocol not in (None, TREESPEC_PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[TREESPEC_PROTOCOL]}")
    return json.dumps((TREESPEC_PROTOCOL, _spec_as_dict(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape of a tree from the text that `treespec_dumps` made."""
    protocol, text = json.loads(serialized)
    if protocol != TREESPEC_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[TREESPEC_PROTOCOL]}")
    return _spec_from_dict(text)


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape of a tree, with `*` for its leaves."""
    leaf = _Asterisk()
    return repr(tree_unflatten([leaf] * treespec.num_leaves, treespec))
