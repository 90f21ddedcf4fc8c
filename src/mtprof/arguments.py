"""Arguments of ops as plain JSON, exact in both directions."""

from __future__ import annotations

from typing import Any

from .trace import Arguments, TensorInput


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
    """The value that `encode_input` was given, with tuples as lists."""
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


def encode_arguments(arguments: tuple[Any, ...]) -> Any:
    """An argument tuple as plain JSON."""
    values = [encode_input(value) for value in arguments]
    return {"values": values, "named": arguments.named} if isinstance(arguments, Arguments) else values


def decode_arguments(value: Any) -> tuple[Any, ...]:
    """The argument tuple that `encode_arguments` was given."""
    if isinstance(value, dict):
        return Arguments([decode_input(item) for item in value["values"]], value["named"])
    return tuple(decode_input(item) for item in value)
