"""The page of a memory timeline in a browser: no errors, exact numbers, and controls that work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chromium_devtools import Chromium

import mindtorch_v2 as torch
from mindtorch_v2.profiler._memory_profiler import MemoryProfile, MemoryProfileTimeline
from mtprof.builder import TraceBuilder
from mtprof.trace import ThreadInfo

EVIL = "</script><script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """The page, and the total bytes at each change."""
    model = torch.nn.Sequential(torch.nn.Linear(30, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))
    optimizer = torch.optim.Adam(model.parameters())
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True) as prof:
        for _ in range(2):
            with torch.profiler.record_function(EVIL):
                optimizer.zero_grad()
                model(torch.ones(16, 30)).sum().backward()
                optimizer.step()
    path = tmp_path_factory.mktemp("page") / "memory.html"
    prof.export_memory_timeline(path)
    changes = prof._memory_profile().changes
    sign = {1: 1, 2: 1, 3: 0, 4: -1}
    running, total = [], 0
    for action, size in zip(changes.action.tolist(), changes.size_bytes.tolist()):
        total += sign[action] * size
        running.append(total)
    return path, running


def opened(browser: Chromium, path: Path, scheme: str = "light") -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(path.as_uri())
    browser.wait_for("document.readyState === 'complete' && document.querySelectorAll('#alive tr').length > 0")


def cells(browser: Chromium, column: int) -> list[str]:
    return browser.evaluate(f"[...document.querySelectorAll('#alive tr.block')].map(r => r.cells[{column}].innerText)")


def click(browser: Chromium, x: float, y: float) -> None:
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_peak_and_what_is_alive_then(browser: Chromium, recorded: tuple[Path, list[int]], scheme: str,
                                     tmp_path: Path) -> None:
    path, totals = recorded
    opened(browser, path, scheme)
    assert browser.evaluate("Number(document.getElementById('peak').dataset.bytes)") == max(totals)
    assert browser.evaluate("Number(document.getElementById('final').dataset.bytes)") == totals[-1]
    assert "(the peak)" in browser.evaluate("document.getElementById('alive-title').innerText")
    shares = [float(text.split()[0]) for text in cells(browser, 1)]
    assert shares == sorted(shares, reverse=True), "largest first"
    assert sum(shares) == pytest.approx(100, abs=0.06 * len(shares))
    assert set(cells(browser, 2)) >= {"Parameter", "Optimizer state", "Gradient"}
    assert any("before the recording" in text for text in cells(browser, 3))
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(json.loads(background.replace("rgb(", "[").replace(")", "]"))) < 384) == (scheme == "dark")
    assert browser.evaluate("document.title") == "Memory timeline, cpu"
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000, "an empty page is smaller"
    assert browser.exceptions == []


def test_the_chart_is_painted(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    colors = browser.evaluate("""(() => {
        const canvas = document.getElementById('canvas');
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const seen = {};
        for (let i = 0; i < pixels.length; i += 4)
            if (pixels[i + 3] === 255) {
                const key = [pixels[i], pixels[i + 1], pixels[i + 2]].join();
                seen[key] = (seen[key] || 0) + 1;
            }
        return seen;
    })()""")
    parameter, state = "42,120,214", "27,175,122"
    assert colors[parameter] > 1000
    assert colors[state] > 1000


def test_a_peak_of_a_nanosecond_is_painted(browser: Chromium, tmp_path: Path) -> None:
    build = TraceBuilder()
    thread = build.thread(ThreadInfo(1, 1))
    for time, address, size in ((10, 1, 100), (500_000_000, 2, 9900), (500_000_001, 2, -9900), (999_999_999, 1, -100)):
        build.add_row("memory", time_ns=time, thread=thread, size_bytes=size, address=address)
    profile = MemoryProfile(build.finish(start_ns=0, end_ns=1_000_000_000))
    MemoryProfileTimeline(profile).export_memory_timeline_html(tmp_path / "peak.html", "cpu")
    opened(browser, tmp_path / "peak.html")
    assert browser.evaluate("Number(document.getElementById('peak').dataset.bytes)") == 10_000
    browser.evaluate("document.querySelector('#canvas').focus()")
    for kind in ("keyDown", "keyUp"):  # away from the peak, where the line of the chosen time is painted over it
        browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", code="ArrowLeft")
    painted = browser.evaluate("""(() => {
        const canvas = document.getElementById('canvas');
        const [width, height] = [canvas.width, Math.round(canvas.height / 2)];
        const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
        let count = 0;
        for (let i = 0; i < pixels.length; i += 4)
            if (pixels[i] === 155 && pixels[i + 1] === 154 && pixels[i + 2] === 148) count++;
        return count;
    })()""")
    assert 80 < painted < 1000, "one column, from the middle of the chart almost to its top"


def test_categories_can_be_hidden(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    whole = browser.evaluate("Number(document.getElementById('final').dataset.bytes)")
    state = 2 * 4 * (30 * 50 + 50 + 50 * 3 + 3) + 4 * 4
    browser.evaluate("document.querySelector('[data-category=OPTIMIZER_STATE]').click()")
    assert browser.evaluate("Number(document.getElementById('final').dataset.bytes)") == whole - state
    assert "Optimizer state" not in cells(browser, 2)
    browser.evaluate("document.querySelector('[data-category=OPTIMIZER_STATE]').click()")
    assert browser.evaluate("Number(document.getElementById('final').dataset.bytes)") == whole
    assert browser.exceptions == []


def box(browser: Chromium) -> dict[str, Any]:
    return browser.evaluate("document.getElementById('canvas').getBoundingClientRect().toJSON()")


def test_pointer_and_keys(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    place = box(browser)
    middle = place["top"] + place["height"] / 2
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place["left"] + 400, y=middle)
    tip = browser.evaluate("document.getElementById('tip').innerText")
    assert "Parameter" in tip
    click(browser, place["right"] - 20, middle)
    title = "document.getElementById('alive-title').innerText"
    time_ns = "Number(document.getElementById('alive-title').dataset.ns)"
    clicked = browser.evaluate(time_ns)
    assert "(the peak)" not in browser.evaluate(title)
    browser.evaluate("document.getElementById('canvas').focus()")
    times = [clicked]
    for arrow in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key=arrow, code=arrow)
        times.append(browser.evaluate(time_ns))
    assert times[2] < times[1] < clicked
    assert times[3] == times[1]
    browser.evaluate("document.getElementById('to-peak').click()")
    assert "(the peak)" in browser.evaluate(title)
    assert browser.exceptions == []


def test_zoom(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    place = box(browser)
    middle = place["top"] + place["height"] / 2
    disabled = "document.getElementById('reset').disabled"
    assert browser.evaluate(disabled)
    for kind, x in (("mousePressed", 300), ("mouseMoved", 500), ("mouseReleased", 500)):
        browser.call("Input.dispatchMouseEvent", type=kind, x=place["left"] + x, y=middle, button="left", clickCount=1,
                     buttons=1)
    assert not browser.evaluate(disabled)
    browser.evaluate("document.getElementById('reset').click()")
    assert browser.evaluate(disabled)
    assert browser.exceptions == []


def press(browser: Chromium, key: str, modifiers: int = 0) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers)


SHIFT, CONTROL = 8, 2
TIME_NS = "Number(document.getElementById('alive-title').dataset.ns)"


def test_zoom_with_keys_and_wheel(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    place = box(browser)
    whole = "document.getElementById('reset').disabled"
    browser.evaluate("document.getElementById('canvas').focus()")
    peak = browser.evaluate(TIME_NS)
    for back in ("0", "Escape"):
        press(browser, "+")
        assert not browser.evaluate(whole)
        press(browser, back)
        assert browser.evaluate(whole)
    press(browser, "Home")
    assert browser.evaluate(TIME_NS) == 0
    press(browser, "ArrowRight", SHIFT)
    assert browser.evaluate(TIME_NS) > 0
    press(browser, "End")
    assert browser.evaluate(TIME_NS) > peak
    press(browser, "p")
    assert browser.evaluate(TIME_NS) == peak
    wheel = {"type": "mouseWheel", "x": place["left"] + 300, "y": place["top"] + 100, "deltaX": 0, "deltaY": -120}
    browser.call("Input.dispatchMouseEvent", **wheel, modifiers=CONTROL)
    assert browser.wait_for(f"!{whole}")
    assert browser.exceptions == []


@pytest.mark.parametrize("grouping", ["category", "module", "op", "place"])
def test_groups_add_up(browser: Chromium, recorded: tuple[Path, list[int]], grouping: str) -> None:
    opened(browser, recorded[0])
    browser.evaluate(f"document.querySelector('#grouping [data-value={grouping}]').click()")
    table = "[...document.querySelectorAll('#alive tr.group')].map(r => [...r.cells].map(c => c.innerText))"
    groups = browser.evaluate(table)
    shares = [float(share.split()[0]) for _, share, _, _ in groups]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.06 * len(shares))
    counts = [int(number) for _, _, number, _ in groups]
    title = browser.evaluate("document.getElementById('alive-title').innerText")
    assert f" {sum(counts)} blocks," in title
    names = [name for *_, name in groups]
    assert len(set(names)) == len(names)
    some = {"category": "Gradient", "module": "0", "op": "aten::mm"}
    assert any(some.get(grouping, "test_memory_page.py(") in name for name in names)
    click_first = "document.querySelectorAll('#alive tr.group')[0].click()"
    browser.evaluate(click_first)
    assert len(cells(browser, 0)) == counts[0]
    browser.evaluate("document.querySelectorAll('#alive tr.block')[0].click()")
    browser.evaluate(click_first)
    assert browser.evaluate("document.querySelectorAll('#alive tr.block, #alive tr.stack').length") == 0
    assert browser.exceptions == []


def test_filter(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    everything = len(cells(browser, 0))
    write = ("(text => {{ const box = document.getElementById('filter'); box.value = text; "
             "box.dispatchEvent(new Event('input')); }})({!r})")
    browser.evaluate(write.format("GRADIENT"))
    assert set(cells(browser, 2)) == {"Gradient"}
    assert browser.evaluate("document.getElementById('found').innerText").startswith(f"{len(cells(browser, 0))} block")
    browser.evaluate(write.format("nothing is called this"))
    assert cells(browser, 0) == []
    browser.evaluate(write.format(""))
    assert len(cells(browser, 0)) == everything


def test_the_parts_of_the_peak(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    shares = browser.evaluate("[...document.querySelectorAll('#part-names span')].map(p => p.innerText)"
                              ".filter(Boolean)")
    assert sum(float(share.split()[-2]) for share in shares) == pytest.approx(100, abs=0.06 * len(shares))


@pytest.mark.parametrize("width", [340, 800])
def test_a_narrow_window_needs_no_sideways_scrolling(browser: Chromium, recorded: tuple[Path, list[int]],
                                                     width: int) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=700, deviceScaleFactor=1, mobile=False)
    try:
        opened(browser, recorded[0])
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_a_recording_without_memory(browser: Chromium, tmp_path: Path) -> None:
    MemoryProfileTimeline(MemoryProfile(TraceBuilder().finish(start_ns=0, end_ns=1000))).export_memory_timeline_html(
        tmp_path / "empty.html", "cpu")
    browser.open((tmp_path / "empty.html").as_uri())
    browser.wait_for("document.readyState === 'complete'")
    assert browser.evaluate("document.getElementById('then').hidden")
    assert browser.exceptions == []


def test_a_block_lives_as_long_as_all_its_categories(browser: Chromium, tmp_path: Path) -> None:
    """An input that a backward function writes to is no longer an input, but the block lives on."""
    statistic, leaf = torch.zeros(1000), torch.ones(3, requires_grad=True)

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            statistic.add_(1)
            return grad * 2

    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        Counted.apply(leaf).sum().backward()
    prof.export_memory_timeline(tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    browser.evaluate("document.getElementById('canvas').focus()")
    press(browser, "End")
    largest = browser.evaluate("[...document.querySelector('#alive tr.block').cells].map(c => c.innerText)")
    assert largest[0] == "3.91 KiB"
    assert largest[2] == "Unknown"
    assert largest[3] == "before the recording"
    assert largest[5] == "the start – the end"


def test_stacks_and_modules(browser: Chromium, recorded: tuple[Path, list[int]]) -> None:
    opened(browser, recorded[0])
    assert {"0", "2"} <= set(cells(browser, 4))
    row = next(i for i, (op, module) in enumerate(zip(cells(browser, 3), cells(browser, 4)))
               if module == "0" and op != "before the recording")
    browser.evaluate(f"document.querySelectorAll('#alive tr.block')[{row}].click()")
    frames = browser.evaluate("[...document.querySelectorAll('tr.stack li')].map(f => f.innerText)")
    assert any("test_memory_page.py" in frame for frame in frames)
    browser.evaluate(f"document.querySelectorAll('#alive tr.block')[{row}].click()")
    assert browser.evaluate("document.querySelectorAll('tr.stack').length") == 0
    assert browser.exceptions == []
