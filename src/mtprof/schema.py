"""The schema of a trace, as data: every table and column with its type, meaning, references and clock.

All code that treats tables alike uses this file: building and checking them, selecting rows or a stretch of time,
moving clocks, joining and comparing traces, writing and reading them, and the page `docs/schema.md`. A new side table
is one entry in `TABLES`, the code that fills it and the view that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .codes import Code, unknown
from .devices import DeviceType


class Kind(Code):
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
    OTHER = 12  # any other event from a file
    FIRST_USE = 13  # the runtime prepared an op's function at its first use
    FILL = 14  # memory of a device was set to a value


class Direction(Code):
    """The direction of a copy. The numbers are part of the file format."""

    UNKNOWN = 0  # also for memory that was filled, not copied
    HOST_TO_HOST = 1
    HOST_TO_DEVICE = 2
    DEVICE_TO_HOST = 3
    DEVICE_TO_DEVICE = 4
    PEER = 5  # to another device


class Role(Code):
    """What a module or an optimizer states about a tensor."""

    PARAMETER = 1
    GRADIENT = 2
    OPTIMIZER_STATE = 3


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
    Kind.FIRST_USE: KindFacts("first_use", "first_use", 0),
    Kind.FILL: KindFacts("gpu_memset", "kernel", 0),
}

PYTHON_KINDS = (Kind.PYTHON, Kind.MODULE)  # they form trees of their own
DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.FILL)


@dataclass(frozen=True)
class Column:
    """One fact per row of a table.

    `refers` names the table or pool whose row the number is; -1 then means none. An `owned` row is removed together
    with the row it refers to; any other row only loses the reference. If a column refers to its own table, the table is
    a tree. `clock` is "host" for nanoseconds of the clock of event times. An `identity` is a number with a meaning only
    in its own process. `kineto` is the key of the column in a Chrome trace, in the `args` of the event that the row is
    about.
    """

    name: str
    dtype: type[np.generic]
    default: int
    meaning: str
    refers: str | None = None
    owned: bool = False
    clock: str | None = None
    identity: bool = False
    codes: type[Code] | None = None
    kineto: str = ""

    def unknown_code(self, value: np.ndarray) -> str:
        """What is wrong with the codes in such a column; nothing if all are known."""
        if self.codes is None or (code := unknown(self.codes, value)) is None:
            return ""
        return f"has the code {code}, which is none of {self.codes.__name__}"


@dataclass(frozen=True)
class Table:
    """A table of a trace.

    `needs` says how to record it; without that a trace does not have the table. Rows are sorted by `order`, if given.
    `placed` says how a trace builder finds a reference to events: "around" takes the innermost event around the row's
    thread and time, "next" the op that starts next on that thread. Without it, rows refer to events by the order in
    which these were added. `since` is the number of the first file format that has the table.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    needs: str = ""
    order: tuple[str, ...] = ()
    placed: str | None = None
    in_kineto: bool = False  # whether Chrome traces hold it too
    told_by: str = ""  # what gives its rows in a Chrome trace, if that does not hold the table itself
    kinds: tuple[Kind, ...] = ()  # of the events that its rows are about
    since: int = 1
    by_name: dict[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {column.name: column for column in self.columns})

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def time(self) -> Column | None:
        """The column with the time at which a row begins."""
        return next((column for column in self.columns if column.clock), None)

    @property
    def tree(self) -> Column | None:
        """The column that refers to the table itself."""
        return next((column for column in self.columns if column.refers == self.name), None)

    @property
    def stands_alone(self) -> bool:
        """Whether rows refer to nothing. A Chrome trace has such a table under `mtprof` at the top."""
        return not any(column.refers for column in self.columns)

    @property
    def categories(self) -> frozenset[str]:
        """The category in a Chrome trace of the events that rows are about."""
        return frozenset(KINDS[kind].category for kind in self.kinds)

    @property
    def about(self) -> Column | None:
        """The column with the event that a row describes, if a Chrome trace has the row in the event's `args`."""
        written = any(column.kineto for column in self.columns)
        return next((column for column in self.columns if written and column.refers == "events"), None)


@dataclass(frozen=True)
class Field:
    """A part of a pool's entries: text, a number, or any plain value (JSON in a file)."""

    name: str
    type: str  # "text", "int" or "json"
    meaning: str


@dataclass(frozen=True)
class Pool:
    """Values that rows refer to by number. In memory it is a list of plain values or, with several fields, of
    tuples."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    unique: bool = False  # whether joined traces share equal entries


POOLS = {pool.name: pool for pool in (
    Pool("names", "every text that rows refer to; entry 0 is the empty text", (Field("text", "text", "the text"),),
         unique=True),
    Pool("threads", "threads of processes, and streams of devices", (
        Field("pid", "int", "the operating system's number of the process"),
        Field("tid", "int", "the operating system's number of the thread, or the number of the stream"),
        Field("name", "text", "the name that the program gave it"),
        Field("process_name", "text", "the name of the process"))),
    Pool("inputs", "arguments of ops, a tuple per entry", (
        Field("arguments", "json", "tensors as shape, dtype and strides; numbers, text, nothing, or lists of those"),),
         unique=True),
    Pool("frames", "places in Python code", (
        Field("file", "text", "path of the file; empty for a built-in function"),
        Field("line", "int", "the line that ran"),
        Field("function", "text", "name of the function")), unique=True),
)}

_TIME = "host clock, nanoseconds"
_BY_CALLS = "Python calls of modules (with_stack=True)"
_LINE = "the line that ran at its start, in the innermost Python call that has lines; 0 if unknown"
_DEVICE = "PyTorch's number of the device type: 0 CPU, 1 CUDA, 20 NPU (PrivateUse1)"


def _device_columns() -> tuple[Column, Column]:
    return (Column("device", np.int16, 0, _DEVICE, codes=DeviceType),
            Column("device_index", np.int16, -1, "index of the device, or -1"))


TABLES = {table.name: table for table in (
    Table("events", "what ran: ops, scopes, Python calls, device work", (
        Column("name", np.int32, 0, "its name", "names"),
        Column("overload", np.int32, 0, "an op's overload; 0 for none", "names"),
        Column("kind", np.uint8, 0, "what kind of event it is", codes=Kind),
        Column("start_ns", np.int64, 0, _TIME, clock="host"),
        Column("end_ns", np.int64, 0, _TIME, clock="host"),
        Column("thread", np.int32, 0, "where it ran", "threads"),
        Column("parent", np.int32, -1, "the innermost event around it on its thread; Python calls are parents of "
               "Python calls only", "events"),
        Column("sequence", np.int64, -1, "autograd's number that links an op to its backward, or -1"),
        Column("inputs", np.int32, -1, "its arguments", "inputs"),
        Column("stack", np.int32, -1, "the Python calls around it", "stacks"),
        Column("line", np.int32, 0, _LINE),
        Column("module", np.int32, -1, "path of the module it ran in", "names"),
        Column("step", np.int32, 0, "number of profiler steps before it started"),
        *_device_columns(),
        Column("flops", np.int64, -1, "floating point operations by the op's formula, or -1 without a formula"),
        Column("correlation", np.int64, 0, "links device work to the host event that launched it; 0 for none"),
        Column("record_id", np.int64, 0, "the node's `rf_id` in an execution trace taken at the same time; 0 for none"),
    ), order=("thread", "start_ns", "-end_ns"), in_kineto=True),
    Table("stacks", "Python stacks: an innermost frame, and the stack of its caller", (
        Column("frame", np.int32, 0, "the innermost frame", "frames"),
        Column("caller", np.int32, -1, "the stack around it", "stacks"),
    ), needs="with_stack=True", in_kineto=True),
    Table("memory", "allocations and releases of tensor memory", (
        Column("time_ns", np.int64, 0, _TIME, clock="host"),
        Column("thread", np.int32, 0, "where it happened", "threads"),
        Column("size_bytes", np.int64, 0, "positive for an allocation, negative for a release"),
        Column("address", np.int64, 0, "address of the block while it lives", identity=True),
        Column("total_bytes", np.int64, 0, "bytes allocated on the device after this"),
        Column("reserved_bytes", np.int64, 0, "bytes reserved on the device after this"),
        *_device_columns(),
        Column("row", np.int32, -1, "the innermost event in which it happened", "events"),
        Column("line", np.int32, 0, _LINE),
    ), needs="profile_memory=True", order=("time_ns",), placed="around", in_kineto=True),
    Table("failures", "allocations that failed for lack of memory", (
        Column("time_ns", np.int64, 0, _TIME, clock="host"),
        Column("thread", np.int32, 0, "where it happened", "threads"),
        Column("size_bytes", np.int64, 0, "bytes requested"),
        Column("total_bytes", np.int64, 0, "bytes allocated on the device at that time"),
        Column("reserved_bytes", np.int64, 0, "bytes reserved on the device at that time"),
        *_device_columns(),
    ), needs="profile_memory=True", order=("time_ns",), in_kineto=True),
    Table("uses", "the memory of ops' arguments", (
        Column("row", np.int32, -1, "the op", "events", owned=True),
        Column("argument", np.int16, 0, "position of the argument in the op's signature"),
        Column("address", np.int64, 0, "address of the block, as in `memory`; 0 for none", identity=True),
        Column("size_bytes", np.int64, 0, "size of the whole block"),
        Column("written", np.uint8, 0, "1 if the op changes this argument"),
        Column("tensor", np.int64, 0, "identity of the tensor while it lives; 0 for none", identity=True),
        *_device_columns(),
    ), needs="record_shapes=True and profile_memory=True", placed="next"),
    Table("moves", "tensors that moved to other memory", (
        Column("time_ns", np.int64, 0, _TIME, clock="host"),
        Column("tensor", np.int64, 0, "identity of the tensor", identity=True),
        Column("address", np.int64, 0, "address of its old block, or 0", identity=True),
        Column("new_address", np.int64, 0, "address of its new block, or 0", identity=True),
    ), needs="record_shapes=True and profile_memory=True"),
    Table("roles", "the roles of memory that modules and optimizers stated each time they ran", (
        Column("time_ns", np.int64, 0, _TIME, clock="host"),
        Column("address", np.int64, 0, "address of the block at that time", identity=True),
        Column("size_bytes", np.int64, 0, "size of the whole block"),
        Column("role", np.uint8, 0, "its role", codes=Role),
        *_device_columns(),
    ), needs="record_shapes=True, profile_memory=True and with_stack=True"),
    Table("modules", "the modules that were called", (
        Column("path", np.int32, 0, "its path in the model, as in the event column `module`", "names"),
        Column("label", np.int32, 0, "class and number, `Linear_0`", "names"),
        Column("parent", np.int32, -1, "the nearest module around it in the model that was also called", "modules"),
        Column("parameters", np.int64, 0, "elements of its own parameters; a shared parameter counts once; "
               "0 in Chrome traces"),
    ), needs="with_modules=True", told_by=_BY_CALLS),
    Table("module_calls", "their calls", (
        Column("start_ns", np.int64, 0, _TIME, clock="host"),
        Column("end_ns", np.int64, 0, _TIME, clock="host"),
        Column("module", np.int32, 0, "the module", "modules", owned=True),
        Column("thread", np.int32, 0, "where it ran", "threads"),
        Column("parent", np.int32, -1, "the call around this one on its thread", "module_calls"),
    ), needs="with_modules=True", told_by=_BY_CALLS, order=("thread", "start_ns", "-end_ns")),
    Table("holders", "modules and optimizers when they were first seen", (
        Column("time_ns", np.int64, 0, _TIME, clock="host"),
        Column("label", np.int32, -1, "a module's class and number, `Linear_0`; none for an optimizer", "names"),
        Column("optimizer", np.int64, 0, "identity of the optimizer while it lives, or 0", identity=True),
    ), needs="with_stack=True"),
    Table("held", "the tensors that they held then", (
        Column("holder", np.int32, -1, "who", "holders", owned=True),
        Column("parameter", np.int32, 0, "number of the parameter, also for its gradient and state"),
        Column("role", np.uint8, 0, "its role", codes=Role),
        Column("name", np.int32, 0, "name of a module's parameter, or of an optimizer's state", "names"),
        Column("description", np.int32, -1, "its shape, dtype and strides", "inputs"),
        Column("address", np.int64, 0, "address of its block", identity=True),
        Column("tensor", np.int64, 0, "identity of the tensor while it lives", identity=True),
    ), needs="with_stack=True"),
    Table("optimizer_steps", "steps of optimizers", (
        Column("time_ns", np.int64, 0, "host clock, nanoseconds: at the end of the step", clock="host"),
        Column("holder", np.int32, -1, "the optimizer", "holders", owned=True),
    ), needs="with_stack=True"),
    Table("copies", "copies to, from and on devices, and fills of device memory", (
        Column("row", np.int32, -1, "the copy or fill", "events", owned=True),
        Column("size_bytes", np.int64, 0, "bytes copied or filled", kineto="bytes"),
        Column("direction", np.uint8, 0, "direction of the copy", codes=Direction, kineto="Copy direction"),
    ), needs="work on a device", order=("row",), kinds=(Kind.COPY, Kind.FILL), in_kineto=True, since=2),
    Table("collectives", "communication between the ranks of a job, on the host and on devices", (
        Column("row", np.int32, -1, "the op or the kernel", "events", owned=True),
        Column("operation", np.int32, 0, "`allreduce`, `send`", "names", kineto="Collective name"),
        Column("dtype", np.int32, 0, "type of the elements, as PyTorch spells it: `Float`", "names", kineto="dtype"),
        Column("in_elements", np.int64, 0, "elements that this rank sent", kineto="In msg nelems"),
        Column("out_elements", np.int64, 0, "elements that it received", kineto="Out msg nelems"),
        Column("group", np.int32, 0, "name of the process group", "names", kineto="Process Group Name"),
        Column("group_description", np.int32, 0, "purpose of the group", "names",
               kineto="Process Group Description"),
        Column("group_size", np.int32, 0, "number of ranks in the group", kineto="Group size"),
        Column("ranks", np.int32, 0, "the ranks, as a list in JSON", "names", kineto="Process Group Ranks"),
        Column("rank", np.int32, -1, "rank of this process in the job, or -1", kineto="Rank"),
        Column("source", np.int32, -1, "the sending rank, in a message from one rank to another", kineto="Src Rank"),
        Column("target", np.int32, -1, "the receiving rank", kineto="Dst Rank"),
        Column("number", np.int64, -1, "number of the collective in its group; the same on all ranks", kineto="Seq"),
        Column("wait", np.int32, -1, "the event in which the program waited for it, if it was asynchronous", "events"),
    ), needs="torch.distributed", order=("row",), kinds=(Kind.OP, Kind.KERNEL, Kind.SCOPE), in_kineto=True, since=2),
    Table("collections", "pauses of Python's garbage collector and what they found", (
        Column("row", np.int32, -1, "the pause", "events", owned=True),
        Column("generation", np.uint8, 0, "0 for new objects, 2 for all", kineto="generation"),
        Column("collected", np.int64, 0, "objects that were freed", kineto="collected"),
        Column("uncollectable", np.int64, 0, "objects that could not be freed", kineto="uncollectable"),
    ), needs="record_python_gc_info=True", order=("row",), kinds=(Kind.GC,), in_kineto=True, since=2),
    Table("clocks", "comparisons of device clocks with the host's, used to convert device times", (
        Column("time_ns", np.int64, 0, "host clock, nanoseconds: in the middle of the comparison", clock="host"),
        Column("device_ns", np.int64, 0, "the device's own clock at that time, nanoseconds"),
        Column("error_ns", np.int64, 0, "possible error: half of the time of the comparison"),
        *_device_columns(),
    ), needs="work on a device", order=("time_ns",), in_kineto=True, since=2),
)}

KINETO_TABLES = tuple(name for name, table in TABLES.items() if table.in_kineto)

# In a trace's metadata: the options of the recording.
FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")

# Facts of the whole recording: name, meaning and clock.
FACTS = (
    ("start_ns", "when recording began: host clock, nanoseconds", "host"),
    ("end_ns", "when recording ended: host clock, nanoseconds", "host"),
    ("epoch_ns", "what to add to the host clock to get nanoseconds since 1970", None),
    ("dropped", "events beyond `max_events`, which were not kept", None),
    ("first_id", "number of the first event; no two recordings of a process share a number", None),
)
