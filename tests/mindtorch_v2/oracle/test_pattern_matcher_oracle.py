"""Patterns of slow programs, and the helpers they are made of: the same events are found as by PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness import ours, theirs
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_v2.profiler import _pattern_matcher, _utils

real_matcher = pytest.importorskip("torch.profiler._pattern_matcher")
real_utils = pytest.importorskip("torch.profiler._utils")
BOTH = ((ours, _pattern_matcher), (theirs, real_matcher))


def matches(kind: str, program: Callable[[Any], Callable[[], Any]], **options: Any) -> list[int]:
    """How many events each side finds."""
    counts = []
    for torch, module in BOTH:
        for attempt in range(10):
            run = program(torch)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True,
                                        **options) as prof:
                run()
            try:
                counts.append(len(getattr(module, kind)(prof).matched_events()))
            except UnicodeDecodeError:
                # PyTorch 2.13 now and then reads a name of a built-in function that is gone already.
                assert torch is theirs
                assert attempt < 9
            else:
                break
    return counts


def loops(torch: Any) -> dict[str, Callable[[], Any]]:
    x = torch.ones(40, 40)

    def assigned() -> None:
        for i in range(40):
            x[i] = i

    def summed() -> None:
        total = 0
        for i in range(40):
            total = total + x[i]

    def rows() -> None:
        for i in range(40):
            x[i, :] = torch.arange(40) + i

    def short() -> None:
        for i in range(5):
            x[i] = i

    def products() -> None:
        y = x
        for _ in range(40):
            y = y @ x

    return {"assigned": assigned, "summed": summed, "rows": rows, "short": short, "products": products}


@pytest.mark.parametrize(("name", "count"), [("assigned", 1), ("summed", 1), ("rows", 1), ("short", 0),
                                             ("products", 0)])
def test_loops_over_rows(name: str, count: int) -> None:
    assert matches("ForLoopIndexingPattern", lambda torch: loops(torch)[name]) == [count, count]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"foreach": True}, 0), ({"foreach": False}, 1),
                                                ({"fused": True}, 0)])
def test_optimizers_that_update_one_by_one(name: str, options: dict[str, bool], count: int) -> None:
    def program(torch: Any) -> Callable[[], Any]:
        model = torch.nn.Linear(4, 2)
        model(torch.ones(3, 4)).sum().backward()
        return getattr(torch.optim, name)(model.parameters(), lr=0.1, **options).step

    assert matches("OptimizerSingleTensorPattern", program) == [count, count]


@pytest.mark.parametrize(("options", "count"), [({}, 0), ({"set_to_none": False}, 1)])
def test_gradients_that_are_zeroed(options: dict[str, bool], count: int) -> None:
    def program(torch: Any) -> Callable[[], None]:
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def run() -> None:
            model(torch.ones(3, 4)).sum().backward()
            optimizer.zero_grad(**options)

        return run

    assert matches("GradNotSetToNonePattern", program) == [count, count]


def test_loaders_that_keep_the_program_waiting() -> None:
    def program(torch: Any) -> Callable[[], None]:
        data = torch.rand(20, 3)

        def run() -> None:
            for _ in range(2):
                for _ in torch.utils.data.DataLoader(data, batch_size=5):
                    torch.ones(1)
            next(iter(torch.utils.data.DataLoader(data, batch_size=5)))

        return run

    assert matches("SynchronizedDataLoaderPattern", program) == [3, 3]


@pytest.mark.parametrize(("bias", "last", "count"), [(True, "BatchNorm2d", 1), (False, "BatchNorm2d", 0),
                                                     (True, "GroupNorm", 0)])
@pytest.mark.parametrize("memory", [True, False])
def test_bias_before_batch_norm(bias: bool, last: str, count: int, memory: bool) -> None:
    def program(torch: Any) -> Callable[[], Any]:
        norm = torch.nn.BatchNorm2d(3) if last == "BatchNorm2d" else torch.nn.GroupNorm(1, 3)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3, bias=bias), norm)
        return lambda: model(torch.rand(1, 3, 8, 8))

    assert matches("Conv2dBiasFollowedByBatchNorm2dPattern", program, record_shapes=True,
                   profile_memory=memory) == [count, count]


def products(torch: Any) -> Callable[[], None]:
    def run() -> None:
        torch.ones(4, 5) @ torch.ones(5, 6)
        torch.ones(4, 5).half() @ torch.ones(5, 6).half()
        torch.ones(8, 8).half() @ torch.ones(8, 16).half()
        torch.bmm(torch.ones(2, 3, 8).bfloat16(), torch.ones(2, 8, 8).bfloat16())

    return run


def test_products_of_matrices() -> None:
    assert matches("FP32MatMulPattern", products, record_shapes=True) == [3, 3]
    ours_found, theirs_found = matches("MatMulDimInFP16Pattern", products, record_shapes=True)
    assert ours_found == theirs_found
    assert matches("ExtraCUDACopyPattern", products, record_shapes=True) == [0, 0]


KINDS = ("ExtraCUDACopyPattern", "ForLoopIndexingPattern", "FP32MatMulPattern", "OptimizerSingleTensorPattern",
         "SynchronizedDataLoaderPattern", "GradNotSetToNonePattern", "Conv2dBiasFollowedByBatchNorm2dPattern",
         "MatMulDimInFP16Pattern")


@pytest.mark.parametrize("options", [{}, {"with_stack": True}, {"record_shapes": True},
                                     {"with_stack": True, "record_shapes": True}])
def test_what_patterns_say_of_themselves(options: dict[str, bool]) -> None:
    found = []
    for torch, module in BOTH:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
            torch.ones(2)
        patterns = [getattr(module, kind)(prof) for kind in KINDS]
        named = module.NamePattern(prof, "aten::ones")
        found.append([(p.name, p.description, p.url, p.skip, p.should_benchmark) for p in (*patterns, named)]
                     + [len(named.matched_events()), named.summary([1, 2, 3])])
    assert found[0] == found[1]


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, printed = [], []
    for number, (torch, module) in enumerate(BOTH):
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.Adam(model.parameters())

        def step(torch: Any = torch, model: Any = model, optimizer: Any = optimizer) -> None:
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True,
                                    record_shapes=True) as prof:
            step()
        place = tmp_path / str(number)
        place.mkdir()
        capsys.readouterr()
        module.report_all_anti_patterns(prof, json_report_dir=str(place))
        printed.append([line for line in capsys.readouterr().out.splitlines() if "Location" not in line])
        report = json.loads((place / "torchtidy_report.json").read_text())
        # PyTorch knows the line of the call, this profiler that of the function it is in.
        assert all(isinstance(entry.pop("line_number"), int) for entries in report.values() for entry in entries)
        files.append(report)
    assert files[0] == files[1]
    assert printed[0] == printed[1]


# -- helpers -----------------------------------------------------------------------------------------------------------


def node(name: str, *children: Any) -> Any:
    made = SimpleNamespace(name=name, children=list(children), parent=None)
    for child in children:
        child.parent = made
    return made


def test_walks() -> None:
    forest = [node("1", node("2", node("3")), node("4")), node("5", node("6"))]
    for walk in ("traverse_dfs", "traverse_bfs"):
        for options in ({}, {"reverse": True}, {"reverse": False}, {"children_fn": lambda n: n.children[:1]}):
            got, want = ([n.name for n in getattr(module, walk)(forest, **options)] for module in (_utils, real_utils))
            assert got == want


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=6), st.integers(0, 4), st.none() | st.integers(0, 7))
def test_search(values: list[int], start: int, end: int | None) -> None:
    if end is not None:
        end = min(end, len(values))
    arguments = {"start": start, "end": end}
    assert _utils.argmax(values, **arguments) == real_utils.argmax(values, **arguments)
    first = [module.index_of_first_match(values, lambda value: value > 0, **arguments)
             for module in (_utils, real_utils)]
    assert first[0] == first[1]


def test_places() -> None:
    inner = node("aten::add")
    node("b.py(3): g", node("nn.Module: Net_0", inner))
    for event in (inner, node("c/d.py(12): f"), node("nothing"), None):
        assert _utils.source_code_location(event) == real_utils.source_code_location(event)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=5), st.integers(0, 20), st.integers(1, 20))
def test_overlap_with_disjoint_stretches(stretches: list[tuple[int, int]], start: int, length: int) -> None:
    """If stretches overlap, PyTorch may count time twice, so these do not overlap."""
    event = SimpleNamespace(name="n", id=1, start_time_ns=start, end_time_ns=start + length)
    apart, time = [], 0
    for gap, size in stretches:
        apart.append((time + gap, time + gap + size))
        time += gap + size
    got, want = (module.EventKey(event).intervals_overlap([module.Interval(*pair) for pair in apart])
                 for module in (_utils, real_utils))
    assert got == want == sum(max(0, min(end, start + length) - max(begin, start)) for begin, end in apart)


def test_self_times() -> None:
    for torch, module in ((ours, _utils), (theirs, real_utils)):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            torch.nn.Linear(3, 3)(torch.ones(2, 3)).sum().backward()
        found = module.BasicEvaluation(prof.profiler)
        for key, metrics in found.metrics.items():
            children = sum(child.duration_time_ns for child in key.event.children)
            assert metrics.self_time_ns == key.event.duration_time_ns - children
            assert metrics.duration_time_ns == key.event.duration_time_ns
        assert [event.id for event in found.events] == [key.event.id for key in found.event_keys]
        assert (found.cuda_events, found.queue_depth_list, found.rank_events(3)) == ([], [], [])


class Work:
    """An event of a CUDA program; no CUDA here, so made by hand."""

    def __init__(self, name: str, start: int, length: int, number: int, kind: Any) -> None:
        self.name = name
        self._facts = (start, length, number, kind)

    def start_ns(self) -> int:
        return self._facts[0]

    def duration_ns(self) -> int:
        return self._facts[1]

    def linked_correlation_id(self) -> int:
        return self._facts[2]

    def device_type(self) -> Any:
        return self._facts[3]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 120)), min_size=1, max_size=14),
       st.lists(st.tuples(st.integers(1, 20), st.integers(5, 60)), min_size=2, max_size=12))
def test_waiting_kernels(kernels: list[tuple[int, int]], calls: list[tuple[int, int]]) -> None:
    """Kernels are launched one after the other, and run when the device is free."""
    found = []
    for module, kinds in ((_utils, ours.profiler.DeviceType), (real_utils, theirs.profiler.DeviceType)):
        work, launch, free = [], 0, 0
        for number, (gap, length) in enumerate(kernels, start=1):
            launch += gap
            begin = max(free, launch + 1)
            free = begin + length
            work += [Work("cudaLaunchKernel", launch, 1, number, kinds.CPU),
                     Work("kernel", begin, length, number, kinds.CUDA)]
        # The first call begins before the device's work, else PyTorch counts with an interval of negative length.
        tree, time = [], -calls[0][0]
        for number, (gap, length) in enumerate(calls):
            time += gap
            # The last call outlasts the device's work.
            length = length if number < len(calls) - 1 else max(length, free + 10 - time)
            tree.append(SimpleNamespace(name=f"call {number}", id=number, start_time_ns=time, duration_time_ns=length,
                                        end_time_ns=time + length, children=[], parent=None))
            time += length
        result = SimpleNamespace(events=lambda work=work: work, experimental_event_tree=lambda tree=tree: tree)
        evaluation = module.BasicEvaluation(SimpleNamespace(kineto_results=result))
        depths = [(one.start, one.end, one.queue_depth) for one in evaluation.queue_depth_list]
        metrics = [(key.event.id, one.queue_depth, one.idle_time_ns) for key, one in evaluation.metrics.items()]
        found.append((depths, metrics))
    assert found[0] == found[1]


def test_ranking() -> None:
    """A long queue becomes empty while the program does something else: that is the event to find."""
    names = []
    for module, kinds in ((_utils, ours.profiler.DeviceType), (real_utils, theirs.profiler.DeviceType)):
        work = []
        for number in range(6):
            work += [Work("cudaLaunchKernel", 10 + number, 1, number + 1, kinds.CPU),
                     Work("kernel", 20 + 30 * number, 30, number + 1, kinds.CUDA)]
        work += [Work("cudaLaunchKernel", 400, 1, 7, kinds.CPU), Work("kernel", 402, 5, 7, kinds.CUDA)]
        tree = [SimpleNamespace(name=name, id=begin, start_time_ns=begin, duration_time_ns=end - begin, children=[],
                                end_time_ns=end, parent=None)
                for name, begin, end in (("launching", 5, 18), ("thinking", 30, 390), ("short", 392, 396),
                                         ("late", 399, 500))]
        result = SimpleNamespace(events=lambda work=work: work, experimental_event_tree=lambda tree=tree: tree)
        evaluation = module.BasicEvaluation(SimpleNamespace(kineto_results=result))
        names.append([repr(key) for key in evaluation.rank_events(3)])
        assert [repr(key) for key in evaluation.get_optimizable_events(1, print_enable=False)] == names[-1][:1]
    assert names[0] == names[1]
    assert names[0]


def test_equals_are_ranked_as_they_are_listed() -> None:
    """Metrics are listed from the last root and the last child on."""
    found = []
    for module, kinds in ((_utils, ours.profiler.DeviceType), (real_utils, theirs.profiler.DeviceType)):
        work = []
        for number in range(5):
            work += [Work("cudaLaunchKernel", 400 + 100 * number, 100, number + 1, kinds.CPU),
                     Work("kernel", 900 + 100 * number, 100, number + 1, kinds.CUDA)]
        work += [Work("cudaLaunchKernel", 1500, 100, 6, kinds.CPU), Work("kernel", 1700, 100, 6, kinds.CUDA)]
        tree = [SimpleNamespace(name=str(begin), id=begin, start_time_ns=begin, duration_time_ns=100, children=[],
                                end_time_ns=begin + 100, parent=None) for begin in range(0, 1200, 100)]
        tree += [SimpleNamespace(name="late", id=1200, start_time_ns=1200, duration_time_ns=500, children=[],
                                 end_time_ns=1700, parent=None)]
        inside = [SimpleNamespace(name=f"in {begin}", id=begin, start_time_ns=begin, duration_time_ns=1, children=[],
                                  end_time_ns=begin + 1, parent=tree[0]) for begin in (1, 2)]
        tree[0].children = inside
        result = SimpleNamespace(events=lambda work=work: work, experimental_event_tree=lambda tree=tree: tree)
        evaluation = module.BasicEvaluation(SimpleNamespace(kineto_results=result))
        found.append(([key.event.name for key in evaluation.metrics],
                      [repr(key) for key in evaluation.get_optimizable_events(4, print_enable=False)]))
    assert found[0] == found[1]


def test_going_up_ends_at_the_root() -> None:
    def found(torch: Any, module: Any) -> list[str]:
        with torch.profiler.profile() as prof:
            torch.ones(2)
        pattern = module.Pattern(prof)
        inner = pattern.event_tree[0].children[-1]
        return [pattern.go_up_until(inner, lambda event, name=name: event.name == name).name
                for name in ("aten::fill_", "aten::ones", "nothing")]

    assert found(*BOTH[0]) == found(*BOTH[1])
