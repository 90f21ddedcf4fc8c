"""Execution traces: every op with its tensors, for tools that replay programs.

A second recording beside the profiler's, with a file format of its own: it keeps what was given to each op rather than
when it ran. `tap` notes it, `text` writes it, `op_schemas` spells signatures as PyTorch does, `face` is what one uses.
"""

from __future__ import annotations

from .face import ExecutionTraceObserver, _ITraceObserver

__all__ = ["ExecutionTraceObserver", "_ITraceObserver"]
