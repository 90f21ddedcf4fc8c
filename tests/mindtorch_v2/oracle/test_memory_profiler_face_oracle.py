"""`torch.profiler._memory_profiler`, as analyses of memory use it: signatures of events, data flow, keys."""

from __future__ import annotations

import gc
import importlib
from typing import Any

import pytest
from harness import ours, theirs


@pytest.fixture(params=[ours, theirs], ids=["ours", "pytorch"])
def torch(request: pytest.FixtureRequest) -> Any:
    return request.param


def face(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.profiler._memory_profiler")


def recording(torch: Any) -> Any:
    return torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True)


def ops(torch: Any, prof: Any) -> list[Any]:
    walk = importlib.import_module(f"{torch.__name__}.profiler._utils").traverse_dfs
    return [event for event in walk(prof.profiler.kineto_results.experimental_event_tree())
            if event.tag == importlib.import_module(f"{torch.__name__}._C._profiler")._EventType.TorchOp]


def flow(torch: Any, run: Any, **tensors: Any) -> list[tuple[str, dict[int, int], dict[int, int], list[int]]]:
    with recording(torch) as prof:
        run(**tensors)
        gc.collect()
    return [(node._event.name, {key.id: version for key, (_, version) in node.inputs.items()},
             {key.id: version for key, version in node.outputs.items()},
             [key.id for key, edge in node._edges.items() if edge.is_deletion])
            for node in prof._memory_profile()._data_flow_graph.flow_nodes]


def test_signatures_of_events(torch: Any) -> None:
    matcher = face(torch).SchemaMatcher
    with recording(torch) as prof:
        torch.cat([torch.ones(1), torch.ones(1)]).mul(2).add_(2).sum()
    found = {}
    for event in ops(torch, prof):
        schemas = matcher.match_schemas(event.extra_fields)
        found[event.name] = ([schema.overload_name for schema in schemas],
                             matcher.inputs_are_mutable(event.extra_fields))
    assert found["aten::cat"] == ([""], (False, False))
    assert found["aten::mul"] == (["Tensor"], (False, False))
    assert found["aten::add_"] == (["Tensor"], (True, False, False))
    assert found["aten::fill_"] == (["Scalar"], (True, False))
    assert found["aten::ones"] == ([""], (False,) * 5)


def test_signatures_of_views_and_of_what_is_no_op(torch: Any) -> None:
    matcher = face(torch).SchemaMatcher
    with recording(torch) as prof:
        x = torch.ones(2, 2).t().transpose(0, 1)[0].squeeze().pow(2)
        x.set_(torch.ones(3))
    found = {event.name: ([schema.overload_name for schema in matcher.match_schemas(event.extra_fields)],
                          matcher.inputs_are_mutable(event.extra_fields))
             for event in ops(torch, prof) if event.parent is None or event.parent.name != "aten::set_"}
    assert found["aten::t"] == ([""], (False,))
    assert found["aten::transpose"] == (["int"], (False,) * 3)
    assert found["aten::as_strided"] == ([""], (False,) * 4)
    assert found["aten::squeeze"] == ([""], (False,))
    assert found["aten::set_"] == (["source_Tensor"], (True, False))
    assert found["aten::result_type"] == (["Scalar"], (False, False))


def test_names_without_signatures(torch: Any) -> None:
    matcher = face(torch).SchemaMatcher
    assert matcher.lookup_schemas("a scope") is None
    assert matcher.lookup_schemas("other::name") == ()
    x = torch.ones(1, requires_grad=True)
    with recording(torch) as prof:
        (x * x).backward()
    backward = next(event for event in ops(torch, prof) if event.name == "MulBackward0")
    assert matcher.inputs_are_mutable(backward.extra_fields) == (None,)


def test_signatures_in_print(torch: Any) -> None:
    texts = [str(schema) for schema in face(torch).SchemaMatcher.lookup_schemas("aten::mul_")]
    assert "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)" in texts


def test_numbers_are_tensors_where_tensors_are_due(torch: Any) -> None:
    x = torch.ones(2, 2)
    with recording(torch) as prof:
        torch.add(x, 9.5, alpha=2)
        x * 2
        x.gt(1)
    found = {event.name: event.extra_fields.inputs for event in ops(torch, prof)}
    scalar = found["aten::add"][1]
    assert (scalar.dtype, scalar.sizes, found["aten::add"][2]) == (torch.float64, [], 2)
    assert found["aten::mul"][1].dtype == torch.int64
    assert found["aten::gt"][1] == 1  # a signature of its own for numbers


def test_flow_out_of_place(torch: Any) -> None:
    x, y = torch.ones(25), torch.ones(25, requires_grad=True)

    def run(x: Any, y: Any) -> Any:
        z = x.mul(y)
        return z.view_as(z)

    # Numbers go to what is seen first, arguments in their order.
    assert flow(torch, run, x=x, y=y)[:2] == [("aten::mul", {0: 0, 1: 0}, {2: 0}, []),
                                              ("aten::view_as", {2: 0}, {}, [])]


def test_flow_in_place(torch: Any) -> None:
    x, y = torch.ones(25), torch.ones(25)
    assert flow(torch, lambda x, y: x.mul_(y), x=x, y=y) == [("aten::mul_", {0: 0, 1: 0}, {0: 1}, [])]


def test_flow_with_annotations(torch: Any) -> None:
    def run(x: Any) -> Any:
        with torch.profiler.record_function("Namespaced::annotation"), torch.profiler.record_function("plain"):
            x.zero_()
        return torch.ones_like(x)

    found = flow(torch, run, x=torch.ones(1))
    assert found[:2] == [("aten::zero_", {0: 0}, {0: 1}, []), ("aten::ones_like", {0: 1}, {1: 0}, [])]


def test_keys(torch: Any) -> None:
    with recording(torch) as prof:
        x = torch.ones(4)
        x.sin()
    keys = face(torch).TensorKey
    graph = prof._memory_profile()._data_flow_graph
    sin = next(event for event in ops(torch, prof) if event.name == "aten::sin")
    key = keys.from_tensor(sin.extra_fields.inputs[0])
    assert key in graph._active_version
    assert graph.lookup(key) == 0
    assert key.device == torch.device("cpu")
    assert (key.id, key.storage.allocation_id) == (0, 1)
    empty = next(event for event in ops(torch, prof) if event.name == "aten::empty")
    assert keys.from_allocation(empty.children[0].extra_fields) == key
    assert keys.from_tensor(None) is None
    assert sorted(graph._active_version) == list(graph._active_version)
    assert prof._memory_profile()._size_map[key] == 16


def test_gradients_of_accumulators(torch: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    for first in (True, False):
        with recording(torch) as prof:
            (x * torch.ones(3)).sum().backward()
        found = [pair for event in ops(torch, prof) for pair in face(torch).extract_gradients(event)]
        assert [parameter for parameter, _ in found] == [None]
        snapshot = prof._memory_profile()._category_snapshot()
        assert snapshot[found[0][1], 0 if first else 1].name == "GRADIENT"


def test_memory_that_no_op_took_has_a_device_only() -> None:
    """Memory that is never an argument, such as the last result, is in the timeline, but not in the data flow."""
    def seen(torch: Any) -> tuple[list[Any], ...]:
        with recording(torch) as prof:
            torch.empty(10)
            y = torch.empty(20)
            y.exp()
            del y
        profile = prof._memory_profile()
        return ([(action.name, type(key).__name__, getattr(key, "id", None), version, size)
                 for _, action, (key, version), size in profile.timeline],
                [profile._size_map[key] for key, _ in profile._category_snapshot()],
                [(key.id, version) for key, version in profile._category_snapshot()])

    assert seen(ours) == seen(theirs)


def test_memory_profiles_know_their_events(torch: Any) -> None:
    with recording(torch) as prof:
        torch.ones(2).sin()
    tree = prof._memory_profile()._op_tree
    names = [event.name for event in tree.dfs()]
    assert [name for name in names if name in ("aten::ones", "aten::sin")] == ["aten::ones", "aten::sin"]
    assert sorted(names) == sorted(event.name for event in tree.sorted_nodes)
