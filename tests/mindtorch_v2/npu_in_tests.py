"""The NPU in tests that compare values: it draws the CPU's random numbers, and ops that it does not have are noted.

An NPU makes random numbers of its own. Here its generators hold the CPU's kind of stream, and ops that draw run on the
host and are copied over. Everything else runs where it always does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mindtorch_v2._backends.base import GENERIC, INPLACE, Device, device_named, drawn_position
from mindtorch_v2._backends.cpu.rng import MersenneGenerator
from mindtorch_v2._device import CPU, device
from mindtorch_v2._random import DEFAULTS, Generator, default_generator

# Functions that draw and are no ops, so that no signature tells.
BESIDES = ("permute_into",)


class OnHost(Generator):
    """A generator of another device, for kernels of the CPU."""

    def __init__(self, generator: Generator) -> None:
        self._device, self._engine = CPU, generator._engine


def draw_on_host() -> None:
    """From here on, the NPU's random numbers are those that the CPU has for the same seed."""
    npu = device_named(device("npu"))
    own = npu.kernel

    def kernel(op: Any, form: str) -> Callable[..., Any] | None:
        if op.key not in BESIDES and drawn_position(op) is None:
            return own(op, form)
        on_cpu = op.cpu_inplace if form == INPLACE else op.cpu_full or op.cpu
        return None if on_cpu is None or op.key in GENERIC else drawing(npu, on_cpu, form == INPLACE or
                                                                        op.key in BESIDES)

    npu.new_engine = lambda where: MersenneGenerator()  # type: ignore[method-assign]
    npu.kernel = kernel  # type: ignore[method-assign]


def draw_from_one_stream() -> None:
    """Besides, what is drawn on the NPU and on the CPU comes from one stream, as if all were on the CPU."""
    draw_on_host()
    shared = Generator(device("npu", 0))
    shared._engine = default_generator._engine
    DEFAULTS[shared.device] = shared


def note_missing() -> list[str]:
    """A list that from here on gets what the NPU says when it does not have an op."""
    npu = device_named(device("npu"))
    own = npu.missing
    said: list[str] = []

    def missing(op: Any, form: str) -> Callable[..., Any]:
        try:
            return own(op, form)
        except NotImplementedError as error:
            said.append(str(error))
            raise

    npu.missing = missing  # type: ignore[method-assign]
    return said


def drawing(npu: Device, on_cpu: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    """A kernel of the CPU between copies."""

    def run(*arguments: Any) -> Any:
        given = [npu.to_host(one) if isinstance(one, npu.array_class) else OnHost(one) if isinstance(one, Generator)
                 else one for one in arguments]
        where = next(one.device for one in arguments if isinstance(one, npu.array_class))
        before = [one.copy() if isinstance(one, np.ndarray) else None for one in given]
        made = on_cpu(*given)
        for array, drawn, old in list(zip(arguments, given, before, strict=True))[1:]:
            if old is not None and not np.array_equal(old, drawn, equal_nan=drawn.dtype.kind == "f"):
                npu.copy(array, npu.from_host(drawn, where))  # such as the noise of `rrelu`
        if inplace:
            made = given[0] if made is None else made
            return npu.copy(arguments[0], npu.from_host(np.asarray(made), where))
        return npu.from_host(np.asarray(made), where)

    return run
