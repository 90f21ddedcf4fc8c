"""`torch.onnx.symbolic_helper`: what libraries write the export of their ops with. The functions are never called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._outside import attributes
from . import TensorProtoDataType as _Types

__all__ = ["cast_pytorch_to_onnx", "parse_args", "quantized_args"]

cast_pytorch_to_onnx = {
    "Byte": _Types.UINT8, "Char": _Types.INT8, "Double": _Types.DOUBLE, "Float": _Types.FLOAT, "Half": _Types.FLOAT16,
    "Int": _Types.INT32, "Long": _Types.INT64, "Short": _Types.INT16, "Bool": _Types.BOOL,
    "ComplexFloat": _Types.COMPLEX64, "ComplexDouble": _Types.COMPLEX128, "BFloat16": _Types.BFLOAT16,
    "Undefined": _Types.UNDEFINED}


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns the function as it is."""
    return lambda function: function


quantized_args = parse_args
__getattr__ = attributes("onnx.symbolic_helper", globals())
