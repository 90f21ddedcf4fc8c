"""Memory over time: blocks, data flow and categories of made-up and real traces, and the files."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler._memory_profiler import Action, Category, MemoryProfile, MemoryProfileTimeline
from mtprof.builder import TraceBuilder
from mtprof.export.memory_page import page_data
from mtprof.schema import Kind, Role
from mtprof.tables.check import check
from mtprof.trace import ThreadInfo, Trace
from mtprof.views.memory_blocks import blocks_of
from mtprof.views.memory_key import TensorKey
from mtprof.views.memory_timeline import ORDER, totals

FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True}


class Story:
    """A trace written down by hand: ops with the memory they use, allocate and release."""

    def __init__(self) -> None:
        self.build = TraceBuilder()
        self.thread = self.build.thread(ThreadInfo(1, 1))
        self.uses: list[tuple[int, int, int, int]] = []
        self.roles: list[tuple[int, int, int, int]] = []

    def op(self, name: str, start: int, end: int, *used: tuple[int, int], kind: Kind = Kind.OP) -> None:
        self.build.add(name=name, kind=kind, start_ns=start, end_ns=end, thread=self.thread)
        self.uses.extend((start, position, address, size) for position, (address, size) in enumerate(used))

    def change(self, time: int, address: int, size: int) -> None:
        self.build.add_row("memory", time_ns=time, thread=self.thread, size_bytes=size, address=address)

    def role(self, time: int, address: int, size: int, role: Role) -> None:
        self.roles.append((time, address, size, int(role)))

    def trace(self) -> Trace:
        if self.uses:
            time, argument, address, size = np.array(self.uses, np.int64).T
            self.build.add_columns("uses", {"thread": np.zeros_like(time), "time_ns": time, "argument": argument,
                                            "address": address, "size_bytes": size, "written": self._written()})
        if self.roles:
            time, address, size, role = np.array(self.roles, np.int64).T
            self.build.add_columns("roles", {"time_ns": time, "address": address, "size_bytes": size, "role": role})
        return self.build.finish(start_ns=1, end_ns=1000, epoch_ns=0)

    def _written(self) -> np.ndarray:
        names = {row["start_ns"]: self.build.names[row["name"]] for row in self.build._rows["events"]}
        return np.array([names[time].endswith("_") and argument == 0 for time, argument, *_ in self.uses], np.uint8)


def profile_of(story: Story) -> MemoryProfile:
    return MemoryProfile(check(story.trace()))


def lines(profile: MemoryProfile) -> list[tuple[str, int | None, int, str | None]]:
    """The timeline in short."""
    return [(action.name, getattr(key, "id", None), version,
             getattr(profile.categories.get(key, version), "name", None) if isinstance(key, TensorKey) else None)
            for _, action, (key, version), _ in profile.timeline]


# -- made-up traces ----------------------------------------------------------------------------------------------------


def test_an_address_that_is_used_again_is_another_block() -> None:
    story = Story()
    story.op("aten::a", 10, 20)
    story.change(11, 7, 100)
    story.change(30, 7, -100)
    story.op("aten::b", 40, 50)
    story.change(41, 7, 300)
    story.op("aten::c", 60, 70, (7, 300))
    blocks = blocks_of(story.trace())
    assert blocks.size_bytes.tolist() == [100, 300]
    assert blocks.allocated_ns.tolist() == [11, 41]
    assert blocks.released_ns.tolist() == [30, np.iinfo(np.int64).max]
    assert blocks.of_use.tolist() == [1]


def test_released_and_allocated_at_the_same_instant() -> None:
    story = Story()
    for size in (100, -100, 200, -200, 300):
        story.change(11, 7, size)
    blocks = blocks_of(story.trace())
    assert blocks.size_bytes.tolist() == [100, 200, 300]
    assert blocks.released_ns.tolist() == [11, 11, np.iinfo(np.int64).max]


def test_memory_from_before_the_recording() -> None:
    story = Story()
    story.op("aten::relu", 10, 20, (7, 100))
    story.change(11, 8, 100)
    story.change(30, 7, -100)
    profile = profile_of(story)
    assert lines(profile) == [("PREEXISTING", 0, 0, None), ("CREATE", None, 0, None), ("DESTROY", 0, 0, None)]
    assert profile.timeline[0][0] == -1


def test_scratch_memory_that_only_inner_ops_see_is_left_out() -> None:
    story = Story()
    story.op("aten::mul", 10, 30, (7, 100))
    story.op("aten::to", 12, 14, (9, 8))
    story.op("AddBackward0", 40, 60, kind=Kind.BACKWARD_FUNCTION)
    story.op("aten::sum", 42, 50, (8, 400))
    blocks = blocks_of(story.trace())
    assert sorted(blocks.address.tolist()) == [7, 8], "what a backward function's own ops have was saved before"
    assert blocks.of_use.tolist()[1] == -1


def test_a_write_makes_a_version() -> None:
    story = Story()
    story.op("aten::empty", 10, 20)
    story.change(11, 7, 64)
    story.op("aten::fill_", 21, 25, (7, 64))
    story.op("aten::ones_like", 30, 40, (7, 64))  # allocates and writes: still the first version
    story.change(31, 8, 64)
    story.op("aten::fill_", 32, 35, (8, 64))
    story.change(50, 7, -64)
    assert lines(profile_of(story)) == [
        ("CREATE", 0, 0, None), ("INCREMENT_VERSION", 0, 0, None), ("CREATE", 1, 0, None), ("DESTROY", 0, 1, None)]


def training_story(*, claimed: bool) -> Story:
    """x -> linear(x, w) -> sum; backward; update. `claimed` if a module says that w is a parameter."""
    story = Story()
    story.op("aten::randn", 10, 20)
    story.change(11, 1, 8)  # x
    if claimed:
        story.role(25, 2, 16, Role.PARAMETER)
    story.op("aten::linear", 30, 40, (1, 8), (2, 16))
    story.change(31, 3, 32)  # scratch
    story.change(32, 4, 32)  # y
    story.change(33, 3, -32)
    story.op("autograd::engine::evaluate_function: MmBackward0", 50, 70, kind=Kind.BACKWARD)
    story.op("MmBackward0", 51, 69, kind=Kind.BACKWARD_FUNCTION)
    story.op("aten::mm", 52, 60, (1, 8), (4, 32))
    story.change(53, 5, 16)  # the gradient of w
    story.change(54, 6, 24)  # on the way
    story.op("torch::autograd::AccumulateGrad", 80, 90, kind=Kind.BACKWARD_FUNCTION)
    story.op("aten::detach", 81, 85, (5, 16))
    story.op("aten::add_", 100, 110, (2, 16), (5, 16))
    return story


@pytest.mark.parametrize("claimed", [True, False])
def test_categories_of_a_training_step(claimed: bool) -> None:
    profile = profile_of(training_story(claimed=claimed))
    found = {int(address): category for address, category in zip(
        profile.blocks.address, (profile.categories.get(key, 0) for key in profile.keys))}
    assert found == {1: Category.INPUT, 2: Category.PARAMETER, 3: Category.TEMPORARY, 4: Category.ACTIVATION,
                     5: Category.GRADIENT, 6: Category.AUTOGRAD_DETAIL}


def test_what_has_nothing_to_do_with_a_model_has_no_category() -> None:
    story = training_story(claimed=True)
    story.op("aten::ones", 200, 210)
    story.change(201, 50, 8)
    story.op("aten::neg", 220, 230, (50, 8))
    story.change(221, 51, 8)
    profile = profile_of(story)
    assert [profile.categories.get(key, 0) for key in profile.keys if key.storage.ptr >= 50] == [None, None]


def test_what_an_update_computes_is_no_activation() -> None:
    story = training_story(claimed=True)
    story.op("aten::mul", 92, 95, (2, 16), (5, 16))  # of the parameter and its gradient
    story.change(93, 60, 16)
    story.op("aten::neg", 96, 99, (60, 16))
    story.change(97, 61, 16)
    profile = profile_of(story)
    assert [profile.categories.get(key, 0) for key in profile.keys if key.storage.ptr >= 60] == [None, None]


def test_an_empty_recording() -> None:
    profile = profile_of(Story())
    assert profile.timeline == ()
    assert [part.tolist() for part in totals(profile, "cpu")] == [[], []]
    assert page_data(profile, "cpu")["segments"]["begin"] == []


# -- real traces -------------------------------------------------------------------------------------------------------


def train(model: Any, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, 6)).pow(2).mean().backward()
        optimizer.step()


def model_and_optimizer() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 10), torch.nn.Tanh(), torch.nn.Linear(10, 3))
    return model, torch.optim.Adam(model.parameters())


@pytest.fixture(scope="module")
def recorded() -> tuple[Any, Any, Any]:
    model, optimizer = model_and_optimizer()
    with torch.profiler.profile(**FLAGS, with_modules=True) as prof:
        train(model, optimizer, 2)
    return prof, model, optimizer


def test_what_a_model_holds_is_known_for_what_it_is(recorded: tuple[Any, Any, Any]) -> None:
    prof, model, optimizer = recorded
    profile = prof._memory_profile()
    # At the end the last version of a block with this identity is the tensor's.
    last = {key.storage.ptr: profile.categories.get(key, int(versions) - 1)
            for key, versions in zip(profile.keys, np.diff(profile.flow.slots))}

    def category(tensor: Any) -> Category | None:
        return last[tensor.untyped_storage().data_ptr()]

    for parameter in model.parameters():
        assert category(parameter) is Category.PARAMETER
        assert category(parameter.grad) is Category.GRADIENT
        assert {category(value) for value in optimizer.state[parameter].values()} == {Category.OPTIMIZER_STATE}


def test_totals_are_those_of_the_memory_table(recorded: tuple[Any, Any, Any]) -> None:
    trace = recorded[0].trace
    profile = recorded[0]._memory_profile()
    before = int(profile.blocks.size_bytes[profile.blocks.preexisting].sum())
    assert before == sum(p.numel() * 4 for p in recorded[1].parameters())
    _, sizes = totals(profile, "cpu")
    assert sizes.sum(axis=1).max() <= before + trace.memory["total_bytes"].max()
    assert sizes[-1].sum() == before + trace.memory["total_bytes"][-1]
    assert (sizes >= 0).all()
    last = dict(zip(ORDER, sizes[-1].tolist()))
    assert last[Category.PARAMETER] == last[Category.GRADIENT] == before
    assert last[Category.OPTIMIZER_STATE] == 2 * before + 4 * 4
    assert last[Category.ACTIVATION] == last[Category.AUTOGRAD_DETAIL] == last[Category.TEMPORARY] == 0


def test_timeline_is_pytorch_shaped(recorded: tuple[Any, Any, Any]) -> None:
    profile = recorded[0]._memory_profile()
    timeline = profile.timeline
    assert [t for t, *_ in timeline] == sorted(t for t, *_ in timeline)
    living: dict[Any, int] = {}
    for _, action, (key, version), size in timeline:
        if action in (Action.PREEXISTING, Action.CREATE):
            assert key not in living
            assert version == 0
            living[key] = 0
        elif action is Action.INCREMENT_VERSION:
            assert living[key] == version
            living[key] += 1
        else:
            assert living.pop(key) == version
        assert size > 0
        assert str(key.device) == "cpu"
    snapshot = profile._category_snapshot()
    assert {key for key, _ in snapshot} == set(profile.keys)
    gradients = [pair for pair, category in snapshot.items() if category is Category.GRADIENT]
    assert gradients
    assert all(profile._is_gradient(*pair) for pair in gradients)


# -- files -------------------------------------------------------------------------------------------------------------


def read(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def test_json_files(recorded: tuple[Any, Any, Any], tmp_path: Path) -> None:
    prof = recorded[0]
    for name in ("t.json", "t.json.gz", "t.anything", "raw.json", "t.raw.json.gz"):
        prof.export_memory_timeline(str(tmp_path / name))
    times, sizes = read(tmp_path / "t.json")
    for name in ("t.json.gz", "t.anything", "raw.json"):
        assert read(tmp_path / name) == [times, sizes]
    assert len(times) == len(sizes)
    assert times[0] == times[1], "what was there before has the time of the first change"
    assert sorted(times) == times
    assert {len(row) for row in sizes} == {9}
    assert all(row[0] == 0 for row in sizes)
    raw = read(tmp_path / "t.raw.json.gz")
    running = [0] * 8
    for time, action, size, category in raw:
        assert action in (1, 2, 3, 4)
        assert (time == -1) == (action == 1)
        assert (size < 0) == (action == 4) or action == 3
        running[category] += size
    assert running == sizes[-1][1:]
    versions = [row for row in raw if row[1] == 3]
    assert [a[2] + b[2] for a, b in zip(versions[::2], versions[1::2])] == [0] * (len(versions) // 2)
    assert isinstance(prof.mem_tl, MemoryProfileTimeline)
    assert len(prof.mem_tl.timeline) == len(raw) - len(versions) // 2


def test_devices(recorded: tuple[Any, Any, Any], tmp_path: Path) -> None:
    prof, path = recorded[0], tmp_path / "t.json"
    prof.export_memory_timeline(path, device="npu:0")
    assert read(path) == [[], []]
    prof.export_memory_timeline(tmp_path / "raw.json.gz", device="npu:0")
    assert read(tmp_path / "raw.json.gz") == []
    prof.export_memory_timeline(path, "cpu")
    assert len(read(path)[0]) > 10
    for name in ("t.json", "t.html"):
        with pytest.raises(RuntimeError, match="device type at start of device string: foo"):
            prof.export_memory_timeline(tmp_path / name, device="foo")


def test_a_second_file_needs_no_second_analysis(tmp_path: Path) -> None:
    profiles: list[Any] = []

    def ready(prof: Any) -> None:
        prof.export_memory_timeline(tmp_path / "t.json")
        prof.export_memory_timeline(tmp_path / "t.html")
        profiles.append(prof._memory_profile())
        assert prof.mem_tl.profile is profiles[-1]

    plan = torch.profiler.schedule(wait=0, warmup=1, active=1)
    with torch.profiler.profile(**FLAGS, schedule=plan, on_trace_ready=ready) as prof:
        for count in (1, 3, 1, 4):
            torch.ones(count)
            prof.step()
    assert [profile.blocks.size_bytes.max() for profile in profiles] == [12, 16], "each recording has its own"


@pytest.mark.parametrize("missing", FLAGS)
def test_flags_that_are_missing_are_named(missing: str, tmp_path: Path) -> None:
    with torch.profiler.profile(**{**FLAGS, missing: False}) as prof:
        torch.ones(1)
    with pytest.raises(ValueError, match=f"^{missing}=True required for memory profiling"):
        prof.export_memory_timeline(str(tmp_path / "t.html"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_survives_a_failure(recorded: tuple[Any, Any, Any], tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.html"
    path.write_text("old")

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left"):
        recorded[0].export_memory_timeline(str(path))
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["t.html"]


def test_growing_a_tensor_takes_memory_and_an_empty_one_has_none() -> None:
    with torch.profiler.profile(**FLAGS) as prof:
        grown = torch.empty(0)
        torch.neg(grown)
        grown.resize_(100)
        grown.resize_(50)  # fits
    profile = prof._memory_profile()
    assert [(action.name, size) for _, action, _, size in profile.timeline] == [
        ("CREATE", 400), ("INCREMENT_VERSION", 400)]
    assert sum(event.cpu_memory_usage for event in prof.events() if event.name == "aten::resize_") == 400


# -- the page ----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.title = ""
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self._in = tag
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[-1] += data
        if self._in == "title":
            self.title += data


EVIL = "</script><script>alert('{{data}}')</script><!--"


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    model = torch.nn.Sequential()
    model.add_module(EVIL.replace(".", ""), torch.nn.Linear(3, 2))
    with torch.profiler.profile(**FLAGS, with_modules=True) as prof:
        with torch.profiler.record_function(EVIL):
            kept = model(torch.ones(2, 3))
        with torch.profiler.record_function("lone surrogate \ud800, separators \u2028"):
            torch.ones(2)
    assert kept.shape == (2, 2)
    prof.export_memory_timeline(str(tmp_path / "t.html"))
    text = (tmp_path / "t.html").read_text("utf-8")
    page = Page(text)
    assert page.elements["script"] == 2
    data = json.loads(page.scripts[0])
    assert EVIL in data["names"]
    assert any(data["names"][n] == EVIL for n in data["segments"]["module"] if n >= 0)
    assert "alert(" not in page.scripts[1]
    MemoryProfileTimeline(prof._memory_profile()).export_memory_timeline_html(tmp_path / "u.html", "cpu", title=EVIL)
    page = Page((tmp_path / "u.html").read_text("utf-8"))
    assert page.elements["script"] == 2
    assert page.title == EVIL


def test_page_needs_nothing_else(recorded: tuple[Any, Any, Any], tmp_path: Path) -> None:
    recorded[0].export_memory_timeline(str(tmp_path / "t.html"))
    text = (tmp_path / "t.html").read_text("utf-8")
    assert Page(text).addresses == ["data:,"]
    assert "://" not in text
    assert "{{" not in text


def test_page_says_the_same_as_the_totals(recorded: tuple[Any, Any, Any]) -> None:
    profile = recorded[0]._memory_profile()
    data = page_data(profile, "cpu")
    columns = data["segments"]
    begin, end, size = (np.array(columns[name]) for name in ("begin", "end", "bytes"))
    category = np.array(columns["category"])
    assert ((end > begin) | (end == -1)).all()
    for time in np.unique(begin)[::7].tolist():
        alive = (begin <= time) & ((end > time) | (end == -1))
        got = np.bincount(category[alive], size[alive], minlength=len(ORDER))
        at = np.searchsorted(profile.changes.time_ns, time + profile.trace.start_ns + profile.trace.epoch_ns, "right")
        signs = np.where(profile.changes.action[:at] == Action.DESTROY.value, -1, 1)
        signs[profile.changes.action[:at] == Action.INCREMENT_VERSION.value] = 0
        assert got.sum() == (profile.changes.size_bytes[:at] * signs).sum()
    names = data["names"]

    def path(number: int) -> list[str]:
        return [] if number < 0 else [*path(data["paths"][number][0]), names[data["paths"][number][1]]]

    ops = {tuple(path(number)) for number in columns["op"]}
    assert ("aten::linear", "aten::addmm") in ops
    assert () in ops, "parameters are older than the recording"
    assert any(names[frame].startswith("nn.Module: Linear") for stack in data["stacks"] for frame in stack)
    assert {names[n] for n in columns["module"] if n >= 0} >= {"0", "1", "2"}
    parameter = data["categories"].index("PARAMETER")
    owners = {(size, names[n]) for n, size, kind in zip(columns["module"], columns["bytes"], columns["category"])
              if kind == parameter}
    assert owners == {(6 * 10 * 4, "0"), (10 * 4, "0"), (10 * 3 * 4, "2"), (3 * 4, "2")}
    assert {names[span[2]] for span in data["spans"]} == {
        "backward", "Optimizer.step#Adam.step", "Optimizer.zero_grad#Adam.zero_grad"}
