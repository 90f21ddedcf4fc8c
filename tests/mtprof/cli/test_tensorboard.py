"""PyTorch's TensorBoard plugin reads our Chrome traces; skipped where it is not installed (`pip install
torch-tb-profiler`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

import mtprof
from mtprof.analysis import Analysis

pytestmark = pytest.mark.skipif(find_spec("torch_tb_profiler") is None, reason="torch-tb-profiler is not installed")

READ = """
import json, sys
if __name__ == "__main__":  # the plugin starts processes that import this file again
    from torch_tb_profiler.io.cache import Cache
    from torch_tb_profiler.profiler.loader import RunLoader
    (profile,) = RunLoader("run", sys.argv[1], Cache()).load().profiles.values()
    print(json.dumps([[view.display_name for view in profile.views],
                      {row["name"]: row["calls"] for row in profile.operation_table_by_name["data"]}]))
"""


def test_the_plugin_shows_the_same_ops(recorded, tmp_path):
    (tmp_path / "traces").mkdir()
    shutil.copy(recorded.with_suffix(".json.gz"), tmp_path / "traces" / "host_1.1700000000000.pt.trace.json.gz")
    (tmp_path / "read.py").write_text(READ)
    done = subprocess.run([sys.executable, "read.py", "traces"], cwd=tmp_path, capture_output=True, text=True,
                          check=True, timeout=300)
    views, calls = json.loads(done.stdout.splitlines()[-1])
    assert {"Overview", "Operator", "Trace", "Memory", "Module"} <= set(views)
    ours = {row.name: row.calls for row in Analysis(mtprof.load(recorded)).operators() if row.name.startswith("aten::")}
    assert {name: count for name, count in calls.items() if name.startswith("aten::")} == ours
