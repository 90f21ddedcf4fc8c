"""`torch.cuda.nvtx`: marks for NVIDIA's tools, which a build without CUDA does not have."""

from __future__ import annotations

from .._absent import refusing

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

REASON = "NVTX functions not installed. Are you sure you have a CUDA build?"
mark = refusing("mark", RuntimeError, REASON)
range = refusing("range", RuntimeError, REASON)
range_end = refusing("range_end", RuntimeError, REASON)
range_pop = refusing("range_pop", RuntimeError, REASON)
range_push = refusing("range_push", RuntimeError, REASON)
range_start = refusing("range_start", RuntimeError, REASON)
