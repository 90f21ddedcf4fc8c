"""The part of the profiler that works while the user's program runs."""

from __future__ import annotations

from .assemble import assemble
from .children import with_children
from .recorder import Recorder, drop

__all__ = ["Recorder", "assemble", "drop", "with_children"]
