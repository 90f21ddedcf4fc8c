"""The report in Chromium: pages, sorting, searching, zooming, hostile names, no errors, no requests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from chromium_devtools import Chromium, find_chromium

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mtprof.builder import TraceBuilder
from mtprof.recording import Recording
from mtprof.report import write_report
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

EXECUTABLE = find_chromium()
pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")
HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"><b>&amp;{{data}}"


def recorded() -> Recording:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True,
                                with_flops=True) as prof:
        for _ in range(5):
            with torch.profiler.record_function(HOSTILE):
                loss = nn.functional.cross_entropy(model(torch.randn(8, 32)), torch.randint(0, 4, (8,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    return Recording(prof._session("reading").trace, source=HOSTILE)


def many(count: int) -> Recording:
    """Many events on two threads and a stream of a device."""
    build = TraceBuilder()
    threads = [build.thread(ThreadInfo(pid=1, tid=tid, name=f"worker {tid}")) for tid in (1, 2)]
    stream = build.thread(ThreadInfo(pid=0, tid=7))
    for number in range(count):
        start = number * 1000
        build.add(name=f"aten::op{number % 50}", kind=Kind.OP, start_ns=start, end_ns=start + 900,
                  thread=threads[number % 2], correlation=number + 1)
        if number % 3 == 0:
            build.add(name="Kernel", kind=Kind.KERNEL, start_ns=start + 500, end_ns=start + 1200, thread=stream,
                      device=20, device_index=0, correlation=number + 1)
    return Recording(build.finish(start_ns=0, end_ns=count * 1000), source="many")


class Page:
    def __init__(self, browser: Chromium, path: Path) -> None:
        self.browser = browser
        browser.call("Page.navigate", url=f"file://{path}")
        self.wait("document.querySelector('main') && document.querySelector('main').children.length > 0")

    def value(self, expression: str) -> Any:
        answer = self.browser.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not true in {seconds} s: {condition}"
            time.sleep(0.05)

    def go(self, page: str) -> None:
        self.value(f"location.hash = {json.dumps('#/' + page)}")
        self.wait(f"document.querySelector('main').dataset.page === {json.dumps(page.split('?')[0])}")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    assert EXECUTABLE is not None
    with Chromium(EXECUTABLE, tmp_path_factory.mktemp("chromium"), timeout=90) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report([recorded()], path)
    return Page(browser, path)


@pytest.mark.parametrize("name", ["overview", "operators", "timeline", "flame", "memory", "modules", "run"])
def test_every_page_shows_something_and_no_error(page: Page, name: str) -> None:
    page.go(name)
    page.wait("document.querySelector('main').textContent.length > 30 || document.querySelector('main canvas')")
    assert page.browser.exceptions == []
    assert page.value("performance.getEntriesByType('resource').length") == 0


def test_names_are_text_never_markup(page: Page) -> None:
    page.go("operators")
    page.wait("[...document.querySelectorAll('td')].some(td => td.textContent.includes('onerror'))")
    assert page.value("window.hacked === undefined && document.querySelector('main img') === null")


def test_tables_sort_and_search_and_the_address_says_so(page: Page) -> None:
    page.go("operators")
    page.value("[...document.querySelectorAll('th button')].find(b => b.textContent.startsWith('Calls')).click()")
    calls = page.value("""(() => {
        const place = [...document.querySelectorAll('th')].findIndex(th => th.textContent.startsWith('Calls'));
        return [...document.querySelectorAll('tbody tr')].map(
            tr => Number(tr.children[place].textContent.replace(/,/g, ''))); })()""")
    assert calls == sorted(calls, reverse=True)
    assert len(calls) > 5
    page.value("""(() => { const box = document.querySelector('input[type=search]'); box.value = 'addmm';
        box.dispatchEvent(new Event('input')); })()""")
    names = page.value("[...document.querySelectorAll('tbody tr')].map(tr => tr.children[0].textContent)")
    assert names
    assert all("addmm" in name.lower() for name in names)
    assert "sort=calls" in page.value("location.hash")
    assert "q=addmm" in page.value("location.hash")


def test_timeline_zooms_selects_and_totals(page: Page) -> None:
    page.go("timeline")
    page.wait("window.timeline && window.timeline.c && window.timeline.drawnEvents > 0")
    before = page.value("timeline.span")
    page.value("timeline.canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'w'}))")
    assert page.value("timeline.span") < before
    page.value("timeline.canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'f'}))")
    assert page.value("timeline.span") == pytest.approx(before)
    page.value("timeline.select(0)")
    assert "took" in page.value("timeline.detail.textContent")
    page.value("(timeline.selection = [0, timeline.t.span], timeline.total())")
    assert "Self time" in page.value("timeline.detail.textContent")


def test_many_events_stay_fluid(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    write_report([many(60_000)], path, most_events=50_000)
    page = Page(browser, path)
    page.go("timeline")
    page.wait("window.timeline && window.timeline.c && window.timeline.drawnEvents > 0")
    assert 49_990 < page.value("timeline.t.shown") <= 50_000
    assert "of 80,000 events" in page.value("document.querySelector('main').textContent")
    # A frame draws no more than a few events for each pixel and row, however many there are.
    assert page.value("(timeline.paint(), timeline.drawnEvents)") < 6000
    assert page.value("timeline.arrows.size") > 1000
    assert browser.exceptions == []


def test_two_recordings_are_compared(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "two.html"
    write_report([recorded(), recorded()], path)
    page = Page(browser, path)
    page.go("compare")
    assert "before" in page.value("document.querySelector('main').textContent")
    assert browser.exceptions == []
