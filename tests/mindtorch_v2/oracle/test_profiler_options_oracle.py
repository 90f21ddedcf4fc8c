"""Options of the profiler that few programs use, on both: filters of activities, time for results, overloads."""

from __future__ import annotations

import collections
import json
import pathlib
import warnings
from typing import Any

import pytest

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
BOTH = [torch, ours]


def trained(library: Any) -> None:
    with library.profiler.record_function("mine"):
        x = library.ones(3, requires_grad=True)
        (x * x).sum().backward()


def exported(library: Any, path: pathlib.Path, activities: Any, **options: Any) -> tuple[list[dict[str, Any]], Any]:
    kinds = library.profiler.ProfilerActivity
    given = eval(activities, {"CPU": kinds.CPU, "CUDA": kinds.CUDA})
    trained(library)  # so that nothing is done for the first time inside
    with library.profiler.profile(activities=given, **options) as prof:
        trained(library)
    name = str(path / f"{library.__name__}.json")
    prof.export_chrome_trace(name)
    return json.loads(pathlib.Path(name).read_text())["traceEvents"], prof


NAMES = ["CPU_OP", "USER_ANNOTATION", "PYTHON_FUNCTION", "CPU_INSTANT_EVENT", "CUDA_RUNTIME", "EXTERNAL_CORRELATION",
         "PRIVATEUSE1_DRIVER"]


@pytest.mark.parametrize("names", [[], *([name] for name in NAMES), ["CPU_OP", "USER_ANNOTATION"],
                                   ["CPU_OP", "CPU_INSTANT_EVENT"]], ids=",".join)
def test_filters_act_on_the_file(tmp_path: pathlib.Path, names: list[str]) -> None:
    found, lists = [], []
    for library in BOTH:
        events, prof = exported(library, tmp_path, f"[{{CPU: {names}}}]", with_stack=True, profile_memory=True)
        found.append({event["cat"] for event in events if "cat" in event})
        lists.append({event.name for event in prof.events()} >= {"mine", "aten::mul", "MulBackward0"})
    assert found[0] == found[1]
    assert lists == [True, True]  # the lists of events are not filtered


@pytest.mark.parametrize("activities", [
    "[CPU, CPU]", "[CPU, {CPU: []}]", "[{CPU: ['foo']}]", "[{CPU: ['GPU_MEMCPY']}]", "[{CPU: ['cpu_op']}]", "[3]", "[]",
    "[{}]", "[{'CPU': []}]", "CPU", "[{CPU: None}]", "[{CPU: [3]}]", "[CPU, 3]"])
def test_filters_that_are_wrong(tmp_path: pathlib.Path, activities: str) -> None:
    errors = []
    for library in BOTH:
        with pytest.raises(Exception) as caught:  # noqa: PT011  (what it is, is compared)
            exported(library, tmp_path, activities)
        errors.append(caught)
    assert errors[0].type is errors[1].type
    if errors[0].type in (ValueError, RuntimeError, AssertionError):
        assert str(errors[0].value) == str(errors[1].value)


def test_names_of_overloads_in_the_file(tmp_path: pathlib.Path) -> None:
    counts = []
    for library in BOTH:
        config = library._C._profiler._ExperimentalConfig(capture_overload_names=True)
        events, prof = exported(library, tmp_path, "[CPU]", experimental_config=config)
        names = collections.Counter(event["name"] for event in events if event.get("cat") == "cpu_op")
        counts.append({name: names[name] for name in names if name.split("::")[-1].startswith(("mul", "ones"))})
        assert {event.name for event in prof.events()} >= {"aten::mul"}
    assert counts[0] == counts[1]
    assert "aten::mul.Tensor" in counts[1]
    again = ours.profiler.load(str(tmp_path / "mindtorch_v2.json"))
    assert {(event.name, event.overload_name) for event in again.events()} >= {("aten::mul", "Tensor")}


@pytest.mark.parametrize("timeout_s", [0, 1e-9, 100.0])
def test_time_for_results(timeout_s: float, caplog: pytest.LogCaptureFixture) -> None:
    counts = []
    for library in BOTH:
        with library.profiler.profile(post_processing_timeout_s=timeout_s) as prof:
            trained(library)
        counts.append([bool(len(prof.events())), bool(len(prof.key_averages()))])
    assert counts[0] == counts[1]
    assert ("the results are partial" in caplog.text) == (timeout_s < 1)
    for library in BOTH:
        with (pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"),
              library.profiler.profile(post_processing_timeout_s=-timeout_s - 1)):
            pass


def test_the_table_of_actions() -> None:
    def table(prof: Any) -> dict[tuple[str, str | None], list[str]]:
        return {(before.name, after and after.name): [getattr(act, "__name__", None) or act.args[0] for act in acts]
                for (before, after), acts in prof.action_map.items()
                if (before.name, after and after.name) not in unreachable}

    unreachable = [("NONE", "DEVICE_STOPPED"), ("RECORD_AND_SAVE", "DEVICE_STOPPED")]
    theirs, mine = (table(library.profiler.profile()) for library in BOTH)
    assert mine == theirs
    for library in BOTH:
        for before, after in unreachable:
            actions = library.profiler.ProfilerAction
            with pytest.raises(RuntimeError, match=f"{before} -> {after} should be unreachable"):
                library.profiler.profile()._transit_action(getattr(actions, before), getattr(actions, after))
    assert ours.profiler.profile().has_cudagraphs is torch.profiler.profile().has_cudagraphs is False


@pytest.mark.parametrize("shapes", [False, True])
@pytest.mark.parametrize("scope", ["user_scope", "function", "USER_SCOPE"])
def test_fast_scopes_that_are_annotations(scope: str, shapes: bool) -> None:
    found = []
    for library in BOTH:
        fast = library._C._profiler._RecordFunctionFast("fast", [], {"scope": scope, "number": 1})
        with library.profiler.profile(record_shapes=shapes) as prof, fast:
            library.ones(2)
        event = next(event for event in prof.events() if event.name == "fast")
        found.append((event.is_user_annotation, event.scope, event.kwinputs))
    assert found[0] == found[1]


def _x(name: str, cat: str, ts: float, dur: float = 1.0, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur,
            "args": {key.replace("_id", " id"): value for key, value in args.items()}}


def _sync(kind: str, ts: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": kind, "cat": "cuda_sync", "ts": ts, "dur": 1, "args": {"cuda_sync_kind": kind, **args}}


ENGINE = "autograd::engine::evaluate_function: "
TRACES: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "a kernel in time": [_x("cudaLaunchKernel", "cuda_runtime", 1, External_id=3), _x("k", "kernel", 2, External_id=3)],
    "a kernel too early": [_x("cudaLaunchKernel", "cuda_runtime", 5, External_id=3),
                           _x("k", "kernel", 2, External_id=3)],
    "a wait for nothing": [_sync("Stream Wait Event", 3), _sync("Event Sync", 3, wait_on_cuda_event_record_corr_id=-1)],
    "a wait for what is not there": [_sync("Stream Wait Event", 3, wait_on_cuda_event_record_corr_id=7)],
    "a wait for the past": [_x("cudaEventRecord_ptsz", "cuda_driver", 1, correlation=7),
                            _sync("Stream Wait Event", 3, wait_on_cuda_event_record_corr_id=7)],
    "a wait for the future": [_x("cudaEventRecord", "cuda_runtime", 9, correlation=7),
                              _sync("Stream Wait Event", 3, wait_on_cuda_event_record_corr_id=7)],
    "a busy stream": [_x("k", "kernel", 1, 10, device=0, stream=7), _sync("Stream Sync", 3, device=0, stream=7)],
    "another stream": [_x("k", "kernel", 1, 10, device=0, stream=8), _sync("Stream Sync", 3, device=0, stream=7)],
    "a collective without facts": [_x("record_param_comms", "user_annotation", 1, dtype="x")],
    "two functions of one number": [{**_x(ENGINE + name, "cpu_op", 1), "args": {"Sequence number": 4}}
                                    for name in ("AddBackward0", "MulBackward0", "AddBackward0")],
    "odd rows": [{"ph": "M"}, {"ph": "X"}],
}


@pytest.mark.parametrize("name", TRACES)
def test_the_validator(tmp_path: pathlib.Path, name: str) -> None:
    from torch.profiler._trace_validator import validate_trace as theirs

    from mindtorch_v2.profiler._trace_validator import validate_trace

    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": TRACES[name]}))
    expected, found = theirs(str(path)), validate_trace(str(path))
    assert found[0] is expected[0]
    assert [violation.rule_name for violation in found[1]] == [violation.rule_name for violation in expected[1]]


def test_our_traces_are_valid(tmp_path: pathlib.Path) -> None:
    with ours.profiler.profile(with_stack=True) as prof:
        trained(ours)
    for name in ("t.json", "t.json.gz"):
        prof.export_chrome_trace(tmp_path / name)
        from mindtorch_v2.profiler._trace_validator import validate_trace

        assert validate_trace(str(tmp_path / name)) == (True, [])


def test_a_schedule_that_breaks_off() -> None:
    """The warning names the pair. PyTorch ends the process at the second one."""
    actions = ours.profiler.ProfilerAction
    plan = [actions.WARMUP, actions.NONE, actions.RECORD, actions.WARMUP, actions.NONE]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = ours.profiler.profile(schedule=lambda step: plan[min(step, 4)])
        prof.start()
        for _ in range(4):
            ours.ones(2) + 1
            prof.step()
        prof.stop()
    said = [str(one.message) for one in caught if "Incorrect schedule" in str(one.message)]
    assert said == ["Incorrect schedule: WARMUP followed by NONE", "Incorrect schedule: RECORD followed by WARMUP",
                    "Incorrect schedule: WARMUP followed by NONE"]


ORDERED = {
    "mul": lambda t, r: r(2, 3) * r(3), "div": lambda t, r: r(2, 3) / r(3), "sub": lambda t, r: r(2, 3) - r(3),
    "addmm": lambda t, r: t.addmm(r(5), r(2, 3), r(3, 5)), "mm": lambda t, r: r(2, 3) @ r(3, 4),
    "baddbmm": lambda t, r: t.baddbmm(r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)), "dot": lambda t, r: t.dot(r(3), r(3)),
    "addcmul": lambda t, r: t.addcmul(r(2, 3), r(2, 3), r(3)), "mv": lambda t, r: t.mv(r(2, 3), r(3)),
    "linear": lambda t, r: t.nn.functional.linear(r(2, 3), r(4, 3), r(4)),
    "mse_loss": lambda t, r: t.nn.functional.mse_loss(r(2, 3), r(2, 3)),
}


@pytest.mark.parametrize("name", ORDERED)
def test_gradients_inside_a_node_come_in_the_same_order(name: str) -> None:
    found = []
    for library in BOTH:
        value = ORDERED[name](library, lambda *size, lib=library: lib.rand(*size).add(0.1).requires_grad_()).sum()
        with library.profiler.profile(record_shapes=True) as prof:
            value.backward()
        nodes = [event for event in prof.events() if event.name[:-1].endswith("Backward") and ": " not in event.name]
        found.append([(node.name, [(child.name, [size for size in child.input_shapes if size][:2])
                                   for child in node.cpu_children if child.name != "aten::to"]) for node in nodes])
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:Warning only once")
@pytest.mark.filterwarnings("ignore:.*Overriding a previously registered kernel")
def test_falling_through_to_a_kernel_of_a_device() -> None:
    for library in BOTH:
        fragment = library.library.Library("aten", "IMPL")
        fragment.impl("sin", library.library.fallthrough_kernel, "CPU")
        assert library.zeros(2).sin().tolist() == [0, 0]
        fragment._destroy()


@pytest.mark.parametrize("library", BOTH)
def test_devices_that_cannot_be_recorded(library):
    for name, said in (("xyz", "The xyz is not a valid device option"), ("cpu", "The cpu is not a valid device option"),
                       ("cuda", "CUDA is not available, disabling CUDA profiling")):
        with pytest.warns(UserWarning, match=said), library.autograd.profiler.profile(use_device=name) as prof:
            library.ones(2)
        assert "aten::ones" in {event.name for event in prof.function_events}
        assert prof.use_device is None


@pytest.mark.parametrize("library", BOTH)
def test_numbers_of_names_and_settings_as_keys(library):
    kinds = library._C._profiler
    members = [kinds.ProfilerActivity.CUDA, kinds.RecordScope.USER_SCOPE, kinds._EventType.PyCall,
               kinds.ProfilerState.KINETO, kinds.ActiveProfilerType.KINETO]
    assert [int(member) for member in members] == [member.value for member in members]
    assert "abcdefgh"[kinds._EventType.PyCall] == "f"
    one, other = kinds._ExperimentalConfig(), kinds._ExperimentalConfig()
    assert one != other
    assert len({one, other, one}) == 2


@pytest.mark.parametrize("library", BOTH)
def test_profilers_of_other_makers_say_that_they_record(library):
    face = library.autograd.profiler
    face._run_on_profiler_start()
    assert face._is_profiler_enabled
    face._run_on_profiler_stop()
    assert not face._is_profiler_enabled
    face._set_is_profiler_enabled(True)
    assert face._is_profiler_enabled
    face._set_is_profiler_enabled(False)
    assert not face._is_profiler_enabled


@pytest.mark.parametrize("library", BOTH)
def test_an_observer_of_the_program(library):
    told = []

    class Observer(library.profiler.profiler._ITraceObserver):
        def start(self):
            told.append("start")

        def stop(self):
            told.append("stop")

        def cleanup(self):
            told.append("cleanup")

    with library.profiler.profile(execution_trace_observer=Observer()):
        library.ones(1)
    assert told == ["start", "stop", "cleanup"]


CALLS = """
    x.pow_(2) x.pow_(y) x.pow(2) torch.greater(x,y) x.multiply(y) x.multiply(2) x.true_divide(y)
    x.floor_divide_(y) x.ldexp_(y) x.normal_() x.uniform_() x.random_(5) x.random_(1,5) x.add_(1)
    x.lt(1) x.div_(y,rounding_mode="floor") x.masked_fill_(x>1,2) x.clamp_(0,1) x.transpose(0,1)
    x.sum(None) x.all(0) torch.arange(5)"""


@pytest.mark.parametrize("call", CALLS.split())
def test_names_of_overloads(call: str) -> None:
    def named(library: Any) -> list[tuple[str, str]]:
        config = library._C._profiler._ExperimentalConfig(capture_overload_names=True)
        values = {"x": library.ones(2, 2), "y": library.ones(2, 2), "torch": library}
        with library.profiler.profile(experimental_config=config) as prof:
            eval(call, values)
        return [(event.name, event.overload_name) for event in prof.events() if event.cpu_parent is None]

    assert named(ours) == named(torch)


def test_the_end_of_a_range_is_among_its_arguments(tmp_path: pathlib.Path) -> None:
    def given(library: Any) -> list[list[str]]:
        with library.profiler.profile(record_shapes=True) as prof:
            library.arange(2, 9, 3)
        prof.export_chrome_trace(str(tmp_path / library.__name__))
        events = json.loads((tmp_path / library.__name__).read_text())["traceEvents"]
        return [event["args"]["Concrete Inputs"] for event in events if event["name"] == "aten::arange"]

    assert given(ours) == given(torch)


@pytest.mark.parametrize("call", [
    lambda torch, x: x + 1, lambda torch, x: x * 2.5, lambda torch, x: 2 * x, lambda torch, x: x.sub_(1),
    lambda torch, x: torch.true_divide(x, 2), lambda torch, x: x // 2, lambda torch, x: x.add(True),
    lambda torch, x: torch.divide(x, 2, rounding_mode="floor"), lambda torch, x: torch.add(x, 3, alpha=2),
    lambda torch, x: x == 1, lambda torch, x: x ** 2, lambda torch, x: 1 - x, lambda torch, x: x > 0.5,
    lambda torch, x: torch.greater(x, 1), lambda torch, x: torch.float_power(x, 2), lambda torch, x: x.fill_(1),
    lambda torch, x: torch.where(x > 0, x, 0), lambda torch, x: x.clamp(0, 1), lambda torch, x: x.normal_(0, 2),
    lambda torch, x: torch.nn.functional.interpolate(x[None, None], scale_factor=2),
    lambda torch, x: torch.nn.functional.pairwise_distance(x, x, p=1),
    lambda torch, x: x[1:], lambda torch, x: x[:2, ::2], lambda torch, x: x[..., -2:], lambda torch, x: x[:-1]])
def test_arguments_are_those_of_the_op_and_not_of_the_call(call: Any, tmp_path: pathlib.Path) -> None:
    """A number beside a tensor is a tensor, an integer for a float a float, the open end of a range a number."""
    def given(library: Any) -> list[Any]:
        x = library.ones(3, 4)
        with library.profiler.profile(record_shapes=True) as prof:
            call(library, x)
        prof.export_chrome_trace(str(tmp_path / library.__name__))
        events = json.loads((tmp_path / library.__name__).read_text())["traceEvents"]
        ops = sorted((event["ts"], -event["dur"], event["name"], event["args"]) for event in events
                     if event.get("cat") == "cpu_op")
        found, end = [], 0.0
        for start, negative, name, args in ops:
            if start >= end:  # not inside the one before
                end = start - negative
                found.append([name, *[args[key] for key in ("Concrete Inputs", "Input type", "Input Dims")]])
        return found

    assert given(ours) == given(torch)


def test_overloads_in_the_names_of_a_file_by_pytorch(tmp_path: pathlib.Path) -> None:
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with torch.profiler.profile(experimental_config=config) as prof:
        torch.ones(2).sum(0)
        with torch.profiler.record_function("my.scope"):
            torch.add(torch.ones(2), 1)
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    again = ours.profiler.load(tmp_path / "t.json").key_averages(group_by_overload_name=True)

    def rows(averages: Any) -> set[tuple[str, str, int]]:
        return {(row.key, row.overload_name or "", row.count) for row in averages}

    assert rows(again) == rows(prof.key_averages(group_by_overload_name=True))


@pytest.mark.parametrize("library", BOTH)
def test_what_a_session_records(library: Any) -> None:
    with library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU]) as prof:
        pass
    assert prof.profiler.kineto_activities == {library.profiler.ProfilerActivity.CPU}
