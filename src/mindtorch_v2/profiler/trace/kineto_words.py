"""The words of a Kineto trace file: categories, type names and argument values, in both directions.

The reader and the writer share these rules. What the rules cannot recover from PyTorch's own words, the writer
says once more under a key of ours (`OWN_*`), and the reader prefers that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from .columns import KINDS, Kind
from .trace import DeviceKind, Frame, TensorInput

BASE_STEP_NS = 7_889_238 * 1_000_000_000  # a quarter of a Gregorian year: `baseTimeNanoseconds` is a multiple of it
ENGINE_PREFIX = "autograd::engine::evaluate_function: "
MODULE_PREFIX = "nn.Module: "
GC_NAME = "Python GC"
FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")

OWN_KIND = "Kind"
OWN_STEP = "Step"
OWN_OVERLOAD = "Overload"
OWN_MODULE = "Module"
OWN_FLOPS = "FLOPs"
OWN_INPUTS = "Inputs"
OWN_STACK = "Call stack"
OWN_FRAMES = "Call stack frames"
OWN_DEVICE = "Device Type"
OWN_DEVICE_INDEX = "Device Id"

KIND_OF_CATEGORY: dict[str, Kind] = {
    "cpu_op": Kind.OP, "user_annotation": Kind.SCOPE, "gpu_user_annotation": Kind.SCOPE,
    "python_function": Kind.PYTHON, "kernel": Kind.KERNEL, "gpu_memcpy": Kind.COPY, "gpu_memset": Kind.COPY,
    "cuda_runtime": Kind.LAUNCH, "cuda_driver": Kind.LAUNCH, "xpu_runtime": Kind.LAUNCH, "xpu_driver": Kind.LAUNCH,
    "privateuse1_runtime": Kind.LAUNCH, "privateuse1_driver": Kind.LAUNCH, "mtia_runtime": Kind.LAUNCH,
    "python_gc": Kind.GC, "overhead": Kind.OVERHEAD,
}
DEVICE_KINDS = frozenset({Kind.KERNEL, Kind.COPY})

_STEP = re.compile(r"ProfilerStep#(\d+)\Z")
_RUNTIME_PREFIXES = ((re.compile(r"cuda[A-Z]|hip[A-Z]"), "cuda_runtime"), (re.compile(r"cu[A-Z]"), "cuda_driver"))
_FRAME = re.compile(r"(.*)\((-?\d+)\): (.*)\Z", re.DOTALL)

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


def step_number(name: str) -> int | None:
    """3 for `ProfilerStep#3`, None for other names."""
    found = _STEP.match(name)
    return int(found[1]) if found else None


def category(kind: Kind, name: str, device: int, others: dict[str, str]) -> str:
    """`cat` of an event; `others` maps names of events of no known kind to the category they were read with."""
    if kind is Kind.SCOPE and device:
        return "gpu_user_annotation"
    if kind is Kind.COPY and name.startswith("Memset"):
        return "gpu_memset"
    if kind is Kind.LAUNCH:
        for prefix, runtime in _RUNTIME_PREFIXES:
            if prefix.match(name):
                return runtime
    if kind is Kind.OTHER:
        return others.get(name, KINDS[kind].category)
    return KINDS[kind].category


def kind_of(cat: str, name: str) -> Kind:
    """The kind of an event as far as category and name tell; only a thread id marks some backward functions."""
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


def accelerator(categories: Collection[str]) -> DeviceKind:
    """The device type of device work in a file with these categories: Kineto tells it by the runtime's name only."""
    return DeviceKind.NPU if any(cat.startswith("privateuse1") for cat in categories) else DeviceKind.CUDA


def frame_text(frame: Frame) -> str:
    """A frame as Kineto names it; a builtin has a name and no file."""
    return frame.function if not frame.file and not frame.line else str(frame)


def parse_frame(text: str) -> Frame:
    """The frame that `frame_text` wrote: `model.py(12): forward`, or a bare name."""
    found = _FRAME.match(text)
    return Frame(found[1], int(found[2]), found[3]) if found else Frame("", 0, text)


def describe_inputs(arguments: Sequence[Any]) -> dict[str, list[Any]]:
    """Arguments of an op in Kineto's four parallel lists.

    >>> describe_inputs((TensorInput((2, 3), "float32", (3, 1)), 1.0, None))["Concrete Inputs"]
    ['', '1.', '']
    """
    rows = [_describe(argument) for argument in arguments]
    keys = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
    return {key: [row[place] for row in rows] for place, key in enumerate(keys)}


def parse_inputs(values: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments behind Kineto's lists. Element types of a list of tensors are not in them and come out empty."""
    dims = values["Input Dims"]
    count = len(dims)
    types = values.get("Input type") or [""] * count
    strides = values.get("Input Strides") or [[]] * count
    concrete = values.get("Concrete Inputs") or [""] * count
    if not len(types) == len(strides) == len(concrete) == count:
        raise ValueError("lists of different lengths describe the inputs of an event")
    return tuple(map(_parse, types, dims, strides, concrete))


def canonical(value: Any) -> Any:
    """A value with tuples as lists, for comparison of inputs."""
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    return value


def encode_input(value: Any) -> Any:
    """An argument as plain JSON, exact for tensors, numbers, text, None and lists of those."""
    if isinstance(value, TensorInput):
        return {"tensor": [list(value.shape), value.dtype, list(value.strides)]}
    if isinstance(value, (list, tuple)):
        return [encode_input(item) for item in value]
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, float) and not -1e300 < value < 1e300:
        return {"float": repr(value)}
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return {"int": str(value)}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def decode_input(value: Any) -> Any:
    """What `encode_input` was given, with tuples as lists."""
    if isinstance(value, list):
        return [decode_input(item) for item in value]
    if not isinstance(value, dict):
        return value
    (tag, content), = value.items()
    if tag == "tensor":
        return TensorInput(tuple(content[0]), content[1], tuple(content[2]))
    if tag == "complex":
        return complex(float(content[0]), float(content[1]))
    return float(content) if tag == "float" else int(content)


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
        # Some of PyTorch's lists come without strides.
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


def _parse_number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for read in (int, float, complex):
        try:
            return read(text)
        except ValueError:
            continue
    return text
