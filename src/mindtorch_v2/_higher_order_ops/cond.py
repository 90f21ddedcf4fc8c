"""`torch._higher_order_ops.cond`: one of two functions, which runs as plain Python."""

from __future__ import annotations

from .._functions import cond

__all__ = ["cond", "cond_op"]

cond_op = cond
