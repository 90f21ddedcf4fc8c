"""Event trees from traces made by hand, and what a recording's tree looks like."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as mt
from mindtorch_v2._C._profiler import _EventType, _ExtraFields_PyCall, _RecordFunctionFast, _TensorMetadata
from mtprof.builder import TraceBuilder, joined
from mtprof.schema import TABLES, Kind
from mtprof.store import kineto
from mtprof.trace import TensorInput, ThreadInfo, Trace
from mtprof.views.event_tree import event_trees


def everything(roots: list[Any]) -> Iterator[Any]:
    for event in roots:
        yield event
        yield from everything(event.children)


def outline(roots: list[Any]) -> list[Any]:
    return [(event.name, outline(event.children)) if event.children else event.name for event in roots]


def builder() -> tuple[TraceBuilder, int]:
    build = TraceBuilder()
    return build, build.thread(ThreadInfo(pid=1, tid=7))


def test_ops_scopes_calls_and_memory_are_one_tree() -> None:
    build, main = builder()
    build.add(name="a.py(1): f", kind=Kind.PYTHON, start_ns=0, end_ns=100, thread=main)
    build.add(name="mine", kind=Kind.SCOPE, start_ns=10, end_ns=90, thread=main)
    build.add(name="b.py(2): g", kind=Kind.PYTHON, start_ns=20, end_ns=60, thread=main)
    build.add(name="aten::add", kind=Kind.OP, start_ns=30, end_ns=50, thread=main)
    build.add_row("memory", time_ns=40, thread=main, size_bytes=8, address=1, total_bytes=8)
    build.add_row("memory", time_ns=55, thread=main, size_bytes=-8, address=1, total_bytes=0)
    build.add_row("memory", time_ns=110, thread=main, size_bytes=16, address=1, total_bytes=16)
    roots = event_trees(build.finish(epoch_ns=1000))
    assert outline(roots) == [
        ("a.py(1): f", [("mine", [("b.py(2): g", [("aten::add", ["[memory]"]), "[memory]"])])]), "[memory]"]
    taken, given_back, other = (event.extra_fields for event in everything(roots)
                                if event.tag is _EventType.Allocation)
    assert (taken.alloc_size, taken.total_allocated, taken.ptr) == (8, 8, 1)
    assert given_back.alloc_size == -8
    assert (taken.id, taken.allocation_id) == (None, None), "nobody knows what ops were given"
    assert other.ptr == taken.ptr
    assert roots[0].start_time_ns == 1000
    assert roots[0].start_tid == 7


def test_threads_have_their_own_trees() -> None:
    build, main = builder()
    aside = build.thread(ThreadInfo(pid=1, tid=8))
    build.add(name="outer", kind=Kind.SCOPE, start_ns=0, end_ns=100, thread=main)
    build.add(name="aten::mul", kind=Kind.OP, start_ns=10, end_ns=20, thread=aside)
    roots = event_trees(build.finish())
    assert [(event.name, event.start_tid) for event in roots] == [("outer", 7), ("aten::mul", 8)]


def test_kinds() -> None:
    build, main = builder()
    for number, (name, kind) in enumerate([("aten::add", Kind.OP), ("a.py(1): f", Kind.PYTHON),
                                           ("<built-in function len>", Kind.PYTHON), ("nn.Module: Net_0", Kind.MODULE),
                                           ("Python GC", Kind.GC), ("mine", Kind.SCOPE)]):
        build.add(name=name, kind=kind, start_ns=10 * number, end_ns=10 * number + 5, thread=main)
    tags = [event.tag.name for event in event_trees(build.finish())]
    assert tags == ["TorchOp", "PyCall", "PyCCall", "PyCall", "Kineto", "TorchOp"]
    assert str(_EventType.TorchOp) == "_EventType.TorchOp"


def test_arguments_without_memory_have_no_identity() -> None:
    build, main = builder()
    build.add(name="aten::cat", kind=Kind.OP, start_ns=0, end_ns=1, thread=main,
              inputs=([TensorInput((2,), "int64", (1,))] * 2, 0, "text", [1, 2]))
    event, = event_trees(build.finish())
    tensors, dim, text, numbers = event.extra_fields.inputs
    assert [type(tensor) for tensor in tensors] == [_TensorMetadata] * 2
    assert (tensors[0].sizes, tensors[0].dtype, tensors[0].layout) == ([2], "int64", "strided")
    assert tensors[0].id is tensors[0].allocation_id is tensors[0].storage_data_ptr is None
    assert (dim, text, numbers) == (0, None, None)


def test_frames() -> None:
    build, main = builder()
    build.add(name="pkg/a.py(12): f", kind=Kind.PYTHON, start_ns=0, end_ns=10, thread=main)
    build.add(name="nn.Module: Linear_3", kind=Kind.MODULE, start_ns=2, end_ns=8, thread=main)
    outer, = event_trees(build.finish())
    module, = outer.children
    assert isinstance(module.extra_fields, _ExtraFields_PyCall)
    frame = module.extra_fields.caller
    assert (frame.file_name, frame.line_number, frame.function_name) == ("pkg/a.py", 12, "f")
    assert module.extra_fields.module.cls_name == "Linear"
    with pytest.raises(NotImplementedError, match="parameters of Linear_3"):
        module.extra_fields.module.parameters  # noqa: B018


def test_empty_trace_and_file(tmp_path: Path) -> None:
    assert event_trees(TraceBuilder().finish()) == []
    with mt.profiler.profile(record_shapes=True, profile_memory=True) as prof:
        mt.ones(2) + 1
    prof.export_chrome_trace(tmp_path / "trace.json")
    own = prof.profiler.kineto_results.experimental_event_tree()
    assert outline(event_trees(kineto.read(tmp_path / "trace.json"))) == outline(own)


def test_results_belong_to_a_finished_recording() -> None:
    prof = mt.profiler.profile()
    with prof:
        assert prof.profiler.kineto_results is None
        mt.ones(2)
    result = prof.profiler.kineto_results
    assert result is prof.profiler.kineto_results
    root, = result.experimental_event_tree()
    assert root.name == "aten::ones"


def test_a_recording_has_dtypes_and_devices() -> None:
    x = mt.ones(2, dtype=mt.int64)
    with mt.profiler.profile(record_shapes=True, profile_memory=True) as prof:
        mt.neg(x)
    root, released = prof.profiler.kineto_results.experimental_event_tree()
    tensor, = root.extra_fields.inputs
    assert (tensor.dtype, tensor.device, tensor.layout) == (mt.int64, mt.device("cpu"), mt.strided)
    taken, given_back = root.children[0].extra_fields, released.extra_fields
    assert taken.device == mt.device("cpu")
    assert (taken.alloc_size, given_back.alloc_size) == (16, -16)


def test_recording_by_hand() -> None:
    from mindtorch_v2._C import _autograd, _profiler

    config = _profiler.ProfilerConfig(_profiler.ProfilerState.KINETO, True, False, False, False, False)
    assert not _autograd._profiler_enabled()
    _autograd._prepare_profiler(config, {_profiler.ProfilerActivity.CPU})
    _autograd._enable_profiler(config, {_profiler.ProfilerActivity.CPU})
    assert _autograd._profiler_type() is _profiler.ActiveProfilerType.KINETO
    mt.add(mt.ones(2), 1)
    result = _autograd._disable_profiler()
    assert _autograd._profiler_type() is _profiler.ActiveProfilerType.NONE
    assert [event.shapes() for event in result.events() if event.name() == "aten::add"] == [[[2], [], []]]
    with pytest.raises(RuntimeError, match="not running"):
        _autograd._disable_profiler()


def test_values_by_name_travel() -> None:
    scope = _RecordFunctionFast("kernel", [mt.ones(2), 3], {"stream": 7, "names": ["a", "b"], "sizes": [1, 2]})
    with mt.profiler.profile(record_shapes=True) as prof, scope:
        pass
    trace = pickle.loads(pickle.dumps(prof.trace))
    given, = (given for given in trace.inputs if len(given) == 2)
    assert given.named == {"stream": 7, "names": ["a", "b"], "sizes": [1, 2]}
    assert given[1] == 3


def test_files_with_values_by_name_can_be_read(tmp_path: Path) -> None:
    with mt.profiler.profile(record_shapes=True) as prof, _RecordFunctionFast("kernel", (), {"stream": 7, "a": "x"}):
        mt.ones(2)
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert '"stream":7' in (tmp_path / "trace.json").read_text()
    own = prof.profiler.kineto_results.experimental_event_tree()
    assert outline(event_trees(kineto.read(tmp_path / "trace.json"))) == outline(own)


def test_a_fast_scope_says_what_it_takes() -> None:
    wrong: list[tuple[Any, ...]] = [(5,), ("name", 5), ("name", [1], [2])]
    for arguments in wrong:
        with pytest.raises(TypeError):
            _RecordFunctionFast(*arguments)
    with (mt.profiler.profile(record_shapes=True) as prof, pytest.warns(UserWarning, match="for keyword: odd"),
          _RecordFunctionFast("name", [], {"odd": object()})):
        pass
    assert prof.events()[0].kwinputs == {"odd": "NULL"}


def test_what_modules_and_optimizers_held() -> None:
    """Parameters by name if a recorder noted them; their memory if it was seen."""
    model = mt.nn.Linear(2, 1)
    with mt.profiler.profile(with_stack=True, profile_memory=True, record_shapes=True) as prof:
        model(mt.ones(1, 2))

    def fields(**tables: dict[str, list[int]] | None) -> Any:
        events = everything(event_trees(with_rows(prof.trace, **tables)))
        return next(event for event in events if event.name == "nn.Module: Linear_0").extra_fields

    seen, end = prof.trace.roles["address"].item(0), prof.trace.end_ns
    linear, bias = prof.trace.names.index("Linear_0"), prof.trace.names.index("bias")
    weight = prof.trace.names.index("weight")
    shapes = [prof.trace.inputs.index((TensorInput(*shape),))
              for shape in (((1, 2), "float32", (2, 1)), ((1,), "float32", (1,)))]
    module = {"holder": [0, 0, 0], "parameter": [0, 1, 1], "role": [1, 1, 2], "name": [weight, bias, 0],
              "description": [shapes[0], shapes[1], shapes[0]], "address": [seen, 12, seen], "tensor": [1, 2, 3]}
    (name, parameter, gradient), (second, other, of_other) = fields(
        holders={"time_ns": [end], "label": [linear], "optimizer": [0]}, held=module).module.parameters
    assert (name, parameter.sizes, parameter.storage_data_ptr, gradient) == ("weight", [1, 2], seen, None)
    assert parameter.id is not None
    assert parameter.id == of_other.id
    assert (second, other.id, other.storage_data_ptr) == ("bias", None, 12)
    nothing = fields(holders={"time_ns": []}, held={"holder": []}, optimizer_steps={"time_ns": []})
    assert nothing.module.parameters == []
    assert nothing.optimizer is None
    with pytest.raises(NotImplementedError, match="Linear_0"):
        _ = fields(holders=None, held=None, optimizer_steps=None).module.parameters


def with_rows(trace: Trace, **tables: dict[str, list[int]] | None) -> Trace:
    """The trace with tables of these rows in place of its own, or without them."""
    kept = {name: table for name, table in trace.tables.items() if name not in tables}
    given = {name: joined(TABLES[name], [{key: np.array(value) for key, value in rows.items()}])
             for name, rows in tables.items() if rows is not None}
    return replace(trace, tables={**kept, **given})


def test_whose_step_a_call_is() -> None:
    build, main = builder()
    build.add(name="train.py(1): train", kind=Kind.PYTHON, start_ns=0, end_ns=100, thread=main)
    for start in (10, 30):
        build.add(name="torch/optim/optimizer.py(3): _optimizer_step_code", kind=Kind.PYTHON, start_ns=start,
                  end_ns=start + 10, thread=main)
    weight = build.input((TensorInput((2,), "float32", (1,)),))
    trace = with_rows(
        build.finish(), holders={"time_ns": [15], "optimizer": [5]},
        held={"holder": [0, 0], "role": [1, 3], "name": [0, build.name("momentum_buffer")], "description": [weight] * 2,
              "address": [11, 12]},
        optimizer_steps={"time_ns": [15, 35, 50], "holder": [0, 0, 0]})
    outer, *steps = everything(event_trees(trace))
    assert outer.extra_fields.optimizer is None
    for step in steps:
        info = step.extra_fields.optimizer
        (parameter, gradient, ((name, value),)), = info.parameters
        assert (info.self_ptr, parameter.storage_data_ptr, gradient) == (5, 11, None)
        assert (name, value.storage_data_ptr) == ("momentum_buffer", 12)
