"""Which tensor is which in an event tree, over changes of its memory and over several recordings, as in PyTorch."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness import ours, theirs

MEMORY = "[memory]"


@pytest.fixture(params=[ours, theirs], ids=["ours", "pytorch"])
def torch(request: pytest.FixtureRequest) -> Any:
    return request.param


def everything(events: list[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        yield from everything(event.children)


def recorded(torch: Any, program: Callable[[], None], **options: Any) -> list[Any]:
    """All events of a program, by their starts."""
    gc.collect()
    with torch.profiler.profile(**({"record_shapes": True, "profile_memory": True} | options)) as prof:
        program()
    found = everything(prof.profiler.kineto_results.experimental_event_tree())
    return sorted(found, key=lambda event: event.start_time_ns)


def inputs(events: list[Any], name: str) -> list[Any]:
    return next(event.extra_fields.inputs for event in events if event.name == name)


def memory(events: list[Any]) -> list[Any]:
    return [event.extra_fields for event in events if event.name == MEMORY]


def changes(events: list[Any]) -> list[tuple[Any, Any, int]]:
    return [(change.id, change.allocation_id, change.alloc_size) for change in memory(events)]


def test_a_tensor_stays_itself_when_its_memory_changes(torch: Any) -> None:
    grows, taken_over, other = torch.randn(4, 3), torch.randn(4, 1), torch.randn(4, 3)
    view = grows.view(1, 12)

    def program() -> None:
        grows + taken_over
        view * taken_over
        torch.relu(grows.resize_(128, 129))
        other.sin()
        taken_over.set_(other.untyped_storage())
        taken_over.cos()

    was = grows.data_ptr()
    events = recorded(torch, program, with_stack=True)
    (first, small, _), (flat, again) = inputs(events, "aten::add"), inputs(events, "aten::mul")
    assert first.storage_data_ptr == flat.storage_data_ptr == was
    assert first.impl_ptr != flat.impl_ptr
    assert first.id == flat.id
    assert (small.impl_ptr, small.storage_data_ptr, small.id) == (again.impl_ptr, again.storage_data_ptr, again.id)
    (grown,) = inputs(events, "aten::relu")
    assert grown.impl_ptr == first.impl_ptr
    assert grown.id == first.id
    assert grown.storage_data_ptr == grows.data_ptr() != was
    (one,), (two,) = inputs(events, "aten::sin"), inputs(events, "aten::cos")
    assert one.impl_ptr != two.impl_ptr
    assert two.impl_ptr == small.impl_ptr
    assert one.storage_data_ptr == two.storage_data_ptr
    assert one.id == two.id == small.id


@pytest.mark.parametrize("emptied", [False, True])
def test_numbers_of_memory_that_a_tensor_takes_over(torch: Any, emptied: bool) -> None:
    def program() -> None:
        x = torch.ones(1)
        if emptied:
            x.set_()
        x.set_(torch.ones(1).untyped_storage())
        x.view_as(x)

    first, second = (0, 1), (0, 2)
    assert changes(recorded(torch, program)) == (
        [(*first, 4), (*first, -4), (*second, 4), (*second, -4)] if emptied else
        [(*first, 4), (*second, 4), (*first, -4), (*second, -4)])


def test_what_has_no_elements_has_no_memory(torch: Any) -> None:
    def program() -> None:
        x = torch.ones(1)
        kept = [x.untyped_storage()]
        for _ in range(2):
            x.set_()
            x.set_(torch.ones(1).untyped_storage())
            kept.append(x.untyped_storage())
        x.view_as(x)
        while kept:
            kept.pop()
        x.set_()
        x.set_(torch.ones(1).untyped_storage())
        x.view_as(x)

    # The number that is left out is that of no memory.
    assert changes(recorded(torch, program)) == [
        (0, 1, 4), (0, 2, 4), (0, 4, 4), (0, 2, -4), (0, 1, -4), (0, 4, -4), (0, 5, 4), (0, 5, -4)]


def test_growing_takes_and_gives_back_memory(torch: Any) -> None:
    def program() -> None:
        x = torch.rand(4, 3)
        x.resize_(4, 4)
        x.sin()

    events = recorded(torch, program)
    taken, grown, given_back, *_ = memory(events)
    assert [taken.alloc_size, grown.alloc_size, given_back.alloc_size] == [48, 64, -48]
    assert taken.id == grown.id == given_back.id == inputs(events, "aten::sin")[0].id
    assert taken.ptr == given_back.ptr != grown.ptr
    where = [event.parent for event in events if event.name == MEMORY][1:3]
    assert [event.name for event in where] == ["aten::resize_"] * 2


def test_tensors_that_only_follow_each_other_are_different(torch: Any) -> None:
    def program() -> None:
        for _ in range(50):
            torch.ones(1)

    events = recorded(torch, program)
    given = [event.extra_fields.inputs[0] for event in events if event.name == "aten::fill_"]
    assert len({tensor.impl_ptr for tensor in given}) == len({tensor.id for tensor in given}) == 50
    assert {change.allocation_id for change in memory(events)} == set(range(1, 51))


def test_what_must_be_recorded_to_know_tensors(torch: Any) -> None:
    def program() -> None:
        torch.ones(3).sin()

    taken = memory(recorded(torch, program, record_shapes=False))[0]
    assert (taken.id, taken.allocation_id) == (None, None)
    (given,) = inputs(recorded(torch, program, profile_memory=False), "aten::sin")
    assert (given.id, given.allocation_id) == (None, None)
    events = recorded(torch, program)
    assert inputs(events, "aten::sin")[0].id == 0
    assert [(change.id, change.allocation_id) for change in memory(events)][:2] == [(0, 1), (None, 2)]


def test_memory_of_an_earlier_recording(torch: Any) -> None:
    gc.collect()
    with torch.profiler.profile(profile_memory=True) as prof:
        x = torch.empty((3, 4))
    (taken,) = memory(list(everything(prof.profiler.kineto_results.experimental_event_tree())))
    with torch.profiler.profile(profile_memory=True) as prof, torch.profiler.record_function("gives back"):
        del x
        gc.collect()
    (given_back,) = memory(list(everything(prof.profiler.kineto_results.experimental_event_tree())))
    assert (given_back.ptr, given_back.alloc_size) == (taken.ptr, -48)
    assert given_back.total_allocated == taken.total_allocated - 48
    assert next(row.cpu_memory_usage for row in prof.key_averages() if row.key == "gives back") == -48


def test_memory_from_before_all_recordings(torch: Any) -> None:
    x = torch.empty((3, 4))
    with torch.profiler.profile(profile_memory=True) as prof:
        del x
        gc.collect()
    assert not memory(list(everything(prof.profiler.kineto_results.experimental_event_tree())))


def test_taking_over_memory_is_an_op(torch: Any) -> None:
    def program() -> None:
        x = torch.ones(2)
        x.set_()
        x.set_(torch.ones(3))
        x.set_(torch.ones(3).untyped_storage())

    found = [event.extra_fields.inputs for event in recorded(torch, program)
             if event.name == "aten::set_" and event.parent is None]  # PyTorch's are made of others of that name
    assert [[given.sizes for given in inputs if hasattr(given, "sizes")] for inputs in found] == [
        [[2]], [[0], [3]], [[3]]]


def steps(events: list[Any]) -> list[Any]:
    return [event for event in events if getattr(event.extra_fields, "optimizer", None) is not None]


@pytest.mark.parametrize("started", [False, True])
def test_what_an_optimizer_works_on(torch: Any, started: bool) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def program() -> None:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.state[model.weight]["momentum_buffer"].cos()
        model.weight.grad.tan()

    if started:
        program()
    events = recorded(torch, program, with_stack=True)
    (step,) = steps(events)
    assert step.name.endswith(": _optimizer_step_code")
    assert step.extra_fields.module is None
    assert step.extra_fields.optimizer.self_ptr == id(optimizer)
    (weight, gradient, ((name, momentum),)), _bias = step.extra_fields.optimizer.parameters
    assert weight.id == inputs(events, "aten::linear")[1].id
    assert weight.storage_data_ptr == model.weight.data_ptr()
    assert gradient.id == inputs(events, "aten::tan")[0].id
    assert (name, momentum.id) == ("momentum_buffer", inputs(events, "aten::cos")[0].id)
    assert len({weight.id, gradient.id, momentum.id}) == 3


def test_optimizers_are_told_apart_by_their_steps(torch: Any) -> None:
    weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
    optimizers = [torch.optim.SGD(weights[:1], lr=0.1), torch.optim.Adam(weights[1:])]

    def program() -> None:
        for _ in range(2):
            for weight, optimizer in zip(weights, optimizers, strict=True):
                weight.sum().backward()
                optimizer.step()

    found = [event.extra_fields.optimizer for event in steps(recorded(torch, program, with_stack=True))]
    assert [info.self_ptr for info in found] == [id(optimizer) for optimizer in optimizers] * 2
    names = [[name for name, _ in info.parameters[0][2]] for info in found]
    assert names[:2] == [[], ["step", "exp_avg", "exp_avg_sq"]]


def test_functions_that_the_user_calls_are_in_stacks(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    functional = torch.nn.functional

    def program() -> None:
        functional.relu(model(torch.ones(1, 2))).sum().backward()
        model.zero_grad(set_to_none=False)

    events = recorded(torch, program, with_stack=True)

    def around(name: str) -> list[str]:
        event, found = next(event for event in events if event.name == name), []
        while (event := event.parent) is not None:
            found.append(event.name.rpartition(": ")[2])
        return found

    assert "relu" in around("aten::relu")[:2], "PyTorch calls a built-in function in between"
    assert "zero_grad" in around("aten::zero_")
    assert any(event.name.endswith(": backward") for event in events)


def test_tensors_of_a_tree_are_found_by_their_own_number(torch: Any) -> None:
    x, y = torch.ones(3), torch.ones(3)

    def program() -> None:
        (x + y).sin()

    events = recorded(torch, program)
    first, second, _ = inputs(events, "aten::add")
    assert (first.impl_ptr, second.impl_ptr) == (x._cdata, y._cdata)
    assert inputs(events, "aten::sin")[0].impl_ptr not in (x._cdata, y._cdata)
