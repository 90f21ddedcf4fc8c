"""Recorded arguments in the forms of PyTorch's events."""

from __future__ import annotations

from typing import Any

from ..trace import Arguments, TensorInput

# PyTorch shows an element type by its C++ name.
_CXX_NAMES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long", "bool": "bool",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}


def _is_tensor_list(argument: Any) -> bool:
    return (isinstance(argument, (list, tuple)) and bool(argument)
            and all(isinstance(item, TensorInput) for item in argument))


def _is_number(argument: Any) -> bool:
    return isinstance(argument, (bool, int, float, complex))


def _is_number_list(argument: Any) -> bool:
    return isinstance(argument, (list, tuple)) and all(_is_number(item) for item in argument)


def shapes(arguments: tuple[Any, ...]) -> list[list[int]]:
    """A tensor's sizes; an empty list for anything else."""
    return [list(item.shape) if isinstance(item, TensorInput) else [] for item in arguments]


def _structured(arguments: tuple[Any, ...], field: str) -> list[Any]:
    result: list[Any] = []
    for item in arguments:
        if isinstance(item, TensorInput):
            result.append(list(getattr(item, field)))
        elif _is_tensor_list(item):
            result.append([list(getattr(tensor, field)) for tensor in item])
        else:
            result.append([])
    return result


def structured_shapes(arguments: tuple[Any, ...]) -> list[Any]:
    """Like `shapes`, with one list per tensor for lists of tensors."""
    return _structured(arguments, "shape")


def structured_strides(arguments: tuple[Any, ...]) -> list[Any]:
    """Strides in the form of `structured_shapes`."""
    return _structured(arguments, "strides")


def dtypes(arguments: tuple[Any, ...]) -> list[str]:
    """The kind of each argument: a tensor's element type, "TensorList", "Scalar", "ScalarList", or nothing."""
    result = []
    for item in arguments:
        if isinstance(item, TensorInput):
            result.append(_CXX_NAMES.get(item.dtype, item.dtype))
        elif _is_tensor_list(item):
            result.append("TensorList")
        elif _is_number(item):
            result.append("Scalar")
        elif _is_number_list(item):
            result.append("ScalarList")
        else:
            result.append("")
    return result


def concrete(arguments: tuple[Any, ...]) -> list[Any]:
    """The values of numbers and lists of numbers; None for tensors and everything else."""
    return [
        item if _is_number(item) else list(item) if _is_number_list(item) else None
        for item in arguments
    ]


def named(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The keyword values, besides the positional ones."""
    return dict(arguments.named) if isinstance(arguments, Arguments) else {}
