"""The columns of a trace: one entry each, from which storage, checks and documentation are derived."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Kind(IntEnum):
    """What an event is. The order is part of the file format: append only."""

    OP = 0  # an op, `aten::add`
    BACKWARD = 1  # `autograd::engine::evaluate_function: AddBackward0`
    BACKWARD_FUNCTION = 2  # `AddBackward0`
    SCOPE = 3  # `record_function("mine")`, `Optimizer.step#SGD.step`
    STEP = 4  # `ProfilerStep#3`
    PYTHON = 5  # a Python function
    MODULE = 6  # a call of an nn.Module
    KERNEL = 7  # work on a device
    COPY = 8  # a copy to, from or on a device
    LAUNCH = 9  # the host's call that queued device work
    GC = 10  # a pause of Python's garbage collector
    OVERHEAD = 11  # the profiler's own work
    OTHER = 12  # an event read from a file that fits nowhere else


class Role(IntEnum):
    """What a module or an optimizer said a tensor is."""

    PARAMETER = 1
    GRADIENT = 2
    OPTIMIZER_STATE = 3
    MOVED = 4  # said of two at a time: the memory that a tensor had, and the memory that it has from then on


@dataclass(frozen=True)
class KindFacts:
    """How a kind appears to users and in files."""

    category: str  # `cat` in a Chrome trace
    user_kind: str  # `event["kind"]`
    scope: int  # PyTorch's RecordScope


KINDS: dict[Kind, KindFacts] = {
    Kind.OP: KindFacts("cpu_op", "op", 0),
    Kind.BACKWARD: KindFacts("cpu_op", "op", 0),
    Kind.BACKWARD_FUNCTION: KindFacts("cpu_op", "op", 1),
    Kind.SCOPE: KindFacts("user_annotation", "scope", 7),
    Kind.STEP: KindFacts("user_annotation", "step", 7),
    Kind.PYTHON: KindFacts("python_function", "python", 0),
    Kind.MODULE: KindFacts("python_function", "module", 0),
    Kind.KERNEL: KindFacts("kernel", "kernel", 0),
    Kind.COPY: KindFacts("gpu_memcpy", "kernel", 0),
    Kind.LAUNCH: KindFacts("privateuse1_runtime", "launch", 0),
    Kind.GC: KindFacts("python_function", "gc", 0),
    Kind.OVERHEAD: KindFacts("overhead", "overhead", 0),
    Kind.OTHER: KindFacts("other", "other", 0),
}


@dataclass(frozen=True)
class Column:
    """One fact per event."""

    name: str
    dtype: type[np.generic]
    default: int
    meaning: str


COLUMNS = (
    Column("name", np.int32, 0, "index into `names`"),
    Column("overload", np.int32, 0, "index into `names`; 0 is the empty name"),
    Column("kind", np.uint8, 0, "a Kind"),
    Column("start_ns", np.int64, 0, "host clock, nanoseconds"),
    Column("end_ns", np.int64, 0, "host clock, nanoseconds"),
    Column("thread", np.int32, 0, "index into `threads`"),
    Column("parent", np.int32, -1, "row of the innermost event that encloses this one on its thread, or -1; Python "
           "calls are parents of Python calls only"),
    Column("sequence", np.int64, -1, "autograd sequence number that ties an op to its backward, or -1"),
    Column("inputs", np.int32, -1, "index into `inputs`, or -1"),
    Column("stack", np.int32, -1, "index into `stacks`, or -1"),
    Column("module", np.int32, -1, "index into `names`: path of the module it ran in, or -1"),
    Column("step", np.int32, 0, "number of profiler steps before it started"),
    Column("device", np.int16, 0, "0 CPU, 1 CUDA, 20 NPU (PrivateUse1), as PyTorch numbers device types"),
    Column("device_index", np.int16, -1, "which device of that type, or -1"),
    Column("flops", np.int64, -1, "floating point operations by the op's formula, or -1 where there is none"),
    Column("correlation", np.int64, 0, "ties device work to the host event that launched it; 0 for none"),
    Column("record_id", np.int64, 0, "the node's `rf_id` in an execution trace taken at the same time; 0 for none"),
)

MEMORY_COLUMNS = (
    Column("time_ns", np.int64, 0, "host clock, nanoseconds"),
    Column("thread", np.int32, 0, "index into `threads`"),
    Column("size_bytes", np.int64, 0, "positive for an allocation, negative for a release"),
    Column("address", np.int64, 0, "identity of the block while it lives"),
    Column("total_bytes", np.int64, 0, "allocated on the device after this"),
    Column("reserved_bytes", np.int64, 0, "reserved on the device after this"),
    Column("device", np.int16, 0, "device type as in the event column"),
    Column("device_index", np.int16, -1, "which device of that type, or -1"),
    Column("row", np.int32, -1, "the innermost event in which it happened, or -1"),
)

# Recorded together with memory, shapes and stacks: what an analysis of memory over time needs.
USE_COLUMNS = (
    Column("row", np.int32, -1, "the event that has this memory as an argument"),
    Column("argument", np.int16, 0, "position of the argument in the op's signature"),
    Column("address", np.int64, 0, "identity of the block, as in the memory table"),
    Column("size_bytes", np.int64, 0, "size of the whole block"),
    Column("written", np.uint8, 0, "1 if the op changes this argument"),
)

ROLE_COLUMNS = (
    Column("time_ns", np.int64, 0, "host clock, nanoseconds: when it was seen"),
    Column("address", np.int64, 0, "identity of the block at that time"),
    Column("size_bytes", np.int64, 0, "size of the whole block"),
    Column("role", np.uint8, 0, "a Role"),
)

# Recorded with modules: what was called, and the model that it is part of.
MODULE_COLUMNS = (
    Column("path", np.int32, 0, "index into `names`, as in the event column `module`"),
    Column("label", np.int32, 0, "index into `names`: class and number, `Linear_0`"),
    Column("parent", np.int32, -1, "row of the nearest module around it in the model that was called too, or -1"),
    Column("parameters", np.int64, 0, "elements of parameters that are its own; one that is shared counts once"),
)

MODULE_CALL_COLUMNS = (
    Column("module", np.int32, 0, "row of the module table"),
    Column("thread", np.int32, 0, "index into `threads`"),
    Column("start_ns", np.int64, 0, "host clock, nanoseconds"),
    Column("end_ns", np.int64, 0, "host clock, nanoseconds"),
    Column("parent", np.int32, -1, "row of the call around this one on its thread, or -1"),
)

FAILURE_COLUMNS = (
    Column("time_ns", np.int64, 0, "host clock, nanoseconds: when an allocation failed"),
    Column("thread", np.int32, 0, "index into `threads`"),
    Column("size_bytes", np.int64, 0, "what was asked for"),
    Column("total_bytes", np.int64, 0, "allocated on the device at that time"),
    Column("reserved_bytes", np.int64, 0, "reserved on the device at that time"),
    Column("device", np.int16, 0, "device type as in the event column"),
    Column("device_index", np.int16, -1, "which device of that type, or -1"),
)
