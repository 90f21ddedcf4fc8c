"""Cost of queueing a small op on the NPU, against the same op on the CPU: what the binding adds, in Python and ctypes.

The simulator runs with a model of no latency. Its own time (checking arguments, waking its worker) is not the
binding's, so besides the whole the row is measured with functions in the libraries' place that return at once.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import Any

from .timing import best_of

# Many short rounds: one that fits into a slice of the scheduler's is not disturbed on a machine that is busy.
ROUNDS, SECONDS = 400, 0.0003
CASES = {"add": lambda x: x + x, "mul by a number": lambda x: x * 2.0, "relu": lambda x: x.relu()}


def run() -> None:
    """Print one row per op."""
    os.environ.setdefault("MINDTORCH_NPU", "sim")
    os.environ.setdefault("MINDTORCH_NPU_SIM_MODEL", "zero")
    import mindtorch_v2 as torch
    from mindtorch_v2._backends.npu import call

    print("\nsmall ops on the NPU (simulator, no latency), 4x4 float32: CPU, NPU, ratio; binding alone, ratio")
    reason = torch.npu.unavailable_reason()
    if reason is not None:
        print(f"   none: {reason}")
        return
    host = torch.ones(4, 4)
    there = host.npu()
    for name, operation in CASES.items():
        works = [lambda operation=operation: operation(host), lambda operation=operation: operation(there)]
        mine, whole = best_of(works, ROUNDS, SECONDS)
        torch.npu.synchronize()
        with without_library(call):
            _, bare = best_of(works, ROUNDS, SECONDS)
        print(f"   {name:24} {mine * 1e6:7.2f} us {whole * 1e6:8.2f} us {whole / mine:6.1f}x "
              f"{bare * 1e6:8.2f} us {bare / mine:6.1f}x")


class without_library:
    """Operators and descriptions are made by functions that do nothing, so that what is left is the binding's own."""

    def __init__(self, call: Any) -> None:
        self.call = call

    def __enter__(self) -> None:
        self.kept = dict(vars(self.call.OBJECTS))
        for name in self.call.OBJECTS.NAMES:
            kind = ctypes.c_int32 if name.startswith("destroy") else ctypes.c_void_p
            setattr(self.call.OBJECTS, name, _like(getattr(self.call.OBJECTS, name), kind))
        self._tell()
        self.functions = []
        for operator in vars(self.call.CALLS).values():
            space = getattr(operator, "python", operator).__globals__
            self.functions.append((operator, space, space["plan"], space["run"]))
            self._set(operator, space, *[_like(space[name], ctypes.c_int32) for name in ("plan", "run")])

    def __exit__(self, *exc: object) -> None:
        vars(self.call.OBJECTS).clear()
        vars(self.call.OBJECTS).update(self.kept)
        self._tell()
        for operator, space, plan, run in self.functions:
            self._set(operator, space, plan, run)

    def _set(self, operator: Any, space: dict[str, Any], plan: Any, run: Any) -> None:
        space["plan"], space["run"] = plan, run
        if hasattr(operator, "python"):
            operator.plan, operator.run = self.call.address(plan), self.call.address(run)

    def _tell(self) -> None:
        if self.call.LAUNCH is not None:
            self.call.tell_objects()


def _like(function: Any, result: Any) -> Any:
    """A C function of the same arguments that does nothing: it returns 0, or, as a pointer, one that is not NULL."""
    nothing = LIBM.fegetround if result is ctypes.c_int32 else ctypes.CDLL(None).__errno_location
    return ctypes.CFUNCTYPE(result, *function.argtypes)(ctypes.cast(nothing, ctypes.c_void_p).value or 0)


# Its `fegetround` takes no argument and returns the mode that is in force unless somebody changes it, 0. That, and
# `__errno_location`, which returns an address, are a few instructions; a call of the system would be most of a launch.
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
