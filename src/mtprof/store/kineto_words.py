"""The words of a Kineto trace file: categories, type names and argument values, in both directions.

The reader and the writer share these rules. If PyTorch's words do not determine a value, the writer states it again
under a key of ours (`OWN_*`), and the reader prefers that key.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..devices import DEVICES, DeviceType
from ..names import ENGINE_PREFIX, GC_NAME, MODULE_PREFIX, step_number
from ..schema import KINDS, Kind
from ..trace import TensorInput

BASE_STEP_NS = 7_889_238 * 1_000_000_000  # a quarter of a Gregorian year: `baseTimeNanoseconds` is a multiple of it

OWN_KIND = "Kind"
OWN_STEP = "Step"
OWN_OVERLOAD = "Overload"
OWN_MODULE = "Module"
OWN_FLOPS = "FLOPs"
OWN_LINE = "Line"
OWN_INPUTS = "Inputs"
OWN_STACK = "Call stack"
OWN_FRAMES = "Call stack frames"
OWN_DEVICE = "Device Type"
OWN_DEVICE_INDEX = "Device Id"

KIND_OF_CATEGORY: dict[str, Kind] = {
    "cpu_op": Kind.OP, "user_annotation": Kind.SCOPE, "gpu_user_annotation": Kind.SCOPE,
    "python_function": Kind.PYTHON, "kernel": Kind.KERNEL, "gpu_memcpy": Kind.COPY, "gpu_memset": Kind.FILL,
    "cuda_runtime": Kind.LAUNCH, "cuda_driver": Kind.LAUNCH, "xpu_runtime": Kind.LAUNCH, "xpu_driver": Kind.LAUNCH,
    "privateuse1_runtime": Kind.LAUNCH, "privateuse1_driver": Kind.LAUNCH, "mtia_runtime": Kind.LAUNCH,
    "python_gc": Kind.GC, "overhead": Kind.OVERHEAD, "first_use": Kind.FIRST_USE,
}

_RUNTIME_PREFIXES = ((re.compile(r"cuda[A-Z]|hip[A-Z]"), "cuda_runtime"), (re.compile(r"cu[A-Z]"), "cuda_driver"))

_CPP_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "bool": "bool",
    "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int", "uint8": "unsigned char",
    "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "float8_e4m3fn": "c10::Float8_e4m3fn", "float8_e5m2": "c10::Float8_e5m2",
    "float8_e4m3fnuz": "c10::Float8_e4m3fnuz", "float8_e5m2fnuz": "c10::Float8_e5m2fnuz",
    "float8_e8m0fnu": "c10::Float8_e8m0fnu",
}
_DTYPES = {cpp: dtype for dtype, cpp in _CPP_NAMES.items()}


def category(kind: Kind, name: str, device: int, others: dict[str, str]) -> str:
    """`cat` of an event; `others` maps names of events of unknown kind to the category they were read with."""
    if kind is Kind.SCOPE and device:
        return "gpu_user_annotation"
    if kind is Kind.LAUNCH:
        for prefix, runtime in _RUNTIME_PREFIXES:
            if prefix.match(name):
                return runtime
    if kind is Kind.OTHER:
        return others.get(name, KINDS[kind].category)
    return KINDS[kind].category


def kind_of(cat: str, name: str) -> Kind:
    """The kind of an event, as far as category and name determine it; only a thread id marks some backward
    functions."""
    kind = KIND_OF_CATEGORY.get(cat, Kind.OTHER)
    if kind is Kind.OP and name.startswith(ENGINE_PREFIX):
        return Kind.BACKWARD
    if kind is Kind.SCOPE and cat == "user_annotation" and step_number(name) is not None:
        return Kind.STEP
    if kind is Kind.PYTHON and name.startswith(MODULE_PREFIX):
        return Kind.MODULE
    if kind is Kind.PYTHON and name == GC_NAME:
        return Kind.GC
    return kind


# Processes in torch_npu's files besides Python.
NPU_PROCESSES = frozenset({"Ascend Hardware", "HCCL", "Communication"})
_NPU_COPIES = re.compile(r"memcpy", re.IGNORECASE)
_NPU_FILLS = re.compile(r"memset", re.IGNORECASE)


def kind_in_process(process: str, name: str) -> Kind:
    """The kind of an event that has no category, by the name of its process."""
    if process in NPU_PROCESSES:
        return Kind.COPY if _NPU_COPIES.search(name) else Kind.FILL if _NPU_FILLS.search(name) else Kind.KERNEL
    return Kind.LAUNCH if process == "CANN" else Kind.OTHER


def identity(value: Any) -> int:
    """A process or thread id. Text that is not a number gets a number of its own, the same each time."""
    if value is None:
        return 0
    if isinstance(value, int) or re.fullmatch(r"-?[0-9]{1,18}", value):
        number = int(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError("pid and tid should be integers of 64 bits")
        return number
    return zlib.crc32(value.encode("utf-8", "replace"))


def accelerator(categories: Collection[str]) -> DeviceType:
    """The device type of device work in a file with these categories: Kineto's only hint is the runtime's name."""
    makers = {cat.partition("_")[0] for cat in categories if cat.endswith(("_runtime", "_driver"))}
    return next((kind for kind, facts in DEVICES.items() if facts.runtime.partition("_")[0] in makers), DeviceType.CUDA)


def describe_inputs(arguments: Sequence[Any]) -> dict[str, list[Any]]:
    """Arguments of an op in Kineto's four parallel lists.

    >>> describe_inputs((TensorInput((2, 3), "float32", (3, 1)), 1.0, None))["Concrete Inputs"]
    ['', '1.', '']
    """
    rows = [_describe(argument) for argument in arguments]
    keys = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
    return {key: [row[place] for row in rows] for place, key in enumerate(keys)}


def parse_inputs(values: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments from Kineto's lists. These lack the element types of a list of tensors, which come out empty."""
    dims = values["Input Dims"]
    count = len(dims)
    types = values.get("Input type") or [""] * count
    strides = values.get("Input Strides") or [[]] * count
    concrete = values.get("Concrete Inputs") or [""] * count
    if not len(types) == len(strides) == len(concrete) == count:
        raise ValueError("lists of different lengths describe the inputs of an event")
    return tuple(map(_parse, types, dims, strides, concrete))


def _describe(argument: Any) -> tuple[str, str, list[Any], list[Any]]:
    if isinstance(argument, TensorInput):
        dtype = _CPP_NAMES.get(argument.dtype, argument.dtype)
        return "", dtype, list(argument.strides), list(argument.shape)
    if isinstance(argument, (list, tuple)):
        if argument and all(isinstance(item, TensorInput) for item in argument):
            return "", "TensorList", [list(t.strides) for t in argument], [list(t.shape) for t in argument]
        if all(isinstance(item, (bool, int, float)) for item in argument):
            return f"[{', '.join(map(_number, argument))}]", "ScalarList", [], []
        return "", "", [], []
    if isinstance(argument, (bool, int, float, complex)):
        return _number(argument), "Scalar", [], []
    return "", "", [], []


def _number(value: Any) -> str:
    if isinstance(value, complex):
        return f"{_number(value.real)}{'' if str(value.imag).startswith('-') else '+'}{_number(value.imag)}j"
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text + "." if text.lstrip("-").isdigit() else text
    return str(value)


def _parse(kind: str, dims: Any, strides: Any, concrete: Any) -> Any:
    if kind == "TensorList":
        # Some of PyTorch's lists have no strides.
        strides = strides or [[]] * len(dims)
        return [TensorInput(tuple(d), "", tuple(s)) for d, s in zip(dims, strides, strict=True)]
    if kind == "Scalar":
        return _parse_number(concrete)
    if kind == "ScalarList":
        items = concrete.strip("[]")
        return [_parse_number(item) for item in items.split(", ")] if items else []
    if kind in ("", "GenericList"):
        return concrete or None
    return TensorInput(tuple(dims), _DTYPES.get(kind, kind), tuple(strides))


_WHOLE = re.compile(r"[\s+\-\d_]+")


def _parse_number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    # Not only by trial: Python drops a Ctrl-C that comes while it makes the text of an error.
    readers: tuple[Callable[[str], Any], ...] = (int, float, complex)
    for read in readers if _WHOLE.fullmatch(text) else readers[1:]:
        try:
            return read(text)
        except ValueError:
            continue
    return text
