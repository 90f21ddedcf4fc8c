"""The page of a memory timeline in a browser: no complaint, exact numbers, and controls that do what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium_devtools import Chromium, find_chromium

import mindtorch_v2 as torch
from mindtorch_v2.profiler._memory_profiler import MemoryProfile, MemoryProfileTimeline
from mindtorch_v2.profiler.trace import ThreadInfo, TraceBuilder

EVIL = "</script><script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("Chromium is not installed")
    with Chromium(executable, tmp_path_factory.mktemp("chromium")) as running:
        yield running


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
        build.add_memory(time_ns=time, thread=thread, size_bytes=size, address=address)
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
