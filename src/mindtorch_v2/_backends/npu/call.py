"""The one way to call an operator: describe its arguments, plan, allocate workspace, queue, release the descriptions.

`CALLS.Add(a, b, 1, out)` queues `aclnnAdd` on the current stream of the first array's device. Arguments come in the
operator's own order: arrays, numbers for scalars, tuples for arrays of numbers, None for what may be absent. For each
operator a function is written from its signature, so that a call has no loop over its arguments.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from .library import WATCH, library
from .memory import ALLOCATORS, allocator
from .native import LAUNCH
from .runtime import THREAD, bind
from .signatures import Prototype, operators
from .stream import stream_of

# -- numbers of C ------------------------------------------------------------------------------------------------------

FLOAT, INT64, DOUBLE, BOOL, BFLOAT16 = 0, 9, 11, 12, 27
DTYPES: dict[np.dtype, int] = {np.dtype(kind): code for kind, code in (
    (np.float32, 0), (np.float16, 1), (np.int8, 2), (np.int32, 3), (np.uint8, 4), (np.int16, 6), (np.uint16, 7),
    (np.uint32, 8), (np.int64, 9), (np.uint64, 10), (np.float64, 11), (np.bool_, 12), (np.complex64, 16),
    (np.complex128, 17), (ml_dtypes.bfloat16, BFLOAT16), (ml_dtypes.float8_e5m2, 35), (ml_dtypes.float8_e4m3fn, 36))}
ND = 2
FORMATS = {3: 47, 4: 0, 5: 30}  # by the number of dimensions: NCL, NCHW, NCDHW


def dtype_code(dtype: np.dtype) -> int:
    """The operators' number of a dtype."""
    found = DTYPES.get(dtype)
    if found is None:
        raise NotImplementedError(f"the NPU has no tensors of type {dtype.name}")
    return found


# -- descriptions of arguments -----------------------------------------------------------------------------------------
# Numbers that C reads from memory are cached by value, because the same shapes come again and again. C copies them.

KEPT = 4096  # entries; beyond this, all are dropped
_GEOMETRIES: dict[Any, tuple[Any, ...]] = {}
_EXTENTS: dict[int, Any] = {}
_ARRAYS: dict[Any, Any] = {}


def _remember(table: dict[Any, Any], key: Any, value: Any) -> Any:
    if len(table) >= KEPT:
        table.clear()
    table[key] = value
    return value


def _int64s(values: tuple[int, ...]) -> Any:
    return (ctypes.c_int64 * len(values))(*values) if values else None


def _geometry(array: Any) -> tuple[Any, ...]:
    item = array.dtype.itemsize
    nd = len(array.shape)
    return _remember(_GEOMETRIES, (array.shape, array.strides, array.dtype), (
        _int64s(array.shape), nd, dtype_code(array.dtype), _int64s(tuple([s // item for s in array.strides])), item,
        FORMATS.get(nd, ND)))


def _tensor(array: Any) -> int:
    """The description of an array."""
    dims, nd, code, strides, item, layout = (_GEOMETRIES.get((array.shape, array.strides, array.dtype))
                                             or _geometry(array))
    memory = array.memory
    offset, rest = divmod(array.offset, item)
    if rest:
        raise NotImplementedError(f"an array on the NPU that begins {array.offset} bytes into its memory cannot have "
                                  f"elements of {item} bytes")
    count = memory.nbytes // item
    extent = _EXTENTS.get(count) or _remember(_EXTENTS, count, _int64s((count,)))
    made = OBJECTS.create_tensor(dims, nd, code, strides, offset, layout, extent, 1, memory.pointer)
    if not made:
        raise _undescribed(array)
    return made


def _undescribed(array: Any) -> Exception:
    """Why the library makes no description of an array: an unknown type, or something wrong with the array."""
    detail = library().raw("aclGetRecentErrMsg")() or b""
    return NotImplementedError(f"the NPU has no tensors of type {array.dtype.name} in {array.ndim} dimensions: "
                               + detail.decode(errors="replace").strip())


def _optional(array: Any) -> int | None:
    return None if array is None else _tensor(array)


def _scalar(value: Any) -> int:
    """The description of a number: a Python number, or an array of the host without dimensions."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.item()
    if isinstance(value, bool):
        return OBJECTS.create_scalar(ctypes.byref(ctypes.c_bool(value)), BOOL)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return OBJECTS.create_scalar(ctypes.byref(ctypes.c_int64(value)), INT64)
    if isinstance(value, (int, float)):
        return OBJECTS.create_scalar(ctypes.byref(ctypes.c_double(value)), DOUBLE)
    raise NotImplementedError(f"a {type(value).__name__} cannot be given to an operator of the NPU as a number")


def _ints(values: Any) -> int | None:
    if values is None:
        return None
    values = tuple(values)
    found = _ARRAYS.get(values) or _remember(_ARRAYS, values, (ctypes.c_int64 * max(len(values), 1))(*values))
    return OBJECTS.create_ints(found, len(values))


def _bools(values: Any) -> int | None:
    if values is None:
        return None
    return OBJECTS.create_bools((ctypes.c_bool * max(len(values), 1))(*[bool(v) for v in values]), len(values))


def _floats(values: Any) -> int:
    return OBJECTS.create_floats((ctypes.c_float * max(len(values), 1))(*values), len(values))


def _tensors(arrays: Any) -> int:
    """The description of a list of arrays, which is destroyed with its members."""
    made: list[int] = []
    try:
        for array in arrays:
            made.append(_tensor(array))
    except NotImplementedError:
        for one in made:
            OBJECTS.destroy_tensor(one)
        raise
    return OBJECTS.create_tensors((ctypes.c_void_p * max(len(made), 1))(*made), len(made))


def _scalars(values: Any) -> int:
    made = [_scalar(value) for value in values]
    return OBJECTS.create_scalars((ctypes.c_void_p * max(len(made), 1))(*made), len(made))


# Words of signatures whose arguments are described: the function for it, and the one that destroys the description.
DESCRIBED = {"T": ("tensor", "destroy_tensor"), "S": ("scalar", "destroy_scalar"), "IA": ("ints", "destroy_ints"),
             "BA": ("bools", "destroy_bools"), "FA": ("floats", "destroy_floats"),
             "TL": ("tensors", "destroy_tensors"), "SL": ("scalars", "destroy_scalars")}
DESCRIBERS = {"tensor": _tensor, "optional": _optional, "scalar": _scalar, "ints": _ints, "bools": _bools,
              "floats": _floats, "tensors": _tensors, "scalars": _scalars}


class _Objects:
    """The functions that make and destroy descriptions, looked up when they are first needed."""

    NAMES: ClassVar[dict[str, str]] = {
        "create_tensor": "aclCreateTensor", "create_scalar": "aclCreateScalar", "create_ints": "aclCreateIntArray",
        "create_bools": "aclCreateBoolArray", "create_floats": "aclCreateFloatArray",
        "create_tensors": "aclCreateTensorList", "create_scalars": "aclCreateScalarList",
        "destroy_tensor": "aclDestroyTensor", "destroy_scalar": "aclDestroyScalar",
        "destroy_ints": "aclDestroyIntArray", "destroy_bools": "aclDestroyBoolArray",
        "destroy_floats": "aclDestroyFloatArray", "destroy_tensors": "aclDestroyTensorList",
        "destroy_scalars": "aclDestroyScalarList"}

    def __getattr__(self, name: str) -> Any:
        if name not in self.NAMES:
            raise AttributeError(name)
        found = library().raw(self.NAMES[name])
        setattr(self, name, found)
        return found


OBJECTS = _Objects()


# -- the call ----------------------------------------------------------------------------------------------------------


class _Places(threading.local):
    """Where C writes the results of a plan; one per thread, because threads plan at the same time."""

    def __init__(self) -> None:
        self.size = ctypes.c_uint64()
        self.executor = ctypes.c_void_p()
        self.both = (self.size, self.executor, ctypes.byref(self.size), ctypes.byref(self.executor))


PLACES = _Places()


def queue(name: str, run: Any, index: int, size: int, executor: int, stream: Any) -> int:
    """Queue a planned operator, with workspace if it needs any; returns its status."""
    workspace = None
    if size:
        # It is released at once: whatever takes it next is queued behind on the same stream.
        workspace = (ALLOCATORS.get(index) or allocator(index)).take(size, stream.npu_stream)
    pointer = None if workspace is None else workspace.pointer
    watch = WATCH[0]
    if watch is None:
        return run(pointer, size, executor, stream.npu_stream)
    return watch(f"aclnn{name}", run, (pointer, size, executor, stream.npu_stream))


BLOCKING = os.environ.get("ASCEND_LAUNCH_BLOCKING", "0") == "1"


def placing(prototype: Prototype) -> int:
    """The argument that determines the device of an operator."""
    return next(i for i, word in enumerate(prototype.arguments) if word in ("T", "TL") and not prototype.optional[i])


def source(name: str) -> str:
    """The function of an operator: `print(source("Add"))` shows it."""
    prototype = operators()[name]
    words, optional = prototype.arguments, prototype.optional
    names = [f"a{i}" for i in range(len(words))]
    place = placing(prototype)
    first = names[place] if words[place] == "T" else f"{names[place]}[0]"
    made = [i for i, word in enumerate(words) if word in DESCRIBED]
    lines = [
        f"def {name}({', '.join(names)}):",
        f"    index = {first}.memory.device.index",
        "    if THREAD.bound != index: bind(index)",
        "    stream = stream_of(index)",
        f"    {' = '.join(f'd{i}' for i in made)} = None",
        "    try:",
    ]
    for i in made:
        describe = "optional" if words[i] == "T" and optional[i] else DESCRIBED[words[i]][0]
        lines.append(f"        d{i} = {describe}(a{i})")
    given = [f"d{i}" if i in made else f"a{i}.encode()" if words[i] == "cstr" else f"a{i}" for i in range(len(words))]
    lines += [
        "        size, executor, size_place, executor_place = PLACES.both",
        f"        code = plan({', '.join(given)}, size_place, executor_place) if WATCH[0] is None else "
        f"WATCH[0]('aclnn{name}GetWorkspaceSize', plan, ({', '.join(given)}, size_place, executor_place))",
        f"        if code: raise library().error('aclnn{name}GetWorkspaceSize', code)",
        f"        code = queue('{name}', run, index, size.value, executor.value, stream)",
        f"        if code: raise library().error('aclnn{name}', code)",
        "    finally:",
    ]
    lines += [f"        if d{i} is not None: OBJECTS.{DESCRIBED[words[i]][1]}(d{i})" for i in made]
    if BLOCKING:
        lines.append("    stream.synchronize()")
    return "\n".join(lines) + "\n"


WORDS = {"T": "T", "S": "S", "IA": "I", "BA": "B", "TL": "L", "cstr": "c", "f32": "f", "f64": "d",
         **dict.fromkeys(("DT", "b", "i8", "i32", "u32", "i64", "u64", "size"), "i")}


TOLD: list[bool] = []  # set once


def tell_objects() -> None:
    """Pass the launcher the addresses of the functions that make and destroy descriptions."""
    LAUNCH.objects(*[address(getattr(OBJECTS, f"{verb}_{kind}")) for verb in ("create", "destroy")
                     for kind in ("tensor", "scalar", "ints", "bools", "tensors")])


def native(name: str, python: Callable[..., None], plan: Any, run: Any) -> Callable[..., None]:
    """The operator in C, which calls the function given here if it cannot do the call; or that function."""
    prototype = operators()[name]
    if LAUNCH is None or BLOCKING or any(word not in WORDS for word in prototype.arguments):
        return python
    if not TOLD:
        tell_objects()
        TOLD.append(True)
    words = "".join(["t" if word == "T" and optional else WORDS[word]
                     for word, optional in zip(prototype.arguments, prototype.optional, strict=True)])
    return LAUNCH.Operator(name, words, address(plan), address(run), placing(prototype), python, failed)


def address(function: Any) -> int:
    """The address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def failed(name: str, planned: bool, code: int) -> None:
    """Raise for a status of one of an operator's phases."""
    raise library().error(f"aclnn{name}" if planned else f"aclnn{name}GetWorkspaceSize", code)


class Calls:
    """The operators, each compiled when it is first called."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in operators():
            raise AttributeError(f"no operator aclnn{name} is known")
        plan, run = library().operator(name)
        space: dict[str, Any] = {"THREAD": THREAD, "bind": bind, "stream_of": stream_of, "PLACES": PLACES,
                                 "WATCH": WATCH, "queue": queue, "OBJECTS": OBJECTS, "library": library, "plan": plan,
                                 "run": run, **DESCRIBERS}
        exec(compile(source(name), f"<mindtorch_v2 aclnn{name}>", "exec"), space)
        made = native(name, space[name], plan, run)
        setattr(self, name, made)
        return made


CALLS = Calls()
