"""The device protocol: memory, copies, views, random numbers, streams, kernels and profile of one kind of device.

`Device` is the protocol, and `register` is all that a new device needs: the op table, autograd, `nn`, optimizers and
files reach memory only through it. `cpu/device.py` and `meta.py` are devices; the tests have one whose memory the host
cannot see (`tests/mindtorch_v2/null_device.py`), on which the op suite runs.

The functions below find the device of an array; the rest of the runtime calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._device import CPU, KNOWN_TYPES, device
from .._memory_format import CHANNELS_LAST_ORDER, preserve_format
from .._shape import numel
from .array import DeviceArray, Memory, view_kernel
from .geometry import dense_strides, ordered_strides, row_major, shows_twice, span_bytes
from .overlap import apart

Shape = tuple[int, ...]
Kernel = Callable[..., Any]
# The forms of an op that can have a kernel of their own.
NEW, INPLACE, OUT = "new", "inplace", "out"


class Device:
    """One kind of device. A subclass defines what is special about it; the methods here derive the rest.

    Memory that a method returns or receives is an array of `array_class`, unless the method says that it is the host's:
    then it is a `numpy.ndarray`. Work may be asynchronous: a method returns when the work is queued on the current
    stream. Copies to the host wait for it unless `non_blocking` is set.
    """

    type: str  # its name in `torch.device`
    array_class: Any = DeviceArray
    # Whether tensors state their device of this kind by number ("npu:0").
    indexed = True
    # Whether tensors have contents.
    has_data = True
    # In profiles: PyTorch's number of the device type (0 is the CPU, 20 a private one), and its name.
    profiler_type = 20
    profiler_name = "PrivateUse1"

    # -- which ---------------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """The number of these devices."""
        return 1

    def current(self) -> int:
        """The device that `torch.device(type)` without a number means in this thread."""
        return 0

    def resolve(self, where: device) -> device:
        """A device with its number."""
        return device(self.type, self.current()) if self.indexed and where.index is None else where

    # -- memory --------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, where: device) -> Memory:
        """A block of memory; the returned object releases it when it dies."""
        raise NotImplementedError(f"{self.type}: allocate")

    def empty(self, shape: Shape, dtype: np.dtype, where: device, strides: Shape | None = None) -> Any:
        """An array on new memory, row-major unless strides in bytes are given."""
        if strides is None:
            strides, size = row_major(shape, dtype.itemsize), numel(shape) * dtype.itemsize
        else:
            size = span_bytes(shape, strides, dtype.itemsize)
        if size >> 63:
            raise ValueError("array is too big")  # `_dispatch.explain` says it with the sizes
        return self.array_class(self.allocate(size, self.resolve(where)), tuple(shape), dtype, tuple(strides))

    # -- copies --------------------------------------------------------------------------------------------------------

    def from_host(self, array: np.ndarray, where: device, non_blocking: bool = False) -> Any:
        """A new array with the contents of an array of the host."""
        raise NotImplementedError(f"{self.type}: from_host")

    def to_host(self, array: Any, non_blocking: bool = False) -> np.ndarray:
        """A new array of the host, row-major, with the contents of an array of this device."""
        raise NotImplementedError(f"{self.type}: to_host")

    def copy(self, target: Any, source: Any, non_blocking: bool = False) -> Any:
        """Copy one array of this kind of device into another, broadcast and converted; returns the target."""
        raise NotImplementedError(f"{self.type}: copy")

    def convert(self, array: Any, dtype: np.dtype) -> Any:
        """A copy in another dtype, in the same order of dimensions."""
        return self.copy(self.empty_like(array, dtype), array)

    def empty_like(self, array: Any, dtype: np.dtype | None = None) -> Any:
        """New memory with the shape of an array and the order of its dimensions, without gaps."""
        dtype = array.dtype if dtype is None else dtype
        return self.empty(array.shape, dtype, array.device, dense_strides(array, dtype.itemsize))

    def clone(self, array: Any, memory_format: Any = None) -> Any:
        """A copy in the same order of dimensions, or in that of a memory format."""
        return self.copy(self.empty_in(memory_format, array, array.dtype), array)

    def empty_in(self, memory_format: Any, array: Any, dtype: np.dtype) -> Any:
        """New memory with the shape of an array, in the order of a memory format."""
        if memory_format is None or memory_format is preserve_format:
            return self.empty_like(array, dtype)
        return self.empty(array.shape, dtype, array.device, format_strides(array.shape, dtype, memory_format))

    # -- views and fills -----------------------------------------------------------------------------------------------

    def as_strided(self, array: Any, shape: Shape, strides: Shape, offset: int = 0) -> Any:
        """Another geometry over the same memory; strides and the offset from its start are in bytes."""
        return array.over(tuple(shape), tuple(strides), offset, array.dtype)

    def whole(self, array: Any) -> Any:
        """The memory that an array is on, as bytes."""
        return array.whole()

    def fill(self, array: Any, value: Any) -> Any:
        """Set every element to a number (a Python number or a 0-d array of the host)."""
        raise NotImplementedError(f"{self.type}: fill")

    # -- random numbers ------------------------------------------------------------------------------------------------

    def new_engine(self, where: device) -> Any:
        """A stream of random numbers for `torch.Generator(device)`: manual_seed, seed, initial_seed, get_state and
        set_state (arrays of bytes in host memory). Kernels of random ops get the generator that holds it.
        """
        raise RuntimeError(f"Device type {self.type} is not supported for torch.Generator() api.")

    # -- streams and events --------------------------------------------------------------------------------------------
    # An asynchronous device has streams. The defaults are those of a synchronous one.

    def synchronize(self, index: int | None = None) -> None:
        """Wait until all work of a device is done; errors of queued work are raised here."""

    def current_stream(self, index: int | None = None) -> Any:
        """The stream on which new work is queued in this thread, None if there are none."""
        return None

    def new_stream(self, index: int | None = None, priority: int = 0) -> Any:
        """A stream: synchronize, query, wait_event, wait_stream, record_event."""
        raise RuntimeError(f"{self.type} has no streams")

    def new_event(self, enable_timing: bool = False) -> Any:
        """An event: record, wait, query, synchronize, elapsed_time (milliseconds)."""
        raise RuntimeError(f"{self.type} has no events")

    def record_stream(self, array: Any, stream: Any) -> None:
        """State that a stream uses an array's memory: it is not allocated again before the stream has passed this
        point."""
        raise NotImplementedError(f"Could not run 'aten::record_stream' with arguments from the "
                                  f"'{self.profiler_name}' backend: {self.type} has no streams")

    # -- kernels -------------------------------------------------------------------------------------------------------

    def kernel(self, op: Any, form: str) -> Kernel | None:
        """The kernel of an op in a form, None if there is none. Views need none: they are arithmetic on geometry.

        A kernel is called with the op's arguments in the order of its signature: tensors as arrays of this device,
        lists of them as lists, everything else unchanged. A number in place of a tensor is a 0-d array of the host. A
        generator is never None. Indices (`Any indices`) are a list of arrays, with None for whole dimensions.
        - NEW: returns new arrays, one for each result of the op.
        - INPLACE: writes into its first array and returns it. Without one, the result of NEW is copied there.
        - OUT: like NEW, with the arrays to write into as `out=`; they have the results' shapes and dtypes. Without one,
          the result of NEW is copied there.
        """
        return None

    def quick(self, op: Any, form: str, kernel: Kernel) -> Kernel:
        """A kernel with its checks, or a faster one that does the same."""
        return kernel

    def foreach(self, key: str) -> Kernel | None:
        """The kernel of an op on whole lists, by its key without `_foreach_` ("add_.List"), None if there is none.

        It is called with lists of similar arrays, and numbers. If it returns NotImplemented, the op goes through the
        lists.
        """
        return None

    def view_kernel(self, op: Any) -> Kernel:
        """The kernel of a view op."""
        return view_kernel(op)

    def missing(self, op: Any, form: str) -> Kernel:
        """Called if an op has no kernel: returns one, or raises."""
        raise NotImplementedError(
            f"Could not run 'aten::{op.key}' with arguments from the '{self.profiler_name}' backend: device "
            f"'{self.type}' has no kernel for it")

    # -- what a profiler is told ---------------------------------------------------------------------------------------

    def activities(self) -> Any:
        """The log of the device's work, None if it keeps none. `start(memory)` begins to log and returns a mark;
        `stop(mark, memory)` waits for queued work and returns what was logged since (`npu/activity.py`).
        """
        return None

    def block(self, array: Any) -> tuple[int, int, int] | None:
        """The block of memory that an array is in, as in that log: its address, its bytes, the number of its
        device. None for arrays without memory.
        """
        memory = getattr(array, "memory", None)
        return None if memory is None else (memory.pointer, memory.nbytes, memory.device.index or 0)


def format_strides(shape: Shape, dtype: np.dtype, memory_format: Any) -> Shape | None:
    """Strides in bytes of new memory in a memory format; None for row-major order."""
    order = CHANNELS_LAST_ORDER.get(memory_format)
    if order is None:
        return None
    if len(order) != len(shape):
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format.name} format")
    return ordered_strides(shape, order, dtype.itemsize)


# -- the devices there are ---------------------------------------------------------------------------------------------

DEVICES: dict[str, Device] = {}
BY_ARRAY: dict[type, Device] = {}


def _load_npu() -> Device:
    from .npu.device import load

    return load()


# Devices that are loaded when they are first named: a function that registers and returns one, or says why not.
LOADERS: dict[str, Callable[[], Device]] = {"npu": _load_npu}


def register(what: Device) -> Device:
    """Register a device under its type and by the class of its arrays."""
    DEVICES[what.type] = what
    BY_ARRAY[what.array_class] = what
    if what.type not in KNOWN_TYPES:
        KNOWN_TYPES.append(what.type)
    return what


def device_named(where: device) -> Device:
    """The device of a type, or an error that names the missing one."""
    found = DEVICES.get(where.type)
    if found is None and where.type in LOADERS:
        found = LOADERS[where.type]()
    if found is None:
        if where.type in ("cuda", "xpu"):
            raise AssertionError(f"Torch not compiled with {where.type.upper()} enabled")
        raise RuntimeError(f"device '{where}' is not available in this runtime (available: {', '.join(DEVICES)})")
    return found


def device_of(array: Any) -> Device:
    """The device that an array is on."""
    found = BY_ARRAY.get(type(array))
    if found is None:
        raise TypeError(f"no device has arrays of type {type(array).__name__}")
    return found


def where_of(array: Any) -> device:
    """The `torch.device` that an array is on."""
    return CPU if type(array) is np.ndarray else array.device


def resolved(where: device) -> device:
    """A device with its number, if devices of its kind have one."""
    found = DEVICES.get(where.type)
    if found is None and where.type in LOADERS:
        found = device_named(where)
    return where if found is None else found.resolve(where)


FOUND: dict[tuple[type, Any, str], Kernel] = {}


def device_kernel(op: Any, array: Any, form: str = NEW) -> Kernel:
    """The kernel of an op in a form, on the device of an array outside the host."""
    kind = type(array)
    found = FOUND.get((kind, op, form))
    if found is None:
        if kind not in BY_ARRAY:
            raise TypeError(f"{op.name}(): no device has arrays of type {kind.__name__}")
        where = BY_ARRAY[kind]
        checked = on_one_device(where, kernel_on(where, op, form), op, form)
        found = FOUND[kind, op, form] = where.quick(op, form, checked)
    return found


# Ops that may write the same value to an element more than once.
REPEATABLE = frozenset({"index_fill", "masked_fill", "index_put", "_index_put_impl", "tril", "triu"})


def refuse_twice(target: Any) -> Any:
    """Raise PyTorch's error if written elements share memory; otherwise return the array."""
    if shows_twice(target):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.")
    return target


def on_one_device(where: Device, kernel: Kernel, op: Any, form: str) -> Kernel:
    """A kernel that refuses operands of other devices, and refuses to write to memory that shows elements twice.

    Numbers may be the host's.
    """
    if op.key in GENERIC or op.view or where.type == "cpu":
        return kernel
    drawing = drawn_position(op) if where.has_data else None
    in_place = form == INPLACE and where.has_data
    written = in_place and op.name not in REPEATABLE
    if in_place:
        kernel = apart(op.name, kernel)

    def run(*arguments: Any) -> Any:
        place: Any = None
        for value in arguments:
            kind = type(value)
            if kind is np.ndarray:
                if value.ndim:
                    raise MixedDevices(CPU)
            elif kind in BY_ARRAY:
                if place is None:
                    place = value.device
                elif place is not value.device and place != value.device:
                    raise MixedDevices(value.device)
            elif kind is list or kind is tuple:
                if any(type(one) is np.ndarray and one.ndim for one in value):
                    raise MixedDevices(CPU)
            elif kind in ON_DEVICE:
                arguments = tuple([one.on_device(arguments[0].device) if one is value else one for one in arguments])
        if drawing is not None:
            generator = GENERATORS[0](place, arguments[drawing])
            arguments = (*arguments[:drawing], generator, *arguments[drawing + 1:])
        if written:
            refuse_twice(arguments[0])
        return kernel(*arguments)

    return run


def drawn_position(op: Any) -> int | None:
    """The position of an op's generator among its arguments."""
    found = [i for i, argument in enumerate(op.schema.arguments) if argument.type.startswith("Generator")]
    return found[0] if found else None


# Set by the module of generators: the generator that an op on a device draws from.
GENERATORS: list[Callable[[device, Any], Any]] = []
# Set by the ops: the formula that replaces an op for which a device has no kernel, None if there is none.
STAND_INS: list[Callable[[str], Kernel | None]] = []
# Classes of arguments that hold tensors but are not lists: `on_device(where)` gives the arrays.
ON_DEVICE: set[type] = set()


class MixedDevices(RuntimeError):
    """Operands are on different devices; `_dispatch.explain` says which."""


def kernel_on(where: Device, op: Any, form: str) -> Kernel:
    """The kernel of an op in a form on a device: views and copies are the same on all of them."""
    if op.view:
        return where.view_kernel(op)
    generic = GENERIC.get(op.key)
    kernel = where.kernel(op, form) or (where.kernel(op, NEW) if form == INPLACE else None)
    if kernel is None and generic is not None:
        return lambda *arguments: generic(where, *arguments)
    return where.missing(op, form) if kernel is None else kernel


def has_kernel(op: Any, array: Any) -> bool:
    """Whether the device of an array runs an op itself, for composites that choose by this."""
    return type(array) is np.ndarray or device_of(array).kernel(op, NEW) is not None


# -- what the rest of the runtime calls --------------------------------------------------------------------------------


def empty_array(shape: Shape, dtype: np.dtype, where: device, strides: Shape | None = None) -> Any:
    """Uninitialised memory for an array on a device."""
    return device_named(where).empty(shape, dtype, where, strides)


def to_host(array: Any) -> np.ndarray:
    """The contents of an array in host memory; an array of the host itself."""
    return array if type(array) is np.ndarray else device_of(array).to_host(array)


def placed(array: np.ndarray, where: device) -> Any:
    """An array of the host on a device; the array itself if the device is the host."""
    return array if where.type == "cpu" else transfer(array, where)


def transfer(array: Any, where: device, non_blocking: bool = False) -> Any:
    """A copy of an array on another device."""
    target, source = device_named(where), device_of(array)
    where = target.resolve(where)
    if target is source:
        made = target.empty(array.shape, array.dtype, where, dense_strides(array, array.dtype.itemsize))
        return target.copy(made, array, non_blocking)
    host = array if type(array) is np.ndarray else source.to_host(array, non_blocking)
    return target.from_host(host, where, non_blocking)


def copy_array(target: Any, source: Any, non_blocking: bool = False) -> Any:
    """Copy one array into another, wherever they are, broadcast and converted."""
    there = device_of(target)
    if there.has_data:
        refuse_twice(target)
    if type(source) is type(target):
        return there.copy(target, source, non_blocking)
    return there.copy(target, transfer(source, where_of(target), non_blocking), non_blocking)


def on_device(function: Kernel) -> Kernel:
    """A function on arrays that ops call besides their kernels; a device may have its own under the same name.

    If the first argument is an array of the host, the function is called directly. Otherwise the device is asked for it
    like for an op's kernel, with an object that has the function's name as `key` and the function as `cpu`.
    """
    step = HostFunction(function)

    def run(*arguments: Any) -> Any:
        first = arguments[0]
        return (function if type(first) is np.ndarray else device_kernel(step, first, NEW))(*arguments)

    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    return run


class _Arguments:
    arguments: tuple[Any, ...] = ()


_NO_ARGUMENTS = _Arguments()


class HostFunction:
    """A function that is not an op, in the form that a device gets."""

    view = False
    cpu_full = cpu_inplace = meta = None

    def __init__(self, function: Kernel) -> None:
        self.cpu = function
        self.schema = _NO_ARGUMENTS
        self.name = self.key = function.__name__.lstrip("_")


def _to_copy(where: Device, array: Any, dtype: Any, layout: Any, on: Any, pin_memory: Any, non_blocking: bool,
             memory_format: Any) -> Any:
    return where.copy(where.empty_in(memory_format, array, array.dtype if dtype is None else dtype.np), array)


def once(array: Any) -> Any:
    """The view of an array with only one of each element that it shows several times."""
    if not shows_twice(array):
        return array
    shape = tuple([n if s else min(n, 1) for n, s in zip(array.shape, array.strides, strict=True)])
    return array.over(shape, array.strides, array.offset, array.dtype)


def _number(value: Any) -> Any:
    if value.shape:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {len(value.shape)} "
                           "dimensions.")
    return value


# Ops that every device has as methods, by key.
GENERIC: dict[str, Kernel] = {
    "copy": lambda where, target, source, non_blocking=False: copy_array(target, source, non_blocking),
    "fill.Scalar": lambda where, target, value: where.fill(target, value),
    "fill.Tensor": lambda where, target, value: (copy_array(once(target), _number(value)), target)[1],
    "zero": lambda where, target: where.fill(target, 0),
    "clone": lambda where, array, memory_format=None: where.clone(array, memory_format),
    "_to_copy": _to_copy,
    "_to_device": lambda where, array, on, non_blocking=False: transfer(array, on, non_blocking),
}
