"""`torch_npu.profiler.dynamic_profile`: recordings that another process asks for, which this runtime does not have."""

from __future__ import annotations

from ..._absent import refusing

_REASON = ("torch_npu.profiler.dynamic_profile.{0}: a recording is not switched on from outside by this profiler; "
           "use profile(schedule=…), or 'mtprof run'")
init, start, step, stop = (refusing(name, NotImplementedError, _REASON)
                           for name in ("init", "start", "step", "stop"))

__all__ = ["init", "start", "step", "stop"]
