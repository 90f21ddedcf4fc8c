"""Names and signatures of the profiler's public modules, and where functions say they are, as PyTorch's."""

from __future__ import annotations

import inspect
import pickle

import pytest
from harness import ours, theirs

# Parameters of ours that PyTorch does not have.
ADDITIONS = {"max_events", "group_by_module", "save_to"}

MODULES = {
    "profiler": ["profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
                 "ProfilerActivity", "kineto_available", "DeviceType", "record_function", "_KinetoProfile",
                 "_ExperimentalConfig", "ExecutionTraceObserver", "itt"],
    "autograd.profiler": ["profile", "record_function", "EnforceUnique", "KinetoStepTracker", "emit_nvtx", "emit_itt",
                          "load_nvprof", "EventList", "FunctionEvent", "MemRecordsAcc", "kineto_available"],
    "autograd.profiler_util": ["EventList", "FunctionEvent", "FunctionEventAvg", "FormattedTimesMixin", "Interval",
                               "Kernel", "MemRecordsAcc", "StringTable", "MEMORY_EVENT_NAME",
                               "OUT_OF_MEMORY_EVENT_NAME"],
    "autograd": ["Function", "backward", "grad", "gradcheck", "gradgradcheck", "no_grad", "enable_grad",
                 "set_grad_enabled", "inference_mode", "detect_anomaly", "set_detect_anomaly", "Variable"],
}


def reach(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in MODULES.items() for n in names])
def test_names_exist(module, name):
    assert hasattr(reach(theirs, module), name), "the list above names something PyTorch does not have"
    assert hasattr(reach(ours, module), name)


def parameters(function):
    return [(p.name, p.kind.name, p.default if type(p.default) in (int, float, str, bool, type(None)) else "...")
            for p in inspect.signature(function).parameters.values() if p.name not in ADDITIONS]


CALLABLES = [
    "profiler.profile.__init__", "profiler._KinetoProfile.__init__", "profiler.schedule",
    "profiler.tensorboard_trace_handler", "autograd.profiler.profile.__init__",
    "autograd.profiler.record_function.__init__", "autograd.profiler_util.FunctionEvent.__init__",
    "autograd.profiler_util.EventList.table", "autograd.profiler_util.EventList.key_averages",
    "autograd.grad", "autograd.backward",
    *(f"profiler.profile.{m}" for m in (
        "start", "stop", "step", "prepare_trace", "start_trace", "stop_trace", "export_chrome_trace", "export_stacks",
        "toggle_collection_dynamic", "add_metadata", "add_metadata_json", "preset_metadata_json",
        "export_memory_timeline", "get_trace_id", "set_custom_trace_id_callback", "events", "key_averages")),
]


@pytest.mark.parametrize("path", CALLABLES)
def test_signatures(path):
    got, want = parameters(reach(ours, path)), parameters(reach(theirs, path))
    # Enum defaults are objects of each module and compare as "...".
    assert [(n, k) for n, k, _ in got] == [(n, k) for n, k, _ in want]
    assert [d for *_, d in got if d != "..."] == [d for *_, d in want if d != "..."]


@pytest.mark.parametrize("name", [n for n in dir(theirs.profiler.profile) if not n.startswith("__")])
def test_methods_of_profile(name):
    if name == "_stats":
        pytest.skip("PyTorch's own internal statistics")
    assert hasattr(ours.profiler.profile, name)


def test_attributes_of_a_profile():
    internal = {"_custom_profiler_config", "_monitor_started_here", "_monitor_tempdir", "_monitor_trace_window",
                "_prev_schedule_action", "_trace_metadata", "_use_cupti_monitor", "has_cudagraphs", "action_map"}
    want = set(vars(theirs.profiler.profile())) - internal
    assert want <= set(vars(ours.profiler.profile()))


@pytest.mark.parametrize("rows", ["events", "key_averages"])
def test_attributes_of_events_and_rows(rows):
    def found(torch):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            torch.ones(2) + 1
        return getattr(prof, rows)()[0]

    want = {n for n in dir(found(theirs)) if not n.startswith("_")}
    assert want <= {n for n in dir(found(ours)) if not n.startswith("_")}


@pytest.mark.parametrize("path", ["sort", "sum", "conj", "relu", "einsum", "unique", "numel", "linalg.qr",
                                  "nn.functional.relu", "nn.functional.linear", "nn.functional.dropout", "fft.fft",
                                  "special.erf"])
def test_functions_say_where_they_are(path):
    of_ours, of_theirs = (reach(torch, path) for torch in (ours, theirs))
    assert (of_ours.__module__.replace("mindtorch_v2", "torch"), of_ours.__name__) == (
        of_theirs.__module__, of_theirs.__name__)
    assert pickle.loads(pickle.dumps(of_ours)) is of_ours


def test_the_hash_of_a_tensor_is_its_identity():
    for torch in (ours, theirs):
        tensor = torch.ones(2)
        assert hash(tensor) == id(tensor)
