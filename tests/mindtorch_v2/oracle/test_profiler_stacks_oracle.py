"""The same program on both profilers with `with_stack=True`: calls, their nesting, and the stacks of ops."""

from __future__ import annotations

import json
import os
import pathlib
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mindtorch_v2 as ours
from mindtorch_v2._dispatch.registry import public_names
from mindtorch_v2.profiler.sources import call_sites

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

FILE = os.path.basename(__file__)
Call = tuple[str, str | None]


def models(torch: Any) -> Any:
    """A model of each library; classes by the same names at the same lines."""

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return mixed(torch, self.query(x), self.key(x))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = torch.nn.ModuleList([Attention(), Attention()])
            self.tail = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.tail(x)

    return Net()


def mixed(torch: Any, query: Any, key: Any) -> Any:
    return torch.softmax(query * key, -1)


def factorial(torch: Any, n: int) -> Any:
    return torch.ones(2).exp() if n == 0 else factorial(torch, n - 1)


def batches(torch: Any) -> Iterator[Any]:
    for size in (1, 2):
        yield torch.ones(size, 4).sin()


def fails(torch: Any) -> None:
    torch.ones(1).cos()
    raise ValueError("expected")


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    def around(*args: Any) -> Any:
        return function(*args)

    return around


@decorated
@decorated
def twice_decorated(torch: Any) -> Any:
    return [torch.ones(n).sin() for n in (1, 2)]


def program(torch: Any, model: Any) -> None:
    for batch in batches(torch):
        model(batch).sum().backward()
    factorial(torch, 3)
    try:
        fails(torch)
    except ValueError:
        torch.ones(1).tan()
    twice_decorated(torch)
    sorted([2, 1], key=lambda n: float(torch.ones(n).cos().sum()))


def custom_function(torch: Any, model: Any) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return mixed(torch, grad, grad)

    Twice.apply(torch.ones(3, requires_grad=True)).sum().backward()


def scoped(torch: Any, model: Any) -> None:
    with torch.profiler.record_function("mine"):
        model(torch.ones(1, 4))


def built_ins(torch: Any, model: Any) -> None:
    """Calls of built-in functions in all the ways that there are."""
    functional, ones, options = torch.nn.functional, torch.ones, {"requires_grad": True}
    x = torch.zeros(ones(2, 3).shape)
    x.add_(1).mul(2)
    torch.add(x, x)
    _ = x + x, x[0], -x, x.shape, x * 2, 2 / (x + 1), x == x
    x.sum().item()
    torch.cat([x, x], dim=0)
    functional.linear(x, x)
    functional.relu(x)
    functional.gelu(x)
    torch.nn.functional.softmax(x, -1)
    torch.linalg.norm(x)
    torch.einsum("ij,ij->i", x, x)
    list(map(torch.sin, [x]))
    sorted([3, 1], key=lambda n: float(torch.ones(n).sum()))
    added = x.add
    added(1)
    [torch.cos][0](x)
    torch.randn(*(2, 3), **options)
    x.view(-1).float().double().long()
    x.numel(), x.size(), x.dim(), x.is_contiguous(), x.new_ones(2), x.to(torch.float64), x.split(1), x.norm()
    torch.tensor([1.0]), torch.arange(3), torch.is_tensor(x), torch.max(x), torch.split(x, 1), torch.rand_like(x)
    {}.update(a=len([1]), b=",".join("ab"))
    int("1"), str(2), range(3), isinstance(x, int), hasattr(x, "ndim")
    try:
        [].pop()
    except IndexError:
        [].append(1)
    with torch.no_grad():
        abs(-1)


PROGRAMS = [program, custom_function, scoped, built_ins]


def record(torch: Any, run: Callable[[Any, Any], None], path: pathlib.Path) -> tuple[Any, list[dict[str, Any]]]:
    model = models(torch)
    run(torch, model)
    # Without this switch PyTorch records calls but gives no event a stack.
    more = {} if torch is ours else {"experimental_config": torch._C._profiler._ExperimentalConfig(verbose=True)}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, **more) as prof:
        run(torch, model)
    prof.export_chrome_trace(str(path))
    return prof, json.loads(path.read_text())["traceEvents"]


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda function: function.__name__)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("stacks")
    return [record(module, request.param, folder / f"{module.__name__}.json") for module in (ours, torch)]


def is_users(name: str) -> bool:
    """Frames that both sides should have: of this file, and calls of modules."""
    return FILE in name or name.startswith("nn.Module: ")


def users_calls(events: list[dict[str, Any]]) -> list[Call]:
    """The user's calls in order, each with its nearest caller that is the user's."""
    calls = sorted((event for event in events if event.get("cat") == "python_function"),
                   key=lambda event: event["args"]["Python id"])
    by_id = {event["args"]["Python id"]: event for event in calls}
    found: list[Call] = []
    for event in calls:
        if not is_users(event["name"]):
            continue
        above = by_id.get(event["args"]["Python parent id"])
        while above is not None and not is_users(above["name"]):
            above = by_id.get(above["args"]["Python parent id"])
        found.append((event["name"], above and above["name"]))
    return found


def test_calls_have_the_same_names_and_callers(both: Any) -> None:
    mine, reference = (users_calls(events) for _, events in both)
    assert len(reference) > 5
    assert mine == reference


ADDRESS = re.compile(r" at 0x[0-9a-f]+>$")


def users_built_ins(events: list[dict[str, Any]]) -> list[Call]:
    """Built-in functions that the user's code calls itself, each with its caller."""
    calls = sorted((event for event in events if event.get("cat") == "python_function"),
                   key=lambda event: event["args"]["Python id"])
    by_id = {event["args"]["Python id"]: event for event in calls}
    found: list[Call] = []
    for event in calls:
        above = by_id.get(event["args"]["Python parent id"])
        if event["name"].startswith("<built-in ") and above is not None and FILE in above["name"]:
            found.append((ADDRESS.sub(">", event["name"]), above["name"]))
    return found


def test_built_in_functions_have_the_same_names_and_callers(both: Any) -> None:
    mine, reference = (users_built_ins(events) for _, events in both)
    assert reference
    assert mine == reference


def test_the_lists_of_what_is_built_in() -> None:
    def is_python(function: Any) -> bool:
        return isinstance(function, types.FunctionType)

    assert [name for name in call_sites.PYTHON_FUNCTIONS if not is_python(getattr(torch, name))] == []
    assert [name for name in call_sites.PYTHON_METHODS if not is_python(getattr(torch.Tensor, name))] == []
    functional = torch.nn.functional
    assert {name: ADDRESS.sub(">", repr(getattr(functional, name))) for name in call_sites.FUNCTIONAL} == {
        name: f"<built-in {text}>" for name, text in call_sites.FUNCTIONAL.items()}
    public = set(public_names("f"))
    assert {name for name in public if is_python(getattr(torch, name, None))} <= call_sites.PYTHON_FUNCTIONS
    methods = set(public_names("m"))
    assert {name for name in methods if is_python(getattr(torch.Tensor, name, None))} <= call_sites.PYTHON_METHODS


def test_call_arguments_have_the_same_keys(both: Any) -> None:
    left_out = {"Call stack", "Python thread", "Line"}  # PyTorch's only when verbose, and ours alone
    mine, reference = (
        {(event["name"].startswith("nn.Module"), *sorted(event["args"].keys() - left_out)) for event in events
         if event.get("cat") == "python_function" and is_users(event["name"])} for _, events in both)
    assert mine == reference
    numbers = [{(event["name"], event["args"]["Python module id"]) for event in events
                if event.get("cat") == "python_function" and "Python module id" in event["args"]}
               for _, events in both]
    assert numbers[0] == numbers[1]


# Ops that both libraries run for the same line, one for one.
COMPARED = re.compile(r"aten::(linear|addmm|softmax|mul|exp|cos|tan|sin|tanh)$|\w+Backward0?$|mine$")


def users(stack: list[str]) -> list[str]:
    """The user's frames, without lines: ours say which line ran, PyTorch's where the function begins."""
    return [re.sub(r"\(\d+\)", "", entry) for entry in stack if is_users(entry)]


def stacks(events: Any, in_backward: Any) -> list[tuple[str, list[str]]]:
    """Stacks of ops as far as they are the user's."""
    return [(event.name, users(in_backward(event))) for event in events
            if COMPARED.match(event.name) and not event.is_python_function]


def of_the_op_that_recorded_the_node(events: Any) -> Callable[[Any], list[str]]:
    """What a stack should be by PyTorch's events: in a backward function, that of the last op of its number before it.

    PyTorch gives it that of the first op, though that one may have recorded no node and stand in another function.
    """
    def found(event: Any) -> list[str]:
        around = event
        while around is not None and not (around.name.endswith(("Backward", "Backward0")) and ":" not in around.name):
            around = around.cpu_parent
        if around is None:
            return event.stack
        return [other for other in events if other.sequence_nr == around.sequence_nr and not other.fwd_thread
                and other.time_range.start < around.time_range.start][-1].stack

    return found


def test_ops_have_the_same_stacks(both: Any) -> None:
    mine, reference = (prof.events() for prof, _ in both)
    expected = stacks(reference, of_the_op_that_recorded_the_node(reference))
    assert any(stack for _, stack in expected)
    assert stacks(mine, lambda event: event.stack) == expected


def test_calls_have_the_same_stacks(both: Any) -> None:
    """A call's stack is its callers, so that in a flame graph the rest of its time is theirs."""
    mine, reference = ([(event.name, users(event.stack)) for event in prof.events()
                        if event.is_python_function and is_users(event.name)] for prof, _ in both)
    assert any(stack for _, stack in reference)
    assert mine == reference


def test_the_same_calls_among_events_and_averages(both: Any) -> None:
    def counts(rows: Any) -> dict[str, int]:
        return {row.key: row.count for row in rows if is_users(row.key)}

    # A call that only repeats its caller is left out by both, but PyTorch has calls of built-ins in between.
    mine, reference = ([event.name for event in prof.events() if event.is_python_function and is_users(event.name)]
                       for prof, _ in both)
    assert mine == reference
    assert counts(both[0][0].key_averages()) == counts(both[1][0].key_averages())


def test_modules_enclose_the_same_ops(both: Any) -> None:
    """The innermost call of a module around each op, by times in the file."""
    found = []
    for _, events in both:
        complete = [event for event in events if event.get("ph") == "X" and "ts" in event]
        modules = [event for event in complete if event["name"].startswith("nn.Module: ")]
        nested = []
        for op in sorted((e for e in complete if e["cat"] == "cpu_op" and COMPARED.match(e["name"])),
                         key=lambda event: event["ts"]):
            around = [m for m in modules if m["tid"] == op["tid"] and m["ts"] <= op["ts"]
                      and op["ts"] + op["dur"] <= m["ts"] + m["dur"] + 0.001]
            nested.append((op["name"], max(around, key=lambda m: m["ts"])["name"] if around else None))
        found.append(nested)
    assert found[0] == found[1]
