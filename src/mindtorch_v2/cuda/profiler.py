"""`torch.cuda.profiler`: NVIDIA's profiler, which needs its devices."""

from __future__ import annotations

from .._absent import refusing

__all__ = ["init", "profile", "start", "stop"]

_REASON = "Torch not compiled with CUDA enabled"
init = refusing("init", AssertionError, _REASON)
profile = refusing("profile", AssertionError, _REASON)
start = refusing("start", AssertionError, _REASON)
stop = refusing("stop", AssertionError, _REASON)
