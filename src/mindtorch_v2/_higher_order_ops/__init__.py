"""`torch._higher_order_ops`: ops that take functions. Here they run as plain Python."""

from __future__ import annotations

from .._functions import cond
from .associative_scan import associative_scan

__all__ = ["associative_scan", "cond"]
