"""Turns a failed kernel call into PyTorch's error.

Checks that only matter when something is wrong are made here, after the failure, so that the hot path has none.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._shape import broadcast_shapes
from .._tensor import Tensor
from .observer import tell_refusal
from .overriding import PACKAGE, claim
from .registry import Op
from .schema import as_given

OPERANDS = (Tensor, int, float, complex, np.number, np.bool_)  # what stands beside a tensor in `x + y`
_TOO_BIG = ("array is too big", "Maximum allowed dimension exceeded")


def explain(op: Op, error: Exception, values: tuple[Any, ...], form: str, operator: Any = None) -> Any:
    """The exception to raise instead of `error`, which may be `error` itself; or `Taken`, with a result after all.

    NotImplemented if the op was called as an operator with an operand it does not know: `operator` answers then.
    """
    taken = claim(values, sys._getframe(1), lambda: public_call(op, values, form))
    if taken is not None:
        return taken
    if op.namespace != "aten":
        return error  # what the program's own function has raised
    operands = OPERANDS if form != "matmul" else Tensor
    if operator is not None and not all(isinstance(value, operands) for value in values[:2]):
        return NotImplemented
    arguments = op.schema.arguments
    scalar_ok = op.promote in ("binary", "binary_float", "compare", "difference")
    for position, (argument, value) in enumerate(zip(arguments, values), start=1):
        if not argument.is_tensor or isinstance(value, Tensor) or (value is None and argument.is_optional):
            continue
        if argument.is_list:
            problem = list_problem(form, position, argument.name, value)
            if problem is not None:
                return problem
            continue
        if scalar_ok and isinstance(value, (int, float, complex, np.number, np.bool_)) and argument.name != "self":
            continue
        return TypeError(
            f"{form}(): argument '{argument.python_name}' (position {position}) must be Tensor, "
            f"not {type(value).__name__}"
        )
    tensors = [v for v in values if isinstance(v, Tensor)]
    devices = {str(t.device) for t in tensors if t._a.shape or t.device.type != "cpu"}
    if len(devices) > 1:
        found = ", ".join(sorted(devices))
        return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {found}!")
    if op.promote not in (None, "float", "list") and isinstance(error, ValueError):
        try:
            shape = broadcast_shapes(*(t._a.shape for t in tensors))
        except RuntimeError as mismatch:
            return mismatch
        if form.endswith("_") and shape != tensors[0]._a.shape:
            return RuntimeError(
                f"output with shape {list(tensors[0]._a.shape)} doesn't match the broadcast shape {list(shape)}"
            )
    if isinstance(error, np.exceptions.AxisError):
        return IndexError(str(error))
    if isinstance(error, np.linalg.LinAlgError):
        return RuntimeError(str(error))
    if isinstance(error, TypeError) and "ufunc" in str(error) and tensors:
        names = ", ".join(dict.fromkeys(t.dtype.name for t in tensors))
        return RuntimeError(f'"{form}" not implemented for {names}')
    if isinstance(error, MemoryError):
        return no_memory(error)
    if isinstance(error, ValueError) and str(error).startswith(_TOO_BIG):
        sizes = next((value for argument, value in zip(arguments, values) if argument.name == "size"), None)
        if sizes is not None:
            shown = ", ".join(map(str, sizes if isinstance(sizes, (list, tuple)) else [sizes]))
            return RuntimeError(f"Storage size calculation overflowed with sizes=[{shown}]")
    return error


def public_call(op: Op, values: tuple[Any, ...], form: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function that a program has called to run an op, and the arguments, without those that have defaults."""
    public = getattr(sys.modules[PACKAGE], form, None) or op.forms[form != op.name]
    return public, *as_given(op.schema, values)


def no_memory(error: MemoryError) -> Exception:
    """PyTorch's error for memory that the system did not give, after telling a recording of it."""
    size = tell_refusal(error)
    if size is None:
        return RuntimeError(f"DefaultCPUAllocator: can't allocate memory: {error}")
    return RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
                        f"tried to allocate {size} bytes. Error code 12 (Cannot allocate memory)")


def list_problem(form: str, position: int, name: str, value: Any) -> Exception | None:
    """What is wrong with a tensor-list argument, if anything."""
    if isinstance(value, Tensor) or not isinstance(value, (list, tuple)):
        return TypeError(f"{form}(): argument '{name}' (position {position}) must be tuple of Tensors, "
                         f"not {type(value).__name__}")
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            return TypeError(
                f"expected Tensor as element {i} in argument {position - 1}, but got {type(item).__name__}")
    return None
