"""Results in notebooks, and `%%mtprof`."""

from __future__ import annotations

import html.parser

import pytest

import mindtorch_v2 as torch
import mtprof
from mtprof.builder import TraceBuilder
from mtprof.notebook import magic
from mtprof.recording import Recording
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo


class Tags(html.parser.HTMLParser):
    """The tags and the text of a piece of HTML; tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.text, self._open = [], "", []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def profiled():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    with torch.profiler.profile(with_modules=True, with_stack=True, profile_memory=True, record_shapes=True) as profile:
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            profile.step()
    return profile


def test_everything_has_a_page(profiled):
    recording = profiled.profiler.recording
    shown = {
        "profile": profiled, "recording": recording, "trace": profiled.trace, "averages": profiled.key_averages(),
        "events": profiled.events(), "steps": profiled.step_summary(), "modules": profiled.module_tree(),
    }
    for name, value in shown.items():
        page = Tags(value._repr_html_())
        assert "table" in page.tags, name
    assert "aten::" in Tags(recording._repr_html_()).text
    assert "0: Linear" in Tags(profiled.module_tree()._repr_html_()).text
    assert "total" in Tags(profiled.step_summary()._repr_html_()).text


def test_before_the_end_there_is_none():
    assert torch.profiler.profile()._repr_html_() is None
    with torch.profiler.profile() as profile:
        assert profile._repr_html_() is None
    assert Tags(profile._repr_html_()).text


def test_names_are_text():
    build = TraceBuilder()
    thread = build.thread(ThreadInfo(1, 1))
    build.add(name="<script>alert(1)</script>", kind=Kind.OP, start_ns=0, end_ns=10, thread=thread)
    recording = Recording(build.finish(start_ns=0, end_ns=10), source="<b>file</b>")
    for value in (recording, recording.trace, recording.key_averages(), recording.events()):
        page = Tags(value._repr_html_())
        assert "script" not in page.tags
        assert "<script>alert(1)</script>" in page.text


def test_a_cell_is_profiled(tmp_path, capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    mtprof.load_ipython_extension(shell)
    shell.run_cell("import mindtorch_v2 as torch")
    done = shell.run_cell(f"%%mtprof -o {tmp_path / 'cell.mtp'}\nx = torch.ones(3) + 1\n")
    assert done.success
    recording = shell.user_ns[magic.NAME]
    assert "aten::add" in {row.key for row in recording.key_averages()}
    assert "<Recording cell: " in capsys.readouterr().out
    assert shell.user_ns["x"].tolist() == [2, 2, 2]
    assert len(mtprof.load(tmp_path / "cell.mtp").trace) == len(recording.trace)
    with pytest.raises(ValueError, match="unrecognized"):
        magic.options("--wrong")


def test_a_cell_that_fails_has_no_result(capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    mtprof.load_ipython_extension(shell)
    done = shell.run_cell("%%mtprof --light\nimport mindtorch_v2 as torch\ntorch.ones(2)\n1 / 0\n")
    assert done.result is None
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert "aten::ones" in {row.key for row in shell.user_ns[magic.NAME].key_averages()}
