"""Events made by hand, and events that PyTorch recorded, give the same rows, tables and reprs on both sides."""

from __future__ import annotations

import copy
import inspect
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mindtorch_v2.autograd import profiler_util as ours
from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.tables.check import check
from mtprof.trace import TensorInput, ThreadInfo, Trace
from mtprof.views.averages import averages_of
from mtprof.views.trace_events import events_of

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
theirs = pytest.importorskip("torch.autograd.profiler_util", reason="the oracle, torch==2.13.0, is not installed")

AVERAGE_FIELDS = (
    "key", "count", "node_id", "is_async", "is_remote", "use_device", "cpu_time_total", "device_time_total",
    "self_cpu_time_total", "self_device_time_total", "input_shapes", "overload_name", "stack", "scope",
    "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "is_legacy",
    "flops", "is_user_annotation", "cpu_time", "device_time", "cpu_time_str", "self_cpu_time_total_str",
)


def event(name: str, start: float, end: float, **more: Any) -> dict[str, Any]:
    """Arguments of a FunctionEvent; `kernels` lists what it launched."""
    fields: dict[str, Any] = {"overload_name": "", "input_shapes": [], "stack": [], "flops": 0}
    return {**fields, "name": name, "start_us": start, "end_us": end, "thread": 1, **more}


LONG = "autograd::engine::evaluate_function: " + "Convolution" * 3 + "Backward0"
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "nested": ([
        event("outer", 0.0, 1000.5, is_user_annotation=True, scope=7),
        event("aten::linear", 10.0, 500.25), event("aten::t", 20.0, 30.0), event("aten::addmm", 40.0, 400.0),
        event("aten::t", 600.0, 610.0), event("aten::add", 2000.0, 2_500_000.0),
    ], {}),
    "threads": ([
        event("a", 0.0, 100.0), event("b", 10.0, 60.0, thread=2), event("c", 20.0, 40.0, thread=2),
        event("c", 20.0, 40.0), event("later", 50.0, 120.0),
    ], {}),
    "repeated parents are dropped": ([
        event("a", 0.0, 100.0), event("a", 10.0, 90.0), event("a", 20.0, 80.0), event("b", 30.0, 40.0),
        event("b", 50.0, 60.0), event("b", 51.0, 59.0), event("a", 62.0, 70.0),
    ], {}),
    "recursion": ([event("f", 0.0, 100.0), event("f", 10.0, 50.0), event("g", 60.0, 70.0), event("f", 62.0, 66.0)], {}),
    "shapes": ([
        event("aten::mm", 0.0, 10.0, input_shapes=[[2, 3], [3, 4]]),
        event("aten::mm", 20.0, 25.0, input_shapes=[[20, 30], [30, 40]] * 6),
        event("aten::mm", 30.0, 37.5, input_shapes=[[2, 3], [3, 4]]), event("aten::relu", 40.0, 41.0),
    ], {}),
    "overloads": ([
        event("aten::add", 0.0, 10.0, overload_name="Tensor"), event("aten::add", 20.0, 23.0, overload_name="out"),
        event("aten::add", 30.0, 31.0, overload_name="Tensor"), event("x", 40.0, 41.0),
    ], {}),
    "memory": ([
        event("aten::empty", 0.0, 10.0, cpu_memory_usage=512), event("aten::big", 20.0, 40.0, cpu_memory_usage=5 << 20),
        event("aten::inner", 25.0, 30.0, cpu_memory_usage=3 << 30),
        event("[memory]", 50.0, 50.0, cpu_memory_usage=-2048, trace_name=None, flops=None),
    ], {"profile_memory": True}),
    "flops": ([
        event("aten::mm", 0.0, 10.0, flops=48), event("aten::addmm", 20.0, 25.0, flops=2_000_000),
        event("aten::relu", 30.0, 31.0),
    ], {"with_flops": True}),
    "large flops": ([event("aten::mm", 0.0, 10.0, flops=5 * 10**13), event("x", 11.0, 12.0)], {"with_flops": True}),
    "no flops": ([event("aten::relu", 30.0, 31.0)], {"with_flops": True}),
    "stacks": ([
        event("aten::mm", 0.0, 10.0, stack=["/home/user/model.py(12): forward", "/home/user/train.py(3): main"]),
        event("aten::mm", 20.0, 25.0, stack=["/very/long" * 12 + "/model.py(13): forward"]),
        event("aten::relu", 30.0, 31.0),
    ], {}),
    "stacks and flops": ([
        event("aten::mm", 0.0, 10.0, flops=48, stack=["model.py(12): forward", "train.py(3): main"]),
        event("aten::relu", 30.0, 31.0, input_shapes=[[4]]),
    ], {"with_flops": True}),
    "backward": ([
        event("aten::mm", 0.0, 10.0, sequence_nr=3, stack=["model.py(12): forward"], fwd_thread=0),
        event("evaluate_function: MmBackward0", 20.0, 60.0, sequence_nr=3, thread=2, fwd_thread=1),
        event("MmBackward0", 22.0, 50.0, sequence_nr=3, thread=2, fwd_thread=1, scope=1),
        event("aten::mm", 25.0, 35.0, thread=2, fwd_thread=0), event("aten::mm", 36.0, 46.0, thread=2, fwd_thread=0),
        event("OtherBackward0", 70.0, 80.0, sequence_nr=9, thread=2, fwd_thread=1, scope=1, stack=["gone"]),
    ], {}),
    "device": ([
        event("aten::mm", 0.0, 100.0, kernels=[("gemm", 0, 70.0)]),
        event("cudaLaunchKernel", 10.0, 20.0), event("gemm", 30.0, 100.0, device="CUDA", thread=7),
        event("aten::relu", 200.0, 260.0), event("aten::clamp", 210.0, 250.0, kernels=[("relu", 0, 3.5)]),
        event("relu", 220.0, 223.5, device="CUDA", thread=7),
        event("mine", 30.0, 223.5, device="CUDA", thread=7, is_user_annotation=True),
    ], {"use_device": "cuda"}),
    "device memory": ([
        event("aten::empty", 0.0, 100.0, device_memory_usage=4096, cpu_memory_usage=8),
        event("aten::inner", 10.0, 20.0, device_memory_usage=1024, kernels=[("k", 0, 2.0)]),
        event("k", 30.0, 32.0, device="PrivateUse1"),
    ], {"use_device": "privateuse1", "profile_memory": True}),
    "legacy": ([event("a", 0.0, 10.0, is_legacy=True, kernels=[("a", 0, 4.0)]), event("b", 2.0, 3.0)],
               {"use_device": "cuda"}),
    "nodes": ([event("a", 0.0, 10.0, node_id=0), event("a", 1.0, 5.0, node_id=1), event("b", 2.0, 3.0, node_id=1)], {}),
    "async": ([event("a", 0.0, 10.0), event("rpc", 1.0, 5.0, is_async=True), event("b", 2.0, 3.0)], {}),
    "long names": ([event(LONG, 0.0, 10.0), event("b" * 52, 11.0, 12.0), event("c" * 51, 13.0, 14.0)], {}),
    "no time": ([event("a", 5.0, 5.0), event("b", 6.0, 6.0)], {}),
}


def build(module: Any, device_types: Any, specs: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """The list of some events with the classes of one side."""
    events = []
    for number, spec in enumerate(copy.deepcopy(specs), start=1):
        kernels = spec.pop("kernels", [])
        spec["device_type"] = getattr(device_types, spec.pop("device", "CPU"))
        made = module.FunctionEvent(id=number, use_device=options.get("use_device"), **spec)
        for kernel in kernels:
            made.append_kernel(*kernel)
        events.append(made)
    result = module.EventList(events, **options)
    result._build_tree()
    return result


@pytest.fixture(params=CASES)
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    case = CASES[request.param]
    return build(ours, ours.DeviceType, *case), build(theirs, torch.autograd.DeviceType, *case)


def without_footer(table: str) -> str:
    """Our table up to the line that PyTorch does not have."""
    *lines, footer = table.splitlines(keepends=True)
    assert footer.startswith("Total: ")
    return "".join(lines)


def same_text(mine: str, reference: str) -> bool:
    """Whether our table has PyTorch's text.

    With both stacks and FLOPs PyTorch puts either value under the other's title; there cells are compared.
    """
    mine = without_footer(mine)
    if not ("Source Location" in reference and "FLOPs" in reference):
        return mine == reference
    rule = next(line for line in reference.splitlines() if line.startswith("---") and "  -" in line)
    flops_at = rule.rstrip().rindex("  ") + 2
    source_at = rule.rstrip().rindex("  ", 0, flops_at - 2) + 2

    def cells(table: str, swapped: bool) -> list[tuple[str, ...]]:
        rows, rules = [], 0
        for line in table.splitlines():
            rules += line == rule
            last = (line[source_at:flops_at].strip(), line[flops_at:].strip())
            inside = swapped and rules == 2 and line != rule  # a row, neither title nor what stands around the table
            rows.append((line[:source_at].rstrip(), *(last[::-1] if inside else last)))
        return rows

    return cells(mine, False) == cells(reference, True)


TABLES: dict[str, dict[str, Any]] = {
    "plain": {},
    **{f"by {key}": {"sort_by": key} for key in (
        "self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "cpu_memory_usage", "self_cuda_time_total",
        "cuda_time_total", "self_xpu_memory_usage", "key")},
    "few rows": {"row_limit": 2, "sort_by": "cpu_time_total"},
    "all rows": {"row_limit": -1},
    "narrow": {"max_name_column_width": 12, "max_src_column_width": 20, "max_shapes_column_width": 15},
    "wide": {"max_name_column_width": None, "max_src_column_width": None, "max_shapes_column_width": None},
    "header": {"header": "a header"},
    "top level": {"top_level_events_only": True},
    **{f"in {unit}": {"time_unit": unit} for unit in ("s", "ms", "us", "minutes")},
}


@pytest.mark.parametrize("arguments", TABLES.values(), ids=list(TABLES))
def test_tables_have_the_same_text(both: tuple[Any, Any], arguments: dict[str, Any]) -> None:
    mine, reference = both
    assert same_text(mine.table(**arguments), reference.table(**arguments))


GROUPINGS = ({}, {"group_by_input_shapes": True}, {"group_by_stack_n": 1}, {"group_by_stack_n": 5},
             {"group_by_overload_name": True},
             {"group_by_input_shapes": True, "group_by_stack_n": 2, "group_by_overload_name": True})


@pytest.mark.parametrize("grouping", GROUPINGS, ids=str)
def test_averages_have_the_same_rows_and_tables(both: tuple[Any, Any], grouping: dict[str, Any]) -> None:
    mine, reference = (events.key_averages(**grouping) for events in both)
    assert [facts(row) for row in mine] == [facts(row) for row in reference]
    assert [repr(row) for row in mine] == [repr(row) for row in reference]
    for sort_by in (None, "self_cpu_time_total", "count"):
        assert same_text(mine.table(sort_by=sort_by), reference.table(sort_by=sort_by))


def facts(row: Any) -> dict[str, Any]:
    return {field: getattr(row, field) for field in AVERAGE_FIELDS} | {"device_type": str(row.device_type)}


@st.composite
def any_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events in any order: nested, crossing, empty, on several threads, nodes and devices."""
    times = st.integers(0, 400).map(lambda quarter: quarter / 4)  # sums of these are exact
    specs = []
    for _ in range(draw(st.integers(1, 12))):
        start, end = sorted((draw(times), draw(times)))
        device = draw(st.sampled_from(["CPU", "CPU", "CPU", "CUDA"]))
        launched = draw(st.sampled_from([[], [], [("kernel", 0, 2.5)]])) if device == "CPU" else []
        # One node per thread: where nodes take turns on one thread number, PyTorch loses parents between the turns.
        thread, node = draw(st.sampled_from([(1, -1), (2, -1), (3, 0)]))
        specs.append(event(
            draw(st.sampled_from(["a", "b", "c" * 60])), start, end, thread=thread, device=device,
            kernels=launched, node_id=node, scope=draw(st.sampled_from([0, 1, 7])),
            fwd_thread=draw(st.integers(0, 2)), sequence_nr=draw(st.integers(-1, 1)), is_async=draw(st.booleans()),
            is_user_annotation=draw(st.booleans()), overload_name=draw(st.sampled_from(["", "out"])),
            input_shapes=draw(st.sampled_from([[], [[2, 3]]])), flops=draw(st.integers(0, 10**7)),
            stack=draw(st.sampled_from([[], ["f.py(1): f"], ["f.py(1): f", "g.py(2): g"]])),
            cpu_memory_usage=draw(st.integers(-5000, 5000)), device_memory_usage=draw(st.integers(-9, 9))))
    return [*specs, event("kernel", 500.0, 501.0, device="CUDA"), event("last", 600.0, 700.0)]


@settings(max_examples=200, deadline=None)
@given(specs=any_events(), memory=st.booleans(), flops=st.booleans(), grouping=st.sampled_from(GROUPINGS),
       arguments=st.sampled_from(list(TABLES.values())))
def test_any_events_give_the_same_rows_and_text(
        specs: list[dict[str, Any]], memory: bool, flops: bool, grouping: dict[str, Any],
        arguments: dict[str, Any]) -> None:
    options = {"use_device": "cuda", "profile_memory": memory, "with_flops": flops}
    mine = build(ours, ours.DeviceType, specs, options)
    reference = build(theirs, torch.autograd.DeviceType, specs, options)
    assert repr(mine) == repr(reference)
    # Where children overlap, PyTorch's self times go below zero and ours stop there.
    assume(all(e.self_cpu_time_total >= 0 and e.self_device_time_total >= 0 for e in reference))
    assert same_text(mine.table(**arguments), reference.table(**arguments))
    mine, reference = mine.key_averages(**grouping), reference.key_averages(**grouping)
    assert [facts(row) for row in mine] == [facts(row) for row in reference]
    assert same_text(mine.table(**arguments), reference.table(**arguments))


def test_events_have_the_same_repr_tree_and_values(both: tuple[Any, Any]) -> None:
    mine, reference = both
    assert [repr(event) for event in mine] == [repr(event) for event in reference]
    assert repr(mine) == repr(reference)
    for own, other in zip(mine, reference, strict=True):
        assert set(vars(own)) == set(vars(other))
        assert getattr(own.cpu_parent, "id", None) == getattr(other.cpu_parent, "id", None)
        assert own.stack == other.stack
        for field in ("self_cpu_time_total", "self_device_time_total", "self_cpu_memory_usage", "device_time_total",
                      "self_device_memory_usage", "device_resource_id", "cpu_time_str", "device_time_total_str"):
            assert getattr(own, field) == getattr(other, field), field


def test_total_average_is_the_same(both: tuple[Any, Any]) -> None:
    mine, reference = (events.total_average() for events in both)
    assert facts(mine) == facts(reference)
    assert repr(mine) == repr(reference)
    assert both[0].self_cpu_time_total == both[1].self_cpu_time_total


@pytest.mark.parametrize("sort_by", ["nonsense", "cuda_nonsense", "cpu_parent", "is_nothing"])
def test_bad_sort_keys_fail_alike(both: tuple[Any, Any], sort_by: str) -> None:
    outcomes = []
    for events in both:
        for rows in (events, events.key_averages()):
            with_error = None
            try:
                rows.table(sort_by=sort_by)
            except (AttributeError, TypeError) as error:
                with_error = type(error)
                # Ours says besides what rows can be sorted by.
                message = str(error).partition(". Rows can")[0] if with_error is AttributeError else None
                with_error = (with_error, message)
            outcomes.append(with_error)
    assert outcomes[:2] == outcomes[2:]
    assert sort_by == "cpu_parent" or outcomes[0] is not None


def test_device_times_without_a_device_fail_alike() -> None:
    for module, kinds in ((ours, ours.DeviceType), (theirs, torch.autograd.DeviceType)):
        events = [module.FunctionEvent(1, "a", 1, 0, 2), module.FunctionEvent(2, "k", 1, 0, 2, use_device="cuda",
                                                                             device_type=kinds.CUDA)]
        with pytest.raises(RuntimeError, match="use_device is None, but there is device performance data"):
            module.EventList(events).table()


def test_errors_of_hand_made_trees_are_the_same() -> None:
    messages: dict[str, list[str]] = {"ours": [], "theirs": []}
    for side, module, kinds in (("ours", ours, ours.DeviceType), ("theirs", theirs, torch.autograd.DeviceType)):
        host = module.FunctionEvent(1, "a", 1, 0, 2)
        kernel = module.FunctionEvent(2, "k", 1, 0, 2, use_device="x", device_type=kinds.CUDA)
        odd = module.FunctionEvent(2, "k", 1, 0, 2, use_device="x", device_type=kinds.Meta)
        row = module.FunctionEventAvg().add(host)
        for attempt in (
            lambda k=kernel: k.append_kernel("x", 0, 1), lambda h=host, k=kernel: h.append_cpu_child(k),
            lambda h=host: h.append_cpu_child(1), lambda h=host, k=kernel: h.set_cpu_parent(k),
            lambda h=host: h.set_cpu_parent(None), lambda k=kernel, h=host: k.set_cpu_parent(h),
            lambda o=odd: o.device_time_total, lambda r=row, k=kernel: r.add(k),
            lambda m=module: m.EventList([]).key_averages(), lambda m=module: m._format_time_share(1, 0),
        ):
            with pytest.raises(AssertionError) as caught:
                attempt()
            messages[side].append(str(caught.value))
    assert messages["ours"] == messages["theirs"]


def test_constructor_is_the_same() -> None:
    def described(function: Any) -> list[tuple[str, str]]:
        return [(name, str(p.default)) for name, p in inspect.signature(function).parameters.items()]

    assert described(ours.FunctionEvent) == described(theirs.FunctionEvent)
    assert described(ours.EventList.table) == described(theirs.EventList.table)
    assert described(ours.EventList.key_averages) == described(theirs.EventList.key_averages)
    assert described(ours._build_table)[1:11] == described(theirs._build_table)[1:]
    assert ours.Kernel._fields == theirs.Kernel._fields
    assert ours.EventMetadata._fields == theirs.EventMetadata._fields


def test_all_public_names_are_there() -> None:
    defined = {name for name, value in vars(theirs).items() if not name.startswith("__")
               and not inspect.ismodule(value) and getattr(value, "__module__", theirs.__name__) == theirs.__name__}
    assert defined - {"torch"} <= set(vars(ours))
    assert set(theirs.__all__) <= set(ours.__all__)
    for name in ("FunctionEvent", "FunctionEventAvg", "EventList", "FormattedTimesMixin", "Interval"):
        missing = {member for member in dir(getattr(theirs, name)) if not hasattr(getattr(ours, name), member)}
        assert missing - {"__static_attributes__", "__firstlineno__"} == set(), name


def test_device_types_have_the_same_numbers() -> None:
    reference = torch.autograd.DeviceType.__members__
    assert {name: int(member) for name, member in ours.DeviceType.__members__.items()} == {
        name: int(member.value) for name, member in reference.items()}
    for name, member in reference.items():
        assert str(ours.DeviceType[name]) == str(member) == f"{ours.DeviceType[name]}"
        assert repr(ours.DeviceType[name]) == repr(member)


@pytest.mark.parametrize("value", [0, 0.0004, 0.9996, 1, 999.9994, 999.9996, 1000, 999_999.9, 1e6, 1.5e9, -5.0])
def test_times_are_formatted_alike(value: float) -> None:
    assert ours._format_time(value) == theirs._format_time(value)
    assert ours._format_time_share(value, 3.0) == theirs._format_time_share(value, 3.0)


@pytest.mark.parametrize("value", [0, 1, -1, 1023, 1024, -1025, 1 << 20, (1 << 30) - 1, 1 << 30, -(5 << 40)])
def test_sizes_are_formatted_alike(value: int) -> None:
    assert ours._format_memory(value) == theirs._format_memory(value)


@pytest.mark.parametrize("name", [
    "aten::add", "ProfilerStep#12", "t", "[memory]", "aten::is_leaf", "_Z3fooi", "_ZN2at6native4reluEv", "_Znonsense",
    "profiler::_record_function_exit", "torch/autograd/__init__.py(3): backward", "torch/tensor.py(1): backward", "",
])
def test_names_are_rewritten_and_filtered_alike(name: str) -> None:
    for wildcard in (False, True):
        assert ours._rewrite_name(name, wildcard) == theirs._rewrite_name(name, wildcard)
    assert ours._filter_name(name) == theirs._filter_name(name)
    assert ours._filter_stack_entry(name) == theirs._filter_stack_entry(name)


def test_memory_records_are_found_alike() -> None:
    records = [[SimpleNamespace(start_ns=lambda t=time: t), time] for time in (5, 1, 9, 5, 3)]
    for interval in ((1, 5), (2, 4), (5, 5), (6, 8), (0, 100)):
        found = [[r[1] for r in module.MemRecordsAcc(records).in_interval(*interval)] for module in (ours, theirs)]
        assert found[0] == found[1]


def test_metadata_is_read_alike() -> None:
    extra = {"grid": "[1, 2, 3]", "stream": "7", "dtype": '"Float"', "Is asynchronized op": "true",
             "blocks per SM": "0.5", "bytes": "12", "unknown": "x"}
    assert tuple(ours._build_metadata(extra)) == tuple(theirs._build_metadata(extra))
    assert ours._build_metadata({"unknown": "x"}) is theirs._build_metadata({"unknown": "x"}) is None
    assert {k: v[0] for k, v in ours._EVENT_METADATA_KEYS.items()} == {
        k: v[0] for k, v in theirs._EVENT_METADATA_KEYS.items()}


def test_canonical_events_are_written_alike() -> None:
    events = [
        {"name": "b" * 40, "ts": 2, "args": {"node_name": "n", "stack_trace": "f.py\n  y = x + 1\n   ^^^~~\n"}},
        {"name": "a", "ts": 1, "args": {}},
    ]
    assert ours._canonicalize_profiler_events(events) == theirs._canonicalize_profiler_events(events)


@pytest.mark.parametrize("name", ["cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage",
                                  "metadata_json"])
def test_deprecated_names_warn_alike(name: str) -> None:
    messages = []
    for module in (ours, theirs):
        with pytest.warns(FutureWarning) as caught:
            getattr(module.FunctionEvent(1, "a", 1, 0, 1), name)
        messages.append([str(warning.message) for warning in caught])
    assert messages[0] == messages[1]


# What PyTorch itself recorded, given to both sides.

FORWARD_KINDS = {"user_annotation": Kind.SCOPE, "cpu_op": Kind.OP}


def trace_of(profile: Any) -> Trace:
    """PyTorch's raw recording as a trace."""
    result = profile.profiler.kineto_results
    build = TraceBuilder()
    threads: dict[int, int] = {}
    for raw in result.events():
        thread = threads.get(raw.start_thread_id())
        if thread is None:
            info = ThreadInfo(raw.device_index(), raw.device_resource_id(), name=str(raw.start_thread_id()))
            thread = threads[raw.start_thread_id()] = build.thread(info)
        if raw.name() == ours.MEMORY_EVENT_NAME:
            build.add_row("memory", time_ns=raw.start_ns(), thread=thread, size_bytes=raw.nbytes())
            continue
        kind = FORWARD_KINDS[raw.activity_type()]
        if raw.name().startswith("autograd::engine::evaluate_function"):
            kind = Kind.BACKWARD
        elif raw.scope() == 1:
            kind = Kind.BACKWARD_FUNCTION
        names = {"float": "float32", "double": "float64", "long int": "int64", "bool": "bool"}
        inputs = tuple(
            [TensorInput(tuple(s), "float32", tuple(t)) for s, t in zip(shape, strides, strict=True)]
            if dtype == "TensorList"
            else TensorInput(tuple(shape), names[dtype], tuple(strides)) if dtype in names else value
            for shape, strides, dtype, value in zip(raw.structured_input_shapes(), raw.structured_input_strides(),
                                                    raw.dtypes(), raw.concrete_inputs(), strict=True))
        build.add(name=raw.name(), kind=kind, start_ns=raw.start_ns(), end_ns=raw.end_ns(), thread=thread,
                  sequence=raw.sequence_nr(), inputs=inputs, flops=raw.flops() or -1)
    return check(build.finish(start_ns=result.trace_start_ns()))


@pytest.fixture(scope="module")
def recorded() -> tuple[Any, Trace]:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.randn(5, 8)
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_flops=True) as profile:
        for _ in range(3):
            with torch.profiler.record_function("forward"):
                loss = torch.cat([model(batch), model(batch)]).pow(2).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        kept = torch.empty(100)
        del kept
    return profile, trace_of(profile)


EVENT_FIELDS = (
    "name", "overload_name", "trace_name", "fwd_thread", "input_shapes", "concrete_inputs", "kwinputs", "stack",
    "scope", "use_device", "cpu_memory_usage", "device_memory_usage", "is_async", "is_remote", "sequence_nr",
    "device_index", "device_resource_id", "flops", "is_user_annotation", "is_python_function", "activity_type", "count",
    "self_cpu_percent", "_metadata_json", "flow_id", "flow_type", "flow_start", "event_metadata", "node_id", "kernels",
    "structured_input_shapes", "structured_input_strides", "input_dtypes", "python_id", "python_parent_id",
    "python_module_id", "linked_correlation_id", "id", "external_id", "is_legacy", "thread", "self_cpu_memory_usage",
)


def without_times(table: str) -> str:
    """A table with its times blanked: PyTorch adds up rounded floats, so its last digit may not be the exact one."""
    return re.sub(r" *\b\d+\.\d+(us|ms|s|%)", " time", table)


def test_a_recording_of_pytorch_gives_the_same_events(recorded: tuple[Any, Trace]) -> None:
    profile, trace = recorded
    # Without FLOPs: there PyTorch's table of events fails on a "[memory]" event, whose FLOPs are None.
    mine, reference = events_of(trace, profile_memory=True), theirs.EventList(profile.events(), profile_memory=True)
    assert [e.name for e in mine] == [e.name for e in reference]
    place = {id(e): number for number, e in enumerate(reference)}
    own_place = {id(e): number for number, e in enumerate(mine)}
    # PyTorch counts ids on from earlier recordings of the process.
    earlier = reference[0].id - mine[0].id
    numbers = ("id", "external_id")
    for own, other in zip(mine, reference, strict=True):
        expected = {f: getattr(other, f) for f in EVENT_FIELDS}
        expected.update({f: expected[f] - earlier for f in numbers if expected[f]})
        assert {f: getattr(own, f) for f in EVENT_FIELDS} == expected
        assert (own.time_range.start, own.time_range.end) == (other.time_range.start, other.time_range.end)
        assert own.self_cpu_time_total == pytest.approx(other.self_cpu_time_total, abs=1e-6)
        assert [own_place[id(c)] for c in own.cpu_children] == [place[id(c)] for c in other.cpu_children]
        assert own_place.get(id(own.cpu_parent)) == place.get(id(other.cpu_parent))
        assert set(vars(other)) <= {name for name in dir(own) if name != "__dict__"}
    assert without_times(without_footer(mine.table(row_limit=-1))) == without_times(reference.table(row_limit=-1))


@pytest.mark.parametrize("grouping", [{}, {"group_by_input_shapes": True}], ids=str)
def test_a_recording_of_pytorch_gives_the_same_averages(recorded: tuple[Any, Trace], grouping: dict[str, Any]) -> None:
    profile, trace = recorded
    from_columns = averages_of(trace, profile_memory=True, with_flops=True, **grouping)
    reference = profile.profiler.function_events.key_averages(**grouping)
    times = {"cpu_time_total", "self_cpu_time_total", "cpu_time"}
    as_text = {"cpu_time_str", "self_cpu_time_total_str"}
    assert len(from_columns) == len(reference)
    for own, other in zip(from_columns, reference, strict=True):
        mine, expected = facts(own), facts(other)
        for field in times:
            assert mine.pop(field) == pytest.approx(expected.pop(field), abs=1e-6), field
        assert {f: mine[f] for f in mine.keys() - as_text} == {f: expected[f] for f in expected.keys() - as_text}
        assert [child.name for child in own.cpu_children] == [child.name for child in other.cpu_children]
        assert (own.cpu_parent is None) == (other.cpu_parent is None)
    for sort_by in (None, "cpu_memory_usage", "count"):
        assert without_times(without_footer(from_columns.table(sort_by=sort_by))) == without_times(
            reference.table(sort_by=sort_by))
    # Times that are equal but for rounding may come in either order.
    tables = [rows.table(sort_by="self_cpu_time_total") for rows in (from_columns, reference)]
    lines = [sorted(without_times(text).splitlines()) for text in (without_footer(tables[0]), tables[1])]
    assert lines[0] == lines[1]
