"""The fields of an event tree's nodes besides name and times, by kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..codes import Numbered
from ..names import MODULE_PREFIX, parse_frame
from ..trace import TensorInput


class EventType(Numbered):
    """The kinds of events in a tree, with PyTorch's numbers."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    OutOfMemory = 4
    PyCall = 5
    PyCCall = 6
    Kineto = 7

    def __str__(self) -> str:
        return f"_EventType.{self.name}"


class RecordScope(Numbered):
    """The kind of work of an event."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


@dataclass(frozen=True)
class Values:
    """How a tree writes element types, devices and the layout of tensors: by default as their names.

    `operands` says, for an op's name and overload, which arguments are tensors. If one is a number, as in `x + 1`,
    PyTorch makes a tensor of it; a tree shows it as that tensor.
    """

    dtype: Callable[[str], Any] = str
    device: Callable[[str], Any] = str
    layout: Any = "strided"
    sparse: Any = "sparse_coo"
    operands: Callable[[str, str], frozenset[int]] = lambda name, overload: frozenset()


class Identity(NamedTuple):
    """The tensor of an argument, as far as known."""

    number: int | None = None  # of the tensor
    allocation: int | None = None  # number of its memory
    address: int | None = None  # of its memory
    same: int | None = None  # the same number for all uses of one tensor


class TensorMetadata:
    """A tensor argument as it was when the op started.

    Its memory is known if shapes and memory were recorded; otherwise `id` and similar fields are None. `id` stays the
    same when the tensor moves to other memory; `allocation_id` belongs to the memory.
    """

    __slots__ = ("_given", "_identity", "_values", "device")

    def __init__(self, given: TensorInput, identity: Identity, where: Any, values: Values) -> None:
        self._given = given
        self._identity = identity
        self._values = values
        self.device = where

    @property
    def id(self) -> int | None:
        """The number of the tensor."""
        return self._identity.number

    @property
    def allocation_id(self) -> int | None:
        """The number of its memory, from 1."""
        return self._identity.allocation

    @property
    def storage_data_ptr(self) -> int | None:
        """The address of its memory."""
        return self._identity.address

    @property
    def impl_ptr(self) -> int | None:
        """The same for all uses of one tensor, and different for any other."""
        return self._identity.same

    @property
    def sizes(self) -> list[int]:
        """Size of each dimension."""
        return list(self._given.shape)

    @property
    def strides(self) -> list[int]:
        """Strides in elements."""
        return list(self._given.strides)

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self._given.shape)

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self._values.dtype(self._given.dtype)

    @property
    def layout(self) -> Any:
        """Strided, unless it has dimensions but no strides."""
        return self._values.layout if len(self._given.strides) == len(self._given.shape) else self._values.sparse

    def __repr__(self) -> str:
        return f"<tensor {self.sizes} {self._given.dtype}>"


@dataclass(frozen=True)
class TorchOpFields:
    """An op, a backward function or a scope."""

    name: str
    inputs: list[Any]
    scope: RecordScope
    sequence_number: int
    allow_tf32_cublas: bool = False  # an option of CUDA's matrix products


@dataclass(frozen=True)
class AllocationFields:
    """Memory that was allocated (positive size) or released (negative)."""

    id: int | None
    allocation_id: int | None
    ptr: int
    alloc_size: int
    total_allocated: int
    total_reserved: int
    device: Any


@dataclass(frozen=True)
class PyFrameState:
    """A place in a Python program."""

    file_name: str
    line_number: int
    function_name: str


@dataclass(frozen=True)
class NNModuleInfo:
    """The module of a call: its class, and a number that identifies it."""

    cls_name: str
    label: str
    self_ptr: int  # the same for the calls of one module; a recording keeps no addresses of modules
    cls_ptr: int  # the same for all modules of a class
    held: list[tuple[str, TensorMetadata, TensorMetadata | None]] | None = None

    @property
    def parameters(self) -> list[tuple[str, TensorMetadata, TensorMetadata | None]]:
        """Its own parameters at its first call in the recording: name, parameter and gradient."""
        if self.held is not None:
            return self.held
        raise NotImplementedError(f"parameters of {self.label}: a trace does not record which parameter is which; "
                                  "prof._memory_profile() tells parameters from other memory")


@dataclass(frozen=True)
class OptimizerInfo:
    """The optimizer of a step, with what it held after its first step in the recording.

    Parameters come with their gradients and a list of their state by name.
    """

    self_ptr: int
    parameters: list[tuple[TensorMetadata, TensorMetadata | None, list[tuple[str, TensorMetadata]]]]


@dataclass(frozen=True)
class PyCallFields:
    """A call of a Python function or of a module."""

    callsite: PyFrameState
    caller: PyFrameState
    module: NNModuleInfo | None
    optimizer: OptimizerInfo | None


@dataclass(frozen=True)
class PyCCallFields:
    """A call of a built-in function."""

    caller: PyFrameState


@dataclass(frozen=True)
class BackendFields:
    """An event of a delegate."""


@dataclass(frozen=True)
class KinetoFields:
    """Work on a device, its launch, or a pause of the program."""


@dataclass(frozen=True)
class OutOfMemoryFields:
    """An allocation that failed for lack of memory."""


@dataclass(frozen=True)
class VulkanFields:
    """An event of a Vulkan device."""


def frame_state(name: str) -> PyFrameState:
    """The place in a call's name: `model.py(12): forward`; a module's call has only a name."""
    frame = parse_frame(name)
    return PyFrameState(frame.file, frame.line, frame.function)


def module_label(name: str) -> str | None:
    """The module in a call's name, `nn.Module: Linear_0`, or None."""
    return name[len(MODULE_PREFIX):] if name.startswith(MODULE_PREFIX) else None


def number_as_tensor(value: complex) -> TensorInput:
    """The tensor without dimensions that PyTorch makes of a Python number."""
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else \
        "float64" if isinstance(value, float) else "complex128"
    return TensorInput((), kind, ())


def op_inputs(arguments: tuple[Any, ...], tensor: Callable[[int, int, TensorInput], TensorMetadata],
              operands: frozenset[int] = frozenset()) -> list[Any]:
    """Arguments in a tree's form: tensors and lists of them as metadata, numbers unchanged, None for the rest.

    Numbers at the positions `operands` are shown as tensors.
    """
    result: list[Any] = []
    for number, value in enumerate(arguments):
        if number in operands and isinstance(value, (bool, int, float, complex)):
            result.append(tensor(number, 0, number_as_tensor(value)))
        elif isinstance(value, TensorInput):
            result.append(tensor(number, 0, value))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, TensorInput) for item in value):
            result.append([tensor(number, place, item) for place, item in enumerate(value)])
        else:
            result.append(value if isinstance(value, (bool, int, float, complex)) else None)
    return result
