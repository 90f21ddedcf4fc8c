"""The report in Chromium: pages, sorting, searching, zooming, hostile names, no errors, no requests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from chromium_devtools import Chromium

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mtprof.builder import TraceBuilder
from mtprof.recording import Recording
from mtprof.report import write_report
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

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

    def wait(self, condition: str, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not true in {seconds} s: {condition}"
            time.sleep(0.05)

    def text(self) -> str:
        return self.value("document.querySelector('main').textContent")

    def press(self, key: str) -> None:
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def search(self, words: str) -> None:
        self.value(f"""(() => {{ const box = document.querySelector('main input[type=search]'); box.value =
            {json.dumps(words)}; box.dispatchEvent(new Event('input')); }})()""")

    def go(self, page: str) -> None:
        self.value(f"location.hash = {json.dumps('#/' + page)}")
        self.wait(f"document.querySelector('main').dataset.page === {json.dumps(page.split('?')[0])} "
                  f"&& document.querySelector('main').dataset.shown === location.hash")


@pytest.fixture(scope="module")
def page(browser: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report([recorded()], path)
    return Page(browser, path)


PAGES = ["overview", "operators", "timeline", "flame", "memory", "modules", "run"]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_shows_something_and_no_error(page: Page, name: str) -> None:
    page.go(name)
    page.wait(READY)
    page.wait("document.querySelector('main').textContent.length > 30 || document.querySelector('main .memory')")
    assert page.browser.exceptions == []
    assert page.value("performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("name", [*PAGES, "operators?group=place", "operators?group=module", "flame?by=call",
                                  "flame?by=module"])
def test_names_are_text_never_markup(page: Page, name: str) -> None:
    page.go(name)
    page.wait(READY)
    assert page.value(f"({EVERYWHERE}).every(root => root.querySelector('img') === null) "
                      "&& window.hacked === undefined")
    if name == "operators":
        page.wait("[...document.querySelectorAll('tbody th')].some(cell => cell.textContent.includes('onerror'))")


# The page and the trees inside its elements.
EVERYWHERE = "[document.body, ...[...document.querySelectorAll('*')].map(e => e.shadowRoot).filter(Boolean)]"
READY = "document.querySelector('main .memory') === null || document.querySelector('main .memory').shadowRoot" \
        ".getElementById('alive-title').textContent"


def test_tables_sort_and_search_and_the_address_says_so(page: Page) -> None:
    page.go("operators")
    page.value("[...document.querySelectorAll('th button')].find(b => b.textContent.startsWith('Calls')).click()")
    calls = page.value("""(() => {
        const place = [...document.querySelectorAll('thead th')].findIndex(th => th.textContent.startsWith('Calls'));
        return [...document.querySelectorAll('tbody tr')].map(
            tr => Number(tr.children[place].textContent.replace(/,/g, ''))); })()""")
    assert calls == sorted(calls, reverse=True)
    assert len(calls) > 5
    page.search("addmm")
    names = page.value("[...document.querySelectorAll('tbody tr')].map(tr => tr.children[0].textContent)")
    assert names
    assert all("addmm" in name.lower() for name in names)
    assert "sort=calls" in page.value("location.hash")
    assert "q=addmm" in page.value("location.hash")
    page.search("nothing is called this")
    assert "No row has all of these words" in page.text()


def test_a_row_opens_to_shapes_places_and_modules(page: Page) -> None:
    page.go("operators?q=aten::addmm")
    page.press("/")
    assert page.value("document.activeElement.type") == "search"
    page.press("Escape")
    page.value("document.querySelector('tbody .opener').focus()")
    page.press("Enter")
    assert page.value("document.activeElement.getAttribute('aria-expanded')") == "true"
    detail = page.value("document.querySelector('.detail-row').textContent")
    assert "Input shapes" in detail
    assert "test_report_page.py" in detail
    assert "In module" in detail
    page.press("Enter")
    assert page.value("document.querySelector('.detail-row')") is None


def test_modules_have_their_names_and_shares_and_sums_say_of_what(page: Page) -> None:
    page.go("modules")
    rows = page.value("[...document.querySelectorAll('tbody tr')].map(tr => tr.textContent)")
    assert [row[:9] for row in rows[1:3]] == ["0: Linear", "1: ReLU" + rows[2][7:9]]
    assert "Total time" in page.value("document.querySelector('thead').textContent")
    assert "self time" in page.value("document.querySelector('main').textContent")
    assert page.value("format.work(260)") == "260"


def test_labels_of_the_timeline_have_room_on_a_narrow_screen(page: Page) -> None:
    """As many as fit, at any zoom, and rarely fewer than two."""
    for width in (250, 1000):
        for span in (7, 1e3, 1.9e6, 2.1e6, 4.9e6, 5.1e6, 9.9e9):
            ticks = page.value(f"{span} / strideFor({span}, {width} / TICK_WIDTH)")
            assert width / ticks >= 69.9
            assert ticks >= 1.3


def test_columns_are_hidden_and_the_address_says_so(page: Page) -> None:
    page.go("operators")
    heads = "[...document.querySelectorAll('thead th')].map(th => th.textContent)"
    assert "Calls" in page.value(heads)
    page.value("[...document.querySelectorAll('.menu label')].find(l => l.textContent.includes('Calls'))"
               ".querySelector('input').click()")
    assert "Calls" not in page.value(heads)
    again = page.value("location.hash")
    page.go("overview")
    page.go(again.removeprefix("#/"))
    assert "Calls" not in page.value(heads)


def test_rows_are_copied_with_exact_values(page: Page) -> None:
    page.go("operators?q=aten::addmm")
    page.value("""(() => { window.copied = null;
        Object.defineProperty(navigator, 'clipboard', {configurable: true, value: {
            writeText: text => { window.copied = text; return Promise.resolve(); }}});
        [...document.querySelectorAll('button')].find(b => b.textContent === 'Copy as TSV').click(); })()""")
    page.wait("window.copied")
    head, first, *_ = page.value("window.copied").split("\n")
    columns = dict(zip(head.split("\t"), first.split("\t")))
    assert columns["Name"] == "aten::addmm"
    assert int(columns["Self time (ns)"]) > 0


def test_keys_lead_to_pages_and_to_a_list_of_keys(page: Page) -> None:
    page.go("overview")
    page.press("3")
    page.wait("document.querySelector('main').dataset.page === 'timeline'")
    page.press("?")
    assert page.value("document.getElementById('help').open")
    page.value("document.getElementById('help').close()")


def test_numbers_lead_to_their_rows(page: Page) -> None:
    page.go("overview")
    links = page.value("[...document.querySelector('.legend').querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert len(links) == 5
    for link in links:
        page.go(link.removeprefix("#/"))
    page.go("overview")
    link = page.value("document.querySelectorAll('.spark a')[2].getAttribute('href')")
    page.value("document.querySelectorAll('.spark a')[2].click()")
    page.wait("document.querySelector('main').dataset.page === 'timeline' && timeline.c && timeline.drawnEvents > 0")
    assert page.value("timeline.span") == pytest.approx(int(link.rpartition("span=")[2]), rel=0.01)


def test_timeline_zooms_selects_and_totals(page: Page) -> None:
    page.go("timeline")
    page.wait("window.timeline && window.timeline.c && window.timeline.drawnEvents > 0")
    assert page.value("timeline.lanes.filter(lane => lane.steps).length") == 1
    page.value("timeline.canvas.focus()")
    before = page.value("timeline.span")
    page.press("w")
    assert page.value("timeline.span") < before
    page.press("f")
    assert page.value("timeline.span") == pytest.approx(before)
    page.press("ArrowRight")
    assert "took" in page.value("timeline.detail.textContent")
    assert "e=" in page.value("location.hash")
    page.press("Enter")
    assert page.value("timeline.detail.textContent").startswith("Selected: ")
    place = page.value("timeline.canvas.getBoundingClientRect().toJSON()")
    y = place["top"] + 60
    for kind, x in (("mousePressed", 300), ("mouseMoved", 500), ("mouseMoved", 600), ("mouseReleased", 600)):
        page.browser.call("Input.dispatchMouseEvent", type=kind, x=place["left"] + x, y=y, button="left", buttons=1,
                          clickCount=1, modifiers=SHIFT)
    assert "Self time" in page.value("timeline.detail.textContent")
    assert "step 1" not in page.value("timeline.detail.textContent")
    page.search("addmm")
    assert " events, " in page.value("timeline.hits.textContent")


SHIFT = 8


def test_colours_mean_the_part_of_a_step(page: Page) -> None:
    """A product in the backward has the backward's colour, although the forward runs ops of that name too."""
    page.go("timeline")
    page.wait("window.timeline && window.timeline.c")
    found = page.value("""(() => { const {c, t} = timeline, seen = new Set();
        c.name.forEach((name, i) => { if (timeline.names[name] === 'aten::mm') seen.add(t.phases[c.phase[i]]); });
        return [...seen]; })()""")
    assert found == ["backward"]


def test_flame_graph_with_keys(page: Page) -> None:
    page.go("flame?by=call")
    page.wait("window.flame && flame.boxes")
    page.value("flame.canvas.focus()")
    whole = page.value("flame.root.total")
    page.press("ArrowDown")
    assert 0 < page.value("flame.top.total") < whole
    assert "zoom=" in page.value("location.hash")
    largest = page.value("flame.top.name")
    page.press("ArrowRight")
    assert page.value("flame.top.name") != largest
    page.press("Escape")
    assert page.value("flame.top === flame.root")
    page.search("addmm")
    assert "% of all" in page.value("flame.status.textContent")
    sizes = page.value("flame.ordered(flame.root).map(node => node.total)")
    assert sizes == sorted(sizes, reverse=True)
    page.go("flame?by=call&order=1")
    order = page.value("flame.ordered(flame.root).map(node => node.order)")
    assert order == sorted(order)


def test_memory_is_part_of_the_page(page: Page) -> None:
    page.go("memory?by=category")
    page.wait(READY)
    inside = "document.querySelector('main .memory').shadowRoot"
    assert page.value(f"Number({inside}.getElementById('peak').dataset.bytes)") > 0
    assert "(the peak)" in page.value(f"{inside}.getElementById('alive-title').textContent")
    groups = page.value(f"[...{inside}.querySelectorAll('tr.group')].map(row => row.lastChild.textContent)")
    assert "Parameter" in groups
    page.value(f"{inside}.querySelector('#grouping [data-value=op]').click()")
    assert page.value("location.hash") == "#/memory?by=op"
    page.press("/")
    assert page.value(f"{inside}.activeElement.id") == "filter"
    page.press("1")
    assert page.value("location.hash").startswith("#/memory"), "what is typed in a search is no key"
    page.press("Escape")
    # One meaning a colour: what the optimizer keeps has the colour of the optimizer.
    style = "getComputedStyle(document.querySelector('main .memory')).getPropertyValue"
    assert page.value(f"{style}('--c1') === {style}('--optimizer')")
    assert page.browser.exceptions == []


def test_a_narrow_window_needs_no_sideways_scrolling(page: Page) -> None:
    page.browser.call("Emulation.setDeviceMetricsOverride", width=800, height=600, deviceScaleFactor=1, mobile=False)
    try:
        for name in PAGES:
            page.go(name)
            assert page.value("document.documentElement.scrollWidth") <= 800, name
    finally:
        page.browser.call("Emulation.clearDeviceMetricsOverride")


def test_an_empty_recording_says_so(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    write_report([Recording(TraceBuilder().finish(start_ns=0, end_ns=0), source="empty")], path)
    page = Page(browser, path)
    for name in PAGES:
        page.go(name)
        assert len(page.text()) > 15, name
    assert browser.exceptions == []


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
    page.value("(timeline.hover = timeline.launched.device[5], timeline.paint())")  # with an arrow
    host = page.value("timeline.arrows.get(timeline.hover)")
    assert page.value(f"timeline.lanes[timeline.c.lane[{host}]].device") is False
    assert browser.exceptions == []


def test_two_recordings_are_compared(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "two.html"
    write_report([recorded(), recorded()], path)
    page = Page(browser, path)
    page.go("compare")
    assert "before" in page.value("document.querySelector('main').textContent")
    assert browser.exceptions == []
