"""What a recording is: immutable columns plus tables of interned names, inputs and stacks. Knows no tensor."""

from __future__ import annotations

from .columns import COLUMNS, KINDS, MEMORY_COLUMNS, ROLE_COLUMNS, USE_COLUMNS, Kind, Role
from .trace import DeviceKind, Frame, ThreadInfo, Trace, TraceBuilder

__all__ = [
    "COLUMNS", "KINDS", "MEMORY_COLUMNS", "ROLE_COLUMNS", "USE_COLUMNS", "DeviceKind", "Frame", "Kind", "Role",
    "ThreadInfo", "Trace", "TraceBuilder",
]
