"""`torch_npu.profiler.profiler`: the same names, and `analyse`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import ExportType, _KinetoProfile, profile, schedule, tensorboard_trace_handler


def analyse(profiler_path: str, max_process_number: int = os.cpu_count() or 1, export_type: Any = None) -> None:
    """Make the tables of recordings below a directory. The handler has made them already: this finds them.

    torch_npu writes what CANN collected, and works it out later. This profiler writes the result.
    """
    wanted = export_type if isinstance(export_type, (list, tuple)) else [export_type]
    if any(one in (ExportType.Db, ExportType.Db.value) for one in wanted):
        raise NotImplementedError("analyse(export_type: ExportType.Db) is not written by this profiler; "
                                  "use profile.save(path)")
    root = Path(profiler_path)
    folders = [root] if root.name.endswith("_ascend_pt") else sorted(root.glob("*_ascend_pt"))
    if not any((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").exists() for folder in folders):
        raise RuntimeError(f"{profiler_path} has no recording that tensorboard_trace_handler wrote (*_ascend_pt)")


__all__ = ["_KinetoProfile", "analyse", "profile", "schedule", "tensorboard_trace_handler"]
