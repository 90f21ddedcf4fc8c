"""`torch.utils.benchmark`: timing a statement."""

from __future__ import annotations

from .timer import Measurement, Timer

__all__ = ["Measurement", "Timer"]
