"""Autocast: while it is on, listed ops get their floating point arguments in a suitable precision.

The generated function of a listed op (see `autocast_lists`) checks the flag `AUTOCAST`, which is set while any thread
is inside an enabled autocast, and passes its arguments to `autocast_call`. That casts them and calls the op again with
casting off, so that the ops inside it take their arguments unchanged; a profile shows the casts and the op inside the
op, as in PyTorch. Nothing else in the runtime knows about autocast, and an op on no list does not check the flag.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .._dtype import bfloat16, dtype, float16, float32, float64
from .._forking import held_across_forks
from .._tensor import TENSOR_TYPES, Tensor
from .namespace import aten
from .observer import HOOK
from .registry import Op
from .state import THREAD, ThreadState

# The device types that PyTorch has autocast for, and the first dtype of each. Casts happen where tensors can be: on the
# CPU, on NPUs and on registered devices.
DEFAULT_DTYPES = {"cpu": bfloat16, "cuda": float16, "npu": float16, "xpu": float16, "mps": float16, "hpu": bfloat16,
                  "mtia": float16, "maia": bfloat16, "ipu": float16, "xla": bfloat16}


class _Settings(threading.local):
    """A thread's settings. `ThreadState.autocast`, which ops check, says whether there are any."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.dtypes = dict(DEFAULT_DTYPES)
        self.cache_enabled = True
        self.nesting = 0
        # (id of a parameter, dtype) -> the parameter, which keeps the id unique, and its cast.
        self.cache: dict[tuple[int, dtype], tuple[Tensor, Tensor]] = {}


SETTINGS = _Settings()
_LOCK = held_across_forks(threading.Lock())
_threads_inside = 0


def set_enabled(device_type: str, enabled: bool) -> None:
    """Turn autocast for a device type on or off, in this thread."""
    global _threads_inside
    if enabled:
        SETTINGS.enabled.add(device_type)
    else:
        SETTINGS.enabled.discard(device_type)
    state = THREAD.state
    inside = bool(SETTINGS.enabled)
    if state.autocast != inside:
        state.autocast = inside
        with _LOCK:
            _threads_inside += 1 if inside else -1
            HOOK["AUTOCAST"] = _threads_inside > 0


def autocast_call(op: Op, policy: str, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a listed op with its arguments cast; None if this thread or device does not cast them."""
    state = THREAD.state
    where = device_type_of((*values, *named.values())) if state.autocast else None
    if where not in SETTINGS.enabled:
        return None
    low = SETTINGS.dtypes[where]
    state.autocast = False
    try:
        target = float32
        if policy == "lower":
            target = low
        elif policy == "widest":
            target = widest(values, low)
        # The last argument first, as in PyTorch: the order of casts shows in the order of backward.
        options = {name: cast(value, target, state, low) for name, value in named.items()}
        arguments = [cast(value, target, state, low) for value in reversed(values)]
        return op.forms[False](*reversed(arguments), **options)
    finally:
        state.autocast = True


def device_type_of(values: Any) -> str | None:
    """The kind of device of the arguments: that of the first tensor outside the CPU, otherwise the CPU's."""
    found = None
    for value in values:
        kind = None
        if type(value) in TENSOR_TYPES:
            kind = "cpu" if type(value._a) is np.ndarray else value._a.device.type
        elif type(value) in (list, tuple):
            kind = device_type_of(value)
        if kind is not None and kind != "cpu":
            return kind
        found = found or kind
    return found


def casts(values: Any) -> bool:
    """Whether autocast is on in this thread for the device of the arguments."""
    return THREAD.state.autocast and device_type_of(values) in SETTINGS.enabled


def on_cpu(value: Any) -> bool:
    """Whether autocast for the CPU is on, and an argument is a tensor there, or a list with one."""
    return "cpu" in SETTINGS.enabled and device_type_of((value,)) == "cpu"


def eligible(tensor: Tensor) -> bool:
    """Whether autocast may change the dtype: an explicit float64 stays."""
    kind = tensor.dtype
    return kind.is_floating_point and kind is not float64 and not tensor.is_meta


def cast(value: Any, target: dtype, state: ThreadState, low: dtype) -> Any:
    """An argument in the target dtype if it is an eligible tensor, otherwise unchanged."""
    if type(value) in (list, tuple):
        return [cast(item, target, state, low) for item in value] if value and type(value[0]) in TENSOR_TYPES else value
    if type(value) not in TENSOR_TYPES or value.dtype is target or not eligible(value):
        return value
    is_parameter = value._rg and value._edge is None and value._of is None and value.dtype is float32
    if not (is_parameter and SETTINGS.cache_enabled and not state.inference and target is low):
        return aten.to__dtype(value, target)
    found = SETTINGS.cache.get((id(value), target))
    if found is None:
        # Recorded even under no_grad: a later use of the same cast may need the path back to the parameter.
        grad, state.grad = state.grad, True
        try:
            found = (value, aten.to__dtype(value, target))
        finally:
            state.grad = grad
        SETTINGS.cache[id(value), target] = found
    return found[1]


def widest(values: tuple[Any, ...], low: dtype) -> dtype:
    """The dtype for ops whose arguments must agree: float32 if any of them is float32."""
    found = low
    for value in values:
        for tensor in value if type(value) in (list, tuple) else (value,):
            if type(tensor) in TENSOR_TYPES and eligible(tensor):
                if tensor.dtype is float32:
                    found = float32
                elif tensor.dtype is not low and found is not float32:
                    raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return found
