"""Trees of containers: what is a container, how shapes are compared, written and spread, beside PyTorch."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from harness import check_error

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")
Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


def pytree(module):
    return importlib.import_module(f"{module.__name__}.utils._pytree")


def shown(value):
    return repr(value).replace("mindtorch_v2", "torch")


TREES = [
    lambda t: t.ones(2).max(0), lambda t: t.ones(2).sort(), lambda t: {"a": t.ones(2).topk(1)},
    lambda t: t.Size([1, 2]), lambda t: Point(1, [2]), lambda t: deque([1, 2], maxlen=3), lambda t: time.gmtime(0),
    lambda t: defaultdict(list, {"a": 1}), lambda t: OrderedDict(b=1, a=(2,)), lambda t: None, lambda t: [],
    lambda t: importlib.import_module(f"{t.__name__}.fx.immutable_collections").immutable_list([1, 2]),
    lambda t: importlib.import_module(f"{t.__name__}.fx.immutable_collections").immutable_dict(a=1),
]


def facts(module, make):
    tree = pytree(module)
    found = make(module)
    leaves, spec = tree.tree_flatten(found)
    again = tree.tree_unflatten(leaves, spec)
    return shown((leaves, spec, spec.num_nodes, spec.num_leaves, spec.children(), getattr(spec.type, "__name__", None),
                  spec.context, again, type(again),
                  tree.tree_map_with_path(lambda path, leaf: (path, leaf), list(found or ())),
                  tree.tree_flatten_with_path(found), list(tree.tree_iter(found))))


@pytest.mark.parametrize("number", range(len(TREES)))
def test_containers(number):
    assert facts(ours, TREES[number]) == facts(theirs, TREES[number])


CALLS = [
    lambda p: p.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, OrderedDict(b=1, a=5)),
    lambda p: p.tree_map(lambda a, b: a + b, OrderedDict(a=1), {"a": 1}),
    lambda p: p.tree_map(lambda a, b: a + b, deque([1], maxlen=2), deque([1], maxlen=3)),
    lambda p: p.tree_map_only(int | float, lambda a: a + 1, [1, "a", 2.0]),
    lambda p: p.map_only(int)(lambda a: a + 1)("b"),
    lambda p: p._broadcast_to_and_flatten({"b": 1, "a": 2}, p.tree_structure({"a": [1, 2], "b": 0})),
    lambda p: p._broadcast_to_and_flatten(OrderedDict(b=1, a=2), p.tree_structure({"a": [1, 2], "b": 0})),
    lambda p: p._broadcast_to_and_flatten(deque([1], maxlen=3), p.tree_structure(deque([1], maxlen=2))),
    lambda p: p._broadcast_to_and_flatten([1], p.tree_structure((1,))),
    lambda p: p.tree_structure([1, (2, 3)]).flatten_up_to([1, (2, [3])]),
    lambda p: p.tree_structure([1, (2, 3)]).child(1),
    lambda p: [field.name for field in dataclasses.fields(p.TreeSpec)],
    lambda p: [p.treespec_dumps(p.tree_structure(tree)) for tree in (
        [1, (2,)], {"a": 1}, OrderedDict(a=1), defaultdict(list, {Colour.RED: 1}), {Colour.RED: 1}, deque([1], 4))],
    lambda p: [p.treespec_loads(p.treespec_dumps(p.tree_structure(tree))) == p.tree_structure(tree) for tree in (
        {Colour.RED: [1]}, defaultdict(list, {"a": 1}), deque([1], 4))],
    lambda p: sorted(p.__all__),
    lambda p: {list, tuple, namedtuple, deque} == p.BUILTIN_TYPES - p.STANDARD_DICT_TYPES,
    lambda p: (p.SUPPORTED_SERIALIZED_TYPES[list], p.SERIALIZED_TYPE_TO_PYTHON_TYPE["builtins.list"]),
    lambda p: p.is_structseq_class(type(time.gmtime(0))),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(number):
    assert shown(CALLS[number](pytree(ours))) == shown(CALLS[number](pytree(theirs)))


def frozen(p):
    p.tree_structure([1]).num_leaves = 3


MISTAKES = [
    lambda p: p.tree_map(max, [1, 2], [3]), lambda p: p.tree_map(max, [1], (3,)), lambda p: p.tree_map(max, (1,), 1),
    lambda p: p.tree_map(max, {"a": 1}, {"b": 1}), lambda p: p.tree_structure([1]).flatten_up_to(3),
    lambda p: p.treespec_tuple([1]), lambda p: p.treespec_dumps("x"), lambda p: p.tree_unflatten([1], 3),
    lambda p: p.treespec_dumps(p.tree_structure(Point(1, 2))), frozen,
    lambda p: p.register_pytree_node(list, list, list),
    lambda p: p.treespec_loads('[1, {"type": "foo", "context": "null", "children_spec": []}]'),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    check_error(lambda t: MISTAKES[number](pytree(t)))


@pytest.mark.parametrize("module", [ours, theirs])
def test_registering_again_and_taking_back(module):
    p = pytree(module)

    class Box:
        pass

    p.register_pytree_node(Box, lambda box: ([1], None), lambda items, _: Box())
    with pytest.warns(FutureWarning, match="register_pytree_node"), pytest.warns(UserWarning, match="Overwriting"):
        p._register_pytree_node(Box, lambda box: ([1, 2], None), lambda items, _: Box())
    assert p.tree_leaves(Box()) == [1, 2]
    p._deregister_pytree_node(Box)
    box = Box()
    assert p.tree_leaves(box) == [box]
