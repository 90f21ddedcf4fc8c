"""`torch_npu.profiler`: its vocabulary over this runtime's profiler.

What the levels and metrics of CANN's own collection add (counters of the cores, its raw data) is not collected here:
asking for it is refused with the reason, unless it is the default.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from mtprof.views.device_tables import write_all

from ...profiler import ProfilerAction, ProfilerActivity
from ...profiler import profile as torch_profile
from ...profiler import schedule as torch_schedule
from ...profiler.activity import _ExperimentalConfig as TorchConfig
from ...profiler.activity import supported_activities


class ProfilerLevel(Enum):
    """How much is collected. Kernels, copies and calls of the runtime are what every level but `Level_none` has."""

    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics(Enum):
    """Counters of the cores."""

    PipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    ArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    Memory = "ACL_AICORE_MEMORY_BANDWIDTH"
    MemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    MemoryUB = "ACL_AICORE_MEMORY_UB"
    ResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    L2Cache = "ACL_AICORE_L2_CACHE"
    MemoryAccess = "ACL_AICORE_MEMORY_ACCESS"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType(Enum):
    """What files are written."""

    Text = "text"
    Db = "db"


class HostSystem(Enum):
    """What is sampled of the host."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"
    NUMA = "numa"


class _ExperimentalConfig:
    """What to collect besides. Accepted: levels, and what asks for nothing more; the rest is refused.

    `Level_none` and `Level0` have no counters of the cores, whichever are named, as in torch_npu. From `Level1` on
    torch_npu counts `PipeUtilization` unless it is told otherwise; here there are no counters, and to name some is an
    error.
    """

    def __init__(self, profiler_level: ProfilerLevel = ProfilerLevel.Level0,
                 aic_metrics: AiCMetrics = AiCMetrics.AiCoreNone, l2_cache: bool = False, msprof_tx: bool = False,
                 mstx: bool = False, data_simplification: bool = True, record_op_args: bool = False,
                 op_attr: bool = False, gc_detect_threshold: float | None = None,
                 export_type: ExportType | list[ExportType] = ExportType.Text,
                 host_sys: list[HostSystem] | None = None, mstx_domain_include: list[str] | None = None,
                 mstx_domain_exclude: list[str] | None = None, sys_io: bool = False,
                 sys_interconnection: bool = False) -> None:
        if not isinstance(profiler_level, ProfilerLevel):
            raise TypeError(f"profiler_level must be a ProfilerLevel, not {type(profiler_level).__name__}")
        if not isinstance(aic_metrics, AiCMetrics):
            raise TypeError(f"aic_metrics must be an AiCMetrics, not {type(aic_metrics).__name__}")
        if profiler_level in (ProfilerLevel.Level_none, ProfilerLevel.Level0):
            aic_metrics = AiCMetrics.AiCoreNone
        exports = list(export_type) if isinstance(export_type, (list, tuple)) else [export_type]
        refused = {
            f"aic_metrics={aic_metrics}: this profiler has no counters of the cores; leave it out, or ask for none "
            "with AiCMetrics.AiCoreNone": aic_metrics is not AiCMetrics.AiCoreNone,
            "l2_cache=True: this profiler has no counters of the cache": l2_cache,
            "record_op_args=True: use record_shapes=True of the profile": record_op_args,
            "op_attr=True: this profiler has no attributes of operators": op_attr,
            "export_type=ExportType.Db: this profiler writes no databases; use profile.save(path)":
                ExportType.Db in exports,
            "host_sys: this profiler takes no samples of the host": bool(host_sys),
            "sys_io=True: this profiler has no counters of devices for input and output": sys_io,
            "sys_interconnection=True: this profiler has no counters of connections": sys_interconnection,
        }
        for what, asked in refused.items():
            if asked:
                raise NotImplementedError(f"_ExperimentalConfig does not take {what}")
        self.profiler_level = profiler_level
        self.aic_metrics = aic_metrics
        self.mstx = mstx or msprof_tx
        self.gc_detect_threshold = gc_detect_threshold
        self.export_type = exports

    def for_torch(self) -> TorchConfig:
        """The same wishes in PyTorch's terms."""
        return TorchConfig(record_python_gc_info=self.gc_detect_threshold is not None)


def schedule(wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """When to record; the order of arguments is torch_npu's."""
    return torch_schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first,
                          skip_first_wait=skip_first_wait)


def _worker(worker_name: str | None) -> str:
    return worker_name or socket.gethostname()


def tensorboard_trace_handler(dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True,
                              async_mode: bool = False) -> Callable[[Any], None]:
    """A handler that writes a directory as torch_npu does: the trace, and tables of it."""

    def handle(prof: Any) -> None:
        root = Path(dir_name or os.path.join(os.environ.get("ASCEND_WORK_PATH", ""), "profiling_data")
                    if dir_name or os.environ.get("ASCEND_WORK_PATH") else ".")
        stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.time_ns() // 1_000_000 % 1000:03d}"
        folder = root / f"{_worker(worker_name)}_{os.getpid()}_{stamp}_ascend_pt"
        write_directory(prof, folder)

    return handle


def write_directory(prof: Any, folder: Path) -> None:
    """Write what a profile has recorded, under torch_npu's names."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True, exist_ok=True)
    prof.export_chrome_trace(str(output / "trace_view.json"))
    trace = prof.profiler.trace
    write_all(trace, output)
    (folder / "profiler_metadata.json").write_text(json.dumps(trace.metadata.get("device_times", []), indent=1))
    (folder / "profiler_info.json").write_text(json.dumps(
        {"torch_npu_version": "mindtorch_v2", "activities": sorted(str(a) for a in prof.activities)}, indent=1))


class profile(torch_profile):
    """torch_npu's `profile`; it has this runtime's results too (`events`, `key_averages`)."""

    def __init__(self, *, activities: Any = None, schedule: Any = None, on_trace_ready: Any = None,
                 record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_flops: bool = False, with_modules: bool = False,
                 experimental_config: _ExperimentalConfig | None = None, execution_trace_observer: Any = None,
                 custom_trace_id_callback: Any = None, use_cuda: bool | None = None) -> None:
        if use_cuda:
            raise NotImplementedError("torch_npu.profiler.profile(use_cuda=True): this runtime has no CUDA device")
        config = experimental_config or _ExperimentalConfig()
        chosen = set(activities) if activities is not None else supported_activities()
        if config.profiler_level is ProfilerLevel.Level_none:
            chosen.discard(ProfilerActivity.NPU)
        super().__init__(activities=sorted(chosen, key=lambda one: one.value), schedule=schedule,
                         on_trace_ready=on_trace_ready, record_shapes=record_shapes, profile_memory=profile_memory,
                         with_stack=with_stack, with_flops=with_flops, with_modules=with_modules,
                         experimental_config=config.for_torch(), execution_trace_observer=execution_trace_observer,
                         custom_trace_id_callback=custom_trace_id_callback)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph; torch_npu's metrics are times of the host and of the NPU."""
        super().export_stacks(path, "self_privateuse1_time_total" if metric == "self_npu_time_total" else metric)

    def enable_profiler_in_child_thread(self, **options: Any) -> None:
        """Nothing to do: all threads are recorded, with the options of the profile."""

    def disable_profiler_in_child_thread(self) -> None:
        """Nothing to do: a thread is recorded until the profile stops."""


_KinetoProfile = profile


def supported_profiler_level() -> set[ProfilerLevel]:
    """All levels; they collect the same, `Level_none` excepted."""
    return set(ProfilerLevel)


def supported_ai_core_metrics() -> set[AiCMetrics]:
    """None: counters of the cores are not collected."""
    return {AiCMetrics.AiCoreNone}


def supported_export_type() -> set[ExportType]:
    """Text files."""
    return {ExportType.Text}


__all__ = [
    "AiCMetrics", "ExportType", "HostSystem", "ProfilerAction", "ProfilerActivity", "ProfilerLevel",
    "_ExperimentalConfig", "_KinetoProfile", "profile", "schedule", "supported_activities",
    "supported_ai_core_metrics", "supported_export_type", "supported_profiler_level", "tensorboard_trace_handler",
]
