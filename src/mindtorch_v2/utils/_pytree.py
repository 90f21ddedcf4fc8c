"""`torch.utils._pytree`: nested containers as flat lists of leaves, and back."""

from __future__ import annotations

import dataclasses
import importlib
import json
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, NoReturn, Protocol

from .._ops.return_types import NamedResult
from .._shape import Size

__all__ = ["Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec",
           "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple", "is_namedtuple_class",
           "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
           "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
           "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map",
           "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
           "treespec_dumps", "treespec_loads", "treespec_pprint"]

PyTree = Any
Context = DumpableContext = Any
FlattenFn = Callable[[Any], tuple[list[Any], Any]]
UnflattenFn = Callable[[Iterable[Any], Any], Any]
ToDumpableContextFn = Callable[[Any], Any]
FromDumpableContextFn = Callable[[Any], Any]
# (Their older names.)
FlattenFunc, UnflattenFunc, ToStrFunc, MaybeFromStrFunc = (
    FlattenFn, UnflattenFn, ToDumpableContextFn, FromDumpableContextFn)


class KeyEntry(Protocol):
    """A step on the way to a leaf."""

    def __hash__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any:
        """What is there."""


KeyPath = tuple[KeyEntry, ...]
FlattenWithKeysFn = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]
FlattenWithKeysFunc = FlattenWithKeysFn


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


class NodeDef(NamedTuple):
    """How one type of container is taken apart and put together."""

    type: type[Any]
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None = None


@dataclass(init=False, frozen=True, eq=False, repr=False)
class TreeSpec:
    """The shape of a tree: container type, what is needed to rebuild it, and the shapes of its children."""

    type: Any
    _context: Any
    _children: list[TreeSpec]
    num_nodes: int
    num_leaves: int
    num_children: int

    def __init__(self, kind: Any, context: Any = None, children: Iterable[TreeSpec] = ()) -> None:
        children = list(children)
        vars(self).update(type=kind, _context=context, _children=children, num_children=len(children),
                          num_nodes=1 + sum(child.num_nodes for child in children),
                          num_leaves=1 if kind is None else sum(child.num_leaves for child in children))

    @property
    def context(self) -> Any:
        """What is needed to rebuild the container, besides its children."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The shapes of the children, under their old name."""
        warnings.warn("`treespec.children_specs` is deprecated: `treespec.children()` has all children, and "
                      "`treespec.child(index)` one", FutureWarning, stacklevel=2)
        return self._children

    def children(self) -> list[TreeSpec]:
        """The shapes of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The shape of one child."""
        return self._children[index]

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` at the places where a tree of this shape has its leaves."""
        return _up_to(self, tree)

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
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TreeSpec) and self.type is other.type and self.context == other.context
                and self._children == other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, tuple(map(hash, self._children))))

    def __repr__(self) -> str:
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.type is None:
            return "*"
        children = f",\n{' ' * (indent + 2)}".join(child._shown(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of a single leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


PyTreeSpec = TreeSpec  # PyTorch has a second kind, of optree
LEAF = LeafSpec()
SUPPORTED_NODES: dict[Any, NodeDef] = {}


class _SerializeNodeDef(NamedTuple):
    """How a type of container stands in a text."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"  # stands for a name, so that it can be compared
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1  # the only one that PyTorch has had so far
# `namedtuple` stands for all named tuples, which have no common base class.
BUILTIN_TYPES: frozenset[Any] = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})


def register_pytree_node(cls: type[Any], flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *,
                         serialized_type_name: str | None = None,
                         to_dumpable_context: ToDumpableContextFn | None = None,
                         from_dumpable_context: FromDumpableContextFn | None = None,
                         flatten_with_keys_fn: FlattenWithKeysFn | None = None) -> None:
    """Treat instances of a class as containers. With a name, their shape can be written by `treespec_dumps`."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _put_node(cls, flatten_fn, unflatten_fn, serialized_type_name, to_dumpable_context, from_dumpable_context,
              flatten_with_keys_fn)


def _register_pytree_node(cls: type[Any], flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *,
                          serialized_type_name: str | None = None,
                          to_dumpable_context: ToDumpableContextFn | None = None,
                          from_dumpable_context: FromDumpableContextFn | None = None,
                          flatten_with_keys_fn: FlattenWithKeysFn | None = None) -> None:
    """The old form: it replaces what was registered."""
    warnings.warn("`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
                  "`torch.utils._pytree.register_pytree_node`, which takes the same arguments.", FutureWarning,
                  stacklevel=2)
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.",
                      stacklevel=2)
    _put_node(cls, flatten_fn, unflatten_fn, serialized_type_name, to_dumpable_context, from_dumpable_context,
              flatten_with_keys_fn)


def _put_node(cls: Any, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, name: str | None,
              to_dumpable: ToDumpableContextFn | None, from_dumpable: FromDumpableContextFn | None,
              flatten_with_keys_fn: FlattenWithKeysFn | None) -> None:
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = NO_SERIALIZED_TYPE_NAME_FOUND if name is None else name
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable, from_dumpable)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Treat instances of a class as leaves again."""
    del SUPPORTED_NODES[cls]
    written = SUPPORTED_SERIALIZED_TYPES.pop(cls)
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(written.serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def _key(tree: Any) -> Any:
    """The key of the tree's container type, None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if not isinstance(tree, tuple):
        return None
    if isinstance(tree, NamedResult):  # such classes are made when an op first needs them
        register_pytree_node(kind, _list_flatten, lambda items, _: kind(items),
                             flatten_with_keys_fn=_list_flatten_with_keys)
        return kind
    return namedtuple if is_namedtuple_class(kind) else None


def _get_node_type(tree: Any) -> Any:
    """The type that decides how a tree is taken apart; of a leaf, its own."""
    key = _key(tree)
    return type(tree) if key is None else key


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


def _defaultdict_serialize(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__,
            "dict_context": keys}


def _defaultdict_deserialize(plain: Any) -> list[Any]:
    module = importlib.import_module(plain["default_factory_module"])
    return [getattr(module, plain["default_factory_name"]), plain["dict_context"]]


def _namedtuple_serialize(context: Any) -> str:
    if context not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register "
                                  "a serializated_type_name. Please register using `_register_namedtuple`.")
    name = SUPPORTED_SERIALIZED_TYPES[context].serialized_type_name
    if name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context} because we couldn't find a "
                                  "serializated_type_name. Please register using `_register_namedtuple`.")
    return name


def _namedtuple_deserialize(plain: Any) -> Any:
    if plain not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {plain} because we couldn't find a "
                                  "serializated name.")
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[plain]


register_pytree_node(tuple, _list_flatten, lambda items, _: tuple(items), serialized_type_name="builtins.tuple",
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(list, _list_flatten, _list_unflatten, serialized_type_name="builtins.list",
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(dict, _dict_flatten, _dict_unflatten, serialized_type_name="builtins.dict",
                     flatten_with_keys_fn=_dict_flatten_with_keys)
_put_node(namedtuple, lambda t: (list(t), type(t)), lambda items, kind: kind(*items), "collections.namedtuple",
          _namedtuple_serialize, _namedtuple_deserialize, _namedtuple_flatten_with_keys)
register_pytree_node(OrderedDict, _dict_flatten, lambda items, keys: OrderedDict(zip(keys, items, strict=True)),
                     serialized_type_name="collections.OrderedDict", flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
                     lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
                     serialized_type_name="collections.defaultdict", to_dumpable_context=_defaultdict_serialize,
                     from_dumpable_context=_defaultdict_deserialize,
                     flatten_with_keys_fn=_defaultdict_flatten_with_keys)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda items, maxlen: deque(items, maxlen),
                     serialized_type_name="collections.deque",
                     flatten_with_keys_fn=lambda d: (_list_flatten_with_keys(d)[0], d.maxlen))
# (Back as a plain tuple, as in PyTorch, since what was done to the numbers may have made something else of them.)
register_pytree_node(Size, _list_flatten, lambda items, _: tuple(items), serialized_type_name="torch.Size",
                     flatten_with_keys_fn=_list_flatten_with_keys)


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
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """All leaves, left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator[Any]:
    """All leaves, left to right, one by one."""
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        yield tree
        return
    for child in SUPPORTED_NODES[kind].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def _check_keys(expected: list[Any], found: Any) -> None:
    """Refuse a dictionary with other keys."""
    missing, extra = set(expected).difference(found), set(found).difference(expected)
    if not missing and not extra:
        return
    said = [f"{what} key(s): {keys}" for what, keys in (("missing", missing), ("extra", extra)) if keys]
    raise ValueError(f"Node keys mismatch; {'; '.join(said)}.")


def _keys_of(spec: TreeSpec) -> list[Any]:
    """The keys of a dictionary's shape, in the order of its children."""
    return spec._context[1] if spec.type is defaultdict else spec._context


def _children_like(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The children of a container that has to have this shape; dictionaries may be of another kind and order."""
    kind = _key(tree)
    if kind in STANDARD_DICT_TYPES and spec.type in STANDARD_DICT_TYPES:
        keys = _keys_of(spec)
        _check_keys(keys, tree)
        return [tree[key] for key in keys]
    if kind is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got "
                         f"{(type(tree) if kind is None else kind)!r}.")
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    if kind is not deque and context != spec._context:  # two deques may have different room
        raise ValueError(f"Node context mismatch for custom node type {kind!r}; expected {spec._context!r}, but got "
                         f"{context!r}.")
    return children


def _up_to(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The parts of `tree` at the places where a tree of the given shape has its leaves."""
    if spec.is_leaf():
        return [tree]
    return [part for child_spec, child in zip(spec._children, _children_like(spec, tree), strict=True)
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
    if isinstance(choice, (type, tuple, types.UnionType)):
        return lambda value: isinstance(value, choice)
    if callable(choice):
        return choice
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is applied to values of certain types, and other values are returned."""
    chosen = _matcher(type_or_types_or_pred)
    return lambda func: lambda value: func(value) if chosen(value) else value


MapOnlyFn = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Apply a function to leaves of certain types (or that a predicate accepts)."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


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
    """The leaves of a tree, each as often as the shape has leaves below it; None if they do not fit.

    Those of dictionaries come in the order of the tree's keys, as in PyTorch.
    """
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        return [tree] * treespec.num_leaves
    pairs = _matched(tree, kind, treespec)
    if pairs is None:
        return None
    found: list[Any] = []
    for child, spec in pairs:
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def _matched(tree: PyTree, kind: Any, treespec: TreeSpec) -> list[tuple[Any, TreeSpec]] | None:
    """A container's children, in its own order, each with the shape to spread it to; None if they do not fit."""
    if kind in STANDARD_DICT_TYPES and treespec.type in STANDARD_DICT_TYPES:
        below = dict(zip(_keys_of(treespec), treespec._children, strict=True))
        return [(tree[key], below[key]) for key in tree] if below.keys() == tree.keys() else None
    if kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or (kind is not deque and context != treespec._context):
        return None
    return list(zip(children, treespec._children, strict=True))


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
    return isinstance(cls, type) and (cls.__bases__ == (tuple,) or cls.__base__ is NamedResult) and all(
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
    children = list(iterable)
    if not all(isinstance(one, TreeSpec) for one in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The shape of a dictionary of such."""
    made = dict(mapping, **kwargs)
    if not all(isinstance(one, TreeSpec) for one in made.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {made!r}.")
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
        said = {*field_names, *(drop_field_names or ())}
        for what, wrong in (("Missing", known - said), ("Unexpected", said - known)):
            if wrong:
                raise ValueError(f"field_names does not include all dataclass fields.\n{what} fields in `field_names`: "
                                 f"{wrong}. A field stands there or in `drop_field_names`.")
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


CONSTANT_NODES: set[type[Any]] = set()


@dataclass(frozen=True)
class ConstantNode:
    """A constant as part of a tree's shape: equal if the constants are."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Treat instances of a class as parts of a tree's shape: they are no leaves."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is object.__hash__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda one: ([], ConstantNode(one)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda one: ([], ConstantNode(one)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether `register_constant` was called for a class."""
    return cls in CONSTANT_NODES


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations by name."""

    def default(self, obj: object) -> Any:
        """What stands for an object that JSON does not know."""
        if isinstance(obj, Enum):
            return {"__enum__": True, "fqn": f"{type(obj).__module__}:{type(obj).__qualname__}", "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member of an enumeration that `EnumEncoder` wrote; any other dictionary as it is."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found[obj["name"]]


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class that `namedtuple` made a name by which `treespec_dumps` writes it."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _plain_context(written: _SerializeNodeDef, context: Any) -> Any:
    if written.to_dumpable_context is not None:
        return written.to_dumpable_context(context)
    try:
        return json.dumps(context, cls=EnumEncoder)
    except TypeError as error:
        raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom "
                        "serializer using _register_pytree_node.") from error


def _spec_as_dict(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if written is None or written.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    return {"type": written.serialized_type_name, "context": _plain_context(written, spec.context),
            "children_spec": [_spec_as_dict(child) for child in spec._children]}


def _spec_from_dict(text: dict[str, Any]) -> TreeSpec:
    if text["type"] is None and text["context"] is None and not text["children_spec"]:
        return LEAF
    if text["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {text['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[text["type"]]
    from_dumpable = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    context = (json.loads(text["context"], object_hook=enum_object_hook) if from_dumpable is None
               else from_dumpable(text["context"]))
    return TreeSpec(kind, context, [_spec_from_dict(one) for one in text["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The shape of a tree as a text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    if protocol not in (None, DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL):
        _refuse_protocol(protocol)
    return json.dumps((DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL, _spec_as_dict(treespec)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape of a tree from the text that `treespec_dumps` made."""
    protocol, text = json.loads(serialized, object_hook=enum_object_hook)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        _refuse_protocol(protocol)
    return _spec_from_dict(text)


def _refuse_protocol(protocol: Any) -> NoReturn:
    raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]}")


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape of a tree, with `*` for its leaves."""
    leaf = _Asterisk()
    return repr(tree_unflatten([leaf] * treespec.num_leaves, treespec))
