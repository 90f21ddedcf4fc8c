"""Event trees: the same names, kinds, arguments and memory in the same places as PyTorch's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness import ours, theirs
from programs import PROGRAMS

# Helpers that PyTorch's kernels run and NumPy's do not need, or the other way round; docs/architecture.md says why.
INNER = {"aten::resolve_conj", "aten::resolve_neg"}


def trees(torch: Any, run: Callable[[], Any], **options: Any) -> list[Any]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        run()
    return prof.profiler.kineto_results.experimental_event_tree()


def everything(roots: list[Any]) -> Iterator[Any]:
    for event in roots:
        yield event
        yield from everything(event.children)


def outline(event: Any) -> Any:
    """Names and kinds, all the way down."""
    below = [outline(child) for child in event.children if child.name not in INNER]
    return (event.name, event.tag.name, below) if below else (event.name, event.tag.name)


def both(program: Callable[[Any], Callable[[], Any]], **options: Any) -> tuple[list[Any], list[Any]]:
    found = []
    for torch in (ours, theirs):
        run = program(torch)
        run()  # what happens only once is not part of the comparison
        found.append(trees(torch, run, **options))
    return found[0], found[1]


def small(torch: Any) -> Callable[[], None]:
    weight = torch.ones(3, 4, requires_grad=True)

    def run() -> None:
        weight.grad = None
        with torch.profiler.record_function("mine"):
            made = torch.ones(2, 3)
            x = made @ weight
            y = torch.cat([x, x])
        y.relu().backward(torch.ones(4, 4))
        del x, y

    return run


def test_outline_of_a_small_program_with_memory() -> None:
    got, want = both(small, profile_memory=True, record_shapes=True)

    def steady(events: list[Any]) -> list[Any]:
        # In which order a node gives back what it saved is up to the engine.
        return [outline(event) for event in events if event.tag.name == "TorchOp"]

    def without_releases(node: Any) -> Any:
        return node if len(node) == 2 else (*node[:2], [without_releases(b) for b in node[2] if b[0] != "[memory]"])

    assert [without_releases(node) for node in steady(got)] == [without_releases(node) for node in steady(want)]
    assert steady(got)[0] == steady(want)[0]


@pytest.mark.parametrize("name", ["chain", "scopes", "views", "mlp_sgd", "broadcasting", "operators"])
def test_roots_are_the_same(name: str) -> None:
    got, want = both(lambda torch: PROGRAMS[name](torch, torch.profiler.record_function))
    assert [(root.name, root.tag.name) for root in got] == [(root.name, root.tag.name) for root in want]
    assert all(root.parent is None for root in got)


@pytest.mark.parametrize("name", ["chain", "scopes", "mlp_sgd", "broadcasting"])
def test_allocations_have_the_same_sizes_in_the_same_roots(name: str) -> None:
    got, want = both(lambda torch: PROGRAMS[name](torch, torch.profiler.record_function), profile_memory=True)

    def sizes(events: list[Any]) -> list[tuple[str, Counter[int]]]:
        # A number takes memory in PyTorch where it becomes a tensor on the way into a kernel.
        return [(root.name, Counter(event.extra_fields.alloc_size for event in everything([root])
                                    if event.tag.name == "Allocation" and event.extra_fields.alloc_size > 8))
                for root in events if root.tag.name == "TorchOp"]

    assert any(counter for _, counter in sizes(got))
    assert sizes(got) == sizes(want)


def described(value: Any) -> Any:
    if isinstance(value, list):
        return [described(item) for item in value]
    if hasattr(value, "sizes"):
        return list(value.sizes), list(value.strides), str(value.dtype), str(value.device), str(value.layout), value.dim
    return value


def test_arguments_of_ops() -> None:
    def program(torch: Any) -> Callable[[], None]:
        a, b = torch.ones(2, 3), torch.ones(3, dtype=torch.float64)

        def run() -> None:
            torch.add(a, b, alpha=2)
            torch.cat([a, a], 1)
            a.t().sum([0], keepdim=True)
            torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1])
            torch.where(a > 0, a, 0.5)

        return run

    got, want = both(program, record_shapes=True)
    names = ["aten::add", "aten::cat", "aten::t", "aten::sum", "aten::conv2d", "aten::gt", "aten::where"]
    for name in names:
        mine, real = (next(event for event in roots if event.name == name) for roots in (got, want))
        assert described(mine.extra_fields.inputs) == described(real.extra_fields.inputs), name


def test_scopes_and_sequence_numbers() -> None:
    got, want = both(small, record_shapes=True)

    def facts(events: list[Any]) -> list[Any]:
        ops = [event for event in events if event.tag.name == "TorchOp"]
        low = min((op.extra_fields.sequence_number for op in everything(ops) if op.tag.name == "TorchOp"
                   and op.extra_fields.sequence_number >= 0), default=0)
        return [(op.name, op.extra_fields.scope.name, op.extra_fields.scope.value, op.extra_fields.name,
                 max(-1, op.extra_fields.sequence_number - low), op.extra_fields.allow_tf32_cublas) for op in ops]

    assert facts(got) == facts(want)


def test_ids_tell_the_same_tensors_apart() -> None:
    """Ids are counted from the first one; only which arguments share one matters."""

    def program(torch: Any) -> Callable[[], None]:
        a, b = torch.ones(2, 3), torch.ones(2, 3)

        def run() -> None:
            torch.add(a, b)
            a.view(6).neg_()
            torch.add(b, a)
            c = torch.neg(a)
            torch.add(c, c)

        return run

    got, want = both(program, record_shapes=True, profile_memory=True, with_stack=True)

    def ids(events: list[Any], attribute: str) -> list[Any]:
        seen: dict[int, int] = {}
        return [(op.name, [seen.setdefault(getattr(given, attribute), len(seen)) for given in op.extra_fields.inputs
                           if hasattr(given, "sizes")])
                for op in everything(events) if op.tag.name == "TorchOp" and op.name in ("aten::add", "aten::neg_")]

    for attribute in ("id", "allocation_id", "storage_data_ptr"):
        assert ids(got, attribute) == ids(want, attribute)
    assert ids(got, "id")[-1][1] == [2, 2]


def test_times_nest_and_are_in_unix_nanoseconds() -> None:
    for roots in both(small):
        for event in everything(roots):
            assert event.end_time_ns - event.start_time_ns == event.duration_time_ns
            assert 1.6e18 < event.start_time_ns < 4e18
            assert all(event.start_time_ns <= below.start_time_ns and below.end_time_ns <= event.end_time_ns
                       and below.parent.id == event.id for below in event.children)


def test_python_calls_around_ops() -> None:
    def program(torch: Any) -> Callable[[], None]:
        model = torch.nn.Linear(3, 2)

        def inner() -> Any:
            return model(torch.ones(1, 3))

        return inner

    for roots in both(program, with_stack=True):
        call = next(event for event in everything(roots) if event.name.endswith(": inner"))
        module = next(event for event in everything([call]) if event.name == "nn.Module: Linear_0")
        assert call.tag.name == module.tag.name == "PyCall"
        assert "aten::linear" in {event.name for event in everything([module])}
        assert call.extra_fields.callsite.function_name == "inner"
        assert call.extra_fields.callsite.file_name.endswith("test_event_tree_oracle.py")
        assert module.extra_fields.caller.function_name == "inner"
        assert module.extra_fields.module.cls_name == "Linear"
        assert call.extra_fields.module is None


ACCESSORS = ("name", "scope", "shapes", "dtypes", "concrete_inputs", "structured_input_shapes",
             "structured_input_strides", "is_async", "is_hidden_event", "is_user_annotation", "is_python_function",
             "activity_type", "flops", "start_thread_id", "end_thread_id", "linked_correlation_id", "nbytes", "stack",
             "metadata_json", "extra_meta", "kwinputs", "python_id", "python_parent_id", "python_module_id")


def test_accessors_of_kineto_events() -> None:
    def events(torch: Any) -> list[Any]:
        run = small(torch)
        run()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                    with_flops=True) as prof:
            run()
        return prof.profiler.kineto_results.events()

    got, want = ({event.name(): {key: getattr(event, key)() for key in ACCESSORS} for event in events(torch)}
                 for torch in (ours, theirs))
    for name in ("mine", "aten::mm", "aten::matmul", "aten::cat", "aten::relu", "ReluBackward0",
                 "autograd::engine::evaluate_function: MmBackward0"):
        assert got[name] == want[name]


def test_links_of_kineto_events() -> None:
    for torch in (ours, theirs):
        run = small(torch)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            run()
        found = {event.name(): event for event in reversed(prof.profiler.kineto_results.events())}
        forward, backward = found["aten::mm"], found["MmBackward0"]
        assert forward.sequence_nr() == backward.sequence_nr() >= 0
        assert (forward.fwd_thread_id(), backward.fwd_thread_id()) == (0, forward.start_thread_id())
        assert forward.flow_id() == backward.flow_id() > 0
        assert (forward.flow_start(), backward.flow_start()) == (True, False)
        assert forward.device_type().name == "CPU"
        assert forward.device_index() == found["mine"].device_index()
        assert forward.end_ns() - forward.start_ns() == forward.duration_ns()
        assert prof.profiler.kineto_results.trace_start_ns() <= forward.start_ns()
        numbers = [event.correlation_id() for event in prof.profiler.kineto_results.events()]
        assert numbers == sorted(set(numbers))
        assert min(numbers) > 0


def test_scopes_around_ops() -> None:
    found = []
    for torch in (ours, theirs):
        module = torch.profiler._memory_profiler
        run = small(torch)
        run()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            run()
        tree = module.OpTree(prof.profiler.kineto_results)
        assert [event.start_time_ns for event in tree.sorted_nodes] == sorted(e.start_time_ns for e in tree.dfs())
        scopes = {event.name: [scope.name for scope in module.get_scopes(event)] for event in tree.dfs()}
        found.append({name: scopes[name] for name in ("mine", "aten::ones", "aten::t", "MmBackward0", "aten::cat")})
        assert module.get_scopes(None) == ()
    assert found[0] == found[1]


def powered(torch: Any) -> Callable[[], Any]:
    x = torch.ones(3, requires_grad=True)
    return lambda: (x ** 2).sqrt().sum().backward()


def test_a_product_with_a_number_is_one_with_a_tensor_inside() -> None:
    found = [[outline(event) for event in roots if "PowBackward0" in event.name or "SqrtBackward0" in event.name]
             for roots in both(powered)]
    assert len(found[0]) == 2
    assert found[0] == found[1]
