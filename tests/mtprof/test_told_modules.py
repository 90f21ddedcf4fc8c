"""Modules of traces that name their calls only in Python stacks, as PyTorch's do. The file is written by hand."""

from __future__ import annotations

import json

import pytest

import mtprof
from mtprof.analysis import Analysis, compare
from mtprof.errors import MissingTable

ENGINE = "autograd::engine::evaluate_function: "


def call(name, start, end):
    return {"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start,
            "args": {"Python id": start, "Python parent id": None}}


def op(name, start, end, sequence=None, forward_thread=0, thread=1):
    stated = {} if sequence is None else {"Sequence number": sequence, "Fwd thread id": forward_thread}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": start,
            "dur": end - start, "args": stated}


def load(tmp_path, *events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": list(events)}))
    return mtprof.load(path)


STEP = (
    call("train.py(9): <module>", 0, 300),
    call("nn.Module: Net_0", 10, 100), call("train.py(3): forward", 11, 99),
    call("nn.Module: Linear_0", 20, 40), op("aten::linear", 22, 38, 7), op("aten::addmm", 24, 36, 7),
    call("nn.Module: ReLU_0", 50, 60), op("aten::relu", 52, 58, 8),
    call("nn.Module: Linear_0", 70, 90), op("aten::addmm", 72, 88, 9),
    op("aten::sum", 110, 120, 10),
    # The backward runs on a thread of its own, as with PyTorch's devices.
    op(ENGINE + "SumBackward0", 150, 160, 10, 1, 2), op(ENGINE + "AddmmBackward0", 170, 200, 9, 1, 2),
    op("aten::mm", 175, 195, thread=2), op(ENGINE + "ReluBackward0", 210, 220, 8, 1, 2),
    op(ENGINE + "AddmmBackward0", 230, 250, 7, 1, 2),
)


def test_who_called_whom_makes_the_tree(tmp_path):
    tree = load(tmp_path, *STEP).module_tree()
    assert [node.path for node in tree] == ["Net_0", "Net_0.Linear_0", "Net_0.ReLU_0"]
    net, linear, relu = tree
    assert [node.label for node in net.children] == ["Linear_0", "ReLU_0"]
    assert (net.calls, linear.calls, relu.calls) == (1, 2, 1)
    assert (net.forward_ns, net.self_forward_ns) == (90_000, 40_000)
    assert (linear.forward_ns, relu.forward_ns) == (40_000, 10_000)
    lines = str(tree).splitlines()
    assert lines[1].split() == ["Module", "Calls", "Forward", "Self", "forward", "Backward"]  # no memory, no parameters
    assert [line.split()[0] for line in lines[3:5]] == ["Net_0", "├─"]


def test_backward_belongs_to_the_module_whose_forward_recorded_it(tmp_path):
    net, linear, relu = tree = load(tmp_path, *STEP).module_tree()
    assert (linear.backward_ns, relu.backward_ns, net.self_backward_ns) == (50_000, 10_000, 0)
    assert tree.outside.backward_ns == 10_000
    by_module = {(row.name, row.module) for row in Analysis(load(tmp_path, *STEP)).operators(by=["module"])}
    assert {("aten::mm", "Net_0.Linear_0"), ("aten::sum", ""), ("aten::relu", "Net_0.ReLU_0")} <= by_module


def test_a_module_that_two_others_call_stands_below_each(tmp_path):
    tree = load(tmp_path, call("nn.Module: Encoder_0", 0, 10), call("nn.Module: Embedding_0", 2, 6),
                call("nn.Module: Decoder_0", 20, 30), call("nn.Module: Embedding_0", 22, 25)).module_tree()
    assert {node.path: node.forward_ns for node in tree} == {
        "Encoder_0": 10_000, "Encoder_0.Embedding_0": 4_000, "Decoder_0": 10_000, "Decoder_0.Embedding_0": 3_000}


def test_it_comes_through_a_chrome_trace_and_a_table(tmp_path):
    recording = load(tmp_path, *STEP)
    wanted = recording.module_tree().to_dict()
    again = tmp_path / "again.json.gz"
    recording.export_chrome_trace(again)
    assert mtprof.load(again).module_tree().to_dict() == wanted
    kept = tmp_path / "kept.mtp"
    mtprof.load(again).save(kept)
    assert mtprof.load(kept).module_tree().to_dict() == wanted


def test_modules_can_be_compared(tmp_path):
    analyses = [Analysis(load(tmp_path, *STEP)) for _ in range(2)]
    assert {row.name for row in compare(*analyses).modules} == {"Net_0", "Net_0.Linear_0", "Net_0.ReLU_0"}


def test_a_trace_without_calls_of_modules_says_what_to_record(tmp_path):
    recording = load(tmp_path, op("aten::add", 0, 5))
    assert not recording.trace.has("modules")
    with pytest.raises(MissingTable, match="with_stack=True"):
        recording.module_tree()
