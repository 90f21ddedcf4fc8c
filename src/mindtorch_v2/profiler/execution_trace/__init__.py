"""Execution traces: every op with its tensors, for tools that replay programs.

It is a second recording beside the profiler's, with its own file format: it keeps what was given to each op instead of
when it ran. `tap` records it, `text` writes it, `op_schemas` spells signatures as PyTorch does, `face` is the public
class.
"""

from __future__ import annotations

from .face import ExecutionTraceObserver, _ITraceObserver

__all__ = ["ExecutionTraceObserver", "_ITraceObserver"]
