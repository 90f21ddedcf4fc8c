"""The same programs under both execution trace observers: nodes that both have agree in all that is not an id."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from typing import Any

import pytest
from harness import ours, theirs
from programs import PROGRAMS as ALL_PROGRAMS

from mindtorch_v2._dispatch.namespace import load_late
from mindtorch_v2._dispatch.registry import OPS
from mindtorch_v2.profiler.execution_trace.op_schemas import Form, schema_text

PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
ENGINE = "autograd::engine::"

# PyTorch runs this one's attention on threads of its own, which its trace shows.
PROGRAMS = {name: program for name, program in ALL_PROGRAMS.items() if name != "attention_layers"}


class Trace:
    """A file as a tree."""

    def __init__(self, path: Any) -> None:
        self.file = json.loads(path.read_text())
        self.nodes = sorted(self.file["nodes"], key=lambda node: node["id"])
        self.by_id = {node["id"]: node for node in self.nodes}

    def chain(self, node: dict[str, Any]) -> list[str]:
        """Names from the node up to the root."""
        return [node["name"], *(other["name"] for other in self.above(node))]

    def above(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """The nodes around this one, from the inside out."""
        found = []
        while node["id"] != node["ctrl_deps"]:
            node = self.by_id[node["ctrl_deps"]]
            found.append(node)
        return found

    def inside_op(self, node: dict[str, Any]) -> bool:
        """Whether an op called it: how ops are made of each other is compared elsewhere."""
        return any(name.startswith("aten::") for name in self.chain(node)[1:])


def attrs(node: dict[str, Any]) -> dict[str, Any]:
    return {a["name"]: a["value"] for a in node["attrs"]}


def record(torch: Any, program: Any, path: Any) -> Trace:
    run = program(torch, torch.profiler.record_function)
    run()
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(path))
    observer.start()
    run()
    observer.stop()
    observer.unregister_callback()
    return Trace(path)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    directory = tmp_path_factory.mktemp("traces")
    return {name: (record(ours, program, directory / f"ours_{name}.json"),
                   record(theirs, program, directory / f"theirs_{name}.json")) for name, program in PROGRAMS.items()}


def outer(trace: Trace) -> list[dict[str, Any]]:
    """What the program called and the backward functions that ran for it, in the order of their beginnings.

    How ops and backward functions are made of ops is compared apart.
    """
    return [node for node in trace.nodes if not trace.inside_op(node)
            and (attrs(node)["scope"] == 1 or not any(attrs(above)["scope"] == 1 or above["name"].startswith(ENGINE)
                                                      for above in trace.above(node)))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_outside_of_ops_and_their_chains(traces, name):
    got, want = traces[name]
    assert [got.chain(node) for node in outer(got)] == [want.chain(node) for node in outer(want)]


def test_nesting_inside_ops_and_backward_functions(traces):
    """Chains of names, restricted to names that both traces of a program have."""
    same = total = 0
    for pair in traces.values():
        common = set.intersection(*({node["name"] for node in trace.nodes} for trace in pair))
        got, want = (Counter(tuple(name for name in trace.chain(node) if name in common) for node in trace.nodes
                             if node["name"] in common) for trace in pair)
        same += (got & want).total()
        total += got.total()
    # Not all: a few formulas use other ops than PyTorch's do.
    assert same / total > 0.9


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_frame_of_the_file(traces, name):
    got, want = traces[name]
    assert list(got.file) == list(want.file)
    assert got.file["schema"] == want.file["schema"]
    for node in got.nodes:
        assert list(node) == list(want.nodes[0])
        assert [(a["name"], a["type"]) for a in node["attrs"]] == [
            (a["name"], a["type"]) for a in want.nodes[0]["attrs"]]


def without_ids(values: Any, types: Any) -> Any:
    """Values with the numbers of tensors and storages taken out."""
    if isinstance(types, str) and types.startswith("Tensor("):
        return values[2:]
    if isinstance(values, list):
        return [without_ids(v, "Tensor(" if isinstance(v, list) and len(v) == 6 and isinstance(v[-1], str) else "")
                for v in values]
    return round(values, 6) if isinstance(values, float) else values  # theirs are printed with six digits


def described(side: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(without_ids(value, kind), shape, kind, strides) for value, shape, kind, strides in zip(
        side["values"], side["shapes"], side["types"], side["strides"], strict=True)]


# Facts of the runtime that show: it has one overload of these for PyTorch's several ...
OTHER_OVERLOAD = {"aten::arange", "aten::std"}
# ... or it leaves arguments open that PyTorch fills in before it calls the op: a slice's ends, the layout of memory.
OTHER_DEFAULTS = {"aten::empty", "aten::ones_like", "aten::slice"}


def comparable(traces: Any, name: str) -> list[tuple[Any, Any]]:
    got, want = (outer(trace) for trace in traces[name])
    assert len(got) == len(want)
    return [(g, w) for g, w in zip(got, want, strict=True) if g["name"] not in OTHER_OVERLOAD]


@pytest.mark.parametrize("name", PROGRAMS)
def test_schemas_scopes_and_threads(traces, name):
    for got, want in comparable(traces, name):
        for key in ("op_schema", "scope", "tid", "fw_tid", "kernel_backend", "kernel_file", "tensor_range"):
            assert attrs(got)[key] == attrs(want)[key], (got["name"], key)


@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs(traces, name):
    compared = 0
    for got, want in comparable(traces, name):
        mine, real = described(got["inputs"]), described(want["inputs"])
        if got["name"] in OTHER_DEFAULTS:
            mine, real = mine[:1], real[:1]
        assert mine == real, got["name"]
        compared += len(mine)
    assert compared


@pytest.mark.parametrize("name", PROGRAMS)
def test_outputs(traces, name):
    for got, want in comparable(traces, name):
        assert described(got["outputs"]) == described(want["outputs"]), got["name"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_functions_belong_to_the_same_forward_ops(traces, name):
    def links(trace: Trace) -> list[tuple[Any, ...]]:
        numbers = [attrs(n)["seq_id"] for n in outer(trace) if attrs(n)["seq_id"] >= 0]
        first = min(numbers, default=0)
        return [(n["name"], attrs(n)["seq_id"] - first if attrs(n)["seq_id"] >= 0 else -1,
                 trace.by_id[attrs(n)["fw_parent"]]["name"]) for n in trace.nodes if attrs(n)["scope"] == 1]

    got, want = traces[name]
    assert links(got) == links(want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_record_ids_count_in_the_order_of_nodes(traces, name):
    for trace in traces[name]:
        numbers = [attrs(n)["rf_id"] for n in trace.nodes if n["name"] not in (PROCESS, THREAD)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_ids_of_tensors_link_ops_alike(traces):
    """An output that is an input later links the same pairs of ops, if the programs keep their tensors."""
    def links(trace: Trace) -> set[tuple[str, str]]:
        made: dict[int, str] = {}
        found = set()
        for node in outer(trace):
            found |= {(made[v[0]], node["name"]) for v in node["inputs"]["values"]
                      if isinstance(v, list) and len(v) == 6 and v[0] in made}
            made.update({v[0]: node["name"] for v in node["outputs"]["values"] if isinstance(v, list) and len(v) == 6})
        return found

    got, want = traces["scopes"]
    assert links(got) == links(want)
    got, want = traces["broadcasting"]
    assert ("aten::mul", "aten::sub") in links(got) & links(want)


def test_schemas_of_all_ops_are_pytorchs():
    load_late()
    real = {}
    for schema in theirs._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            real[schema.name + ("." + schema.overload_name if schema.overload_name else "")] = str(schema)
    same, different = 0, []
    for op in OPS.values():
        forms = [Form(op)] + [Form(op, inplace=True)] * op.inplace
        forms += [form._replace(scalar=True) for form in forms] if op.scalar_overload else []
        for form in forms:
            text = schema_text(form)
            if real.get(text[: text.index("(")]) == text:
                same += 1
            else:
                different.append(text)
    assert same / (same + len(different)) > 0.98, different


def signature(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def test_the_public_face_is_the_same():
    got, want = ours.profiler.ExecutionTraceObserver, theirs.profiler.ExecutionTraceObserver
    names = [name for name in vars(want) if not name.startswith("_")]
    for name in names:
        mine, real = inspect.getattr_static(got, name), inspect.getattr_static(want, name)
        assert type(mine) is type(real), name
        if not isinstance(real, property):
            assert signature(getattr(got, name)) == signature(getattr(want, name)), name
    assert signature(got) == signature(want)


def test_schedules_record_the_same_steps(tmp_path):
    def steps(torch: Any, path: Any) -> list[str]:
        observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
        plan = torch.profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan,
                                    execution_trace_observer=observer) as prof:
            for i in range(9):
                with torch.profiler.record_function(f"## LOOP {i} ##"):
                    torch.ones(1)
                prof.step()
        trace = Trace(path)
        return [" < ".join(trace.chain(n)) for n in outer(trace)]

    assert steps(ours, tmp_path / "a.json") == steps(theirs, tmp_path / "b.json")


def test_values_of_scopes(tmp_path):
    def program(torch: Any, record_function: Any) -> Any:
        u = torch.ones(2, 3)

        def run() -> None:
            scope = torch.autograd._record_function_with_args_enter(
                "## VALUES ##", 1, False, 2.5, [u, u], (u, 2, "s"), 'quo"te\n', float("inf"), float("-inf"),
                float("nan"), None, torch.float32, torch.device("cpu"), [1.5], u.t()[1:])
            torch.autograd._record_function_with_args_exit(scope)
            with record_function("## TEXT ##", "1, 2, 3"):
                pass

        return run

    got, want = (record(torch, program, tmp_path / f"{name}.json") for torch, name in ((ours, "a"), (theirs, "b")))
    for name in ("## VALUES ##", "## TEXT ##"):
        mine, real = (next(n for n in trace.nodes if n["name"] == name) for trace in (got, want))
        assert described(mine["inputs"]) == described(real["inputs"])


def test_element_types(tmp_path):
    def program(torch: Any, record_function: Any) -> Any:
        tensors = [torch.zeros(2, dtype=getattr(torch, name)) for name in (
            "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
            "complex64", "complex128")]

        def run() -> None:
            for tensor in tensors:
                tensor.clone()
                torch.empty(3, dtype=tensor.dtype)

        return run

    got, want = (record(torch, program, tmp_path / f"{name}.json") for torch, name in ((ours, "a"), (theirs, "b")))
    pairs = list(zip(outer(got), outer(want), strict=True))
    assert len(pairs) == 26
    for mine, real in pairs:
        assert described(mine["inputs"]) == described(real["inputs"])
        assert described(mine["outputs"]) == described(real["outputs"])


def test_single_numbers_stand_for_lists(tmp_path):
    """`max_pool2d(x, 2)` gets `[2, 2]`, and a profile shows that."""
    def program(torch: Any, record_function: Any) -> Any:
        f, x, weight = torch.nn.functional, torch.ones(1, 2, 8, 8), torch.ones(2, 2, 3, 3)

        def run() -> None:
            f.max_pool2d(x, 2)
            f.avg_pool2d(x, 2, 1)
            f.conv2d(x, weight, padding=1)
            x.sum(1)
            x.amax(0)
            x.roll(1, 0)

        return run

    def shown(torch: Any) -> list[Any]:
        run = program(torch, None)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
            run()
        return [(e.name, e.concrete_inputs) for e in prof.events() if e.cpu_parent is None and e.concrete_inputs]

    got, want = (record(torch, program, tmp_path / f"{name}.json") for torch, name in ((ours, "a"), (theirs, "b")))
    for mine, real in zip(outer(got), outer(want), strict=True):
        assert described(mine["inputs"]) == described(real["inputs"]), mine["name"]
    assert shown(ours) == shown(theirs)


def test_a_conversion_is_undone_inside_its_backward_function(tmp_path):
    def program(torch: Any, record_function: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        return lambda: x.double().sum().backward()

    def chains(trace: Trace) -> list[list[str]]:
        return [trace.chain(node)[:2] for node in trace.nodes if node["name"] == "aten::to"]

    got, want = (record(torch, program, tmp_path / f"{name}.json") for torch, name in ((ours, "a"), (theirs, "b")))
    assert chains(got) == chains(want)
    assert ["aten::to", "ToCopyBackward0"] in chains(got)
