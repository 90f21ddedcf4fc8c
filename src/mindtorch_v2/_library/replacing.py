"""`Library("aten", "IMPL")`: another CPU kernel for an op of the table.

The op's function keeps everything else: promotion, the autograd node, the profiler's row. The kernel it calls is a
cell of its closure, so that replacing it reaches every reference to the function and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.dispatcher import compile_op
from .._dispatch.namespace import load_late
from .._dispatch.registry import OPS, Op
from .._dispatch.state import THREAD
from .._tensor import Tensor, wrap_known


def replaceable(name: str, key: str) -> Op:
    """The op of the table, if its kernel can be replaced."""
    wanted = name.partition("::")[2] or name
    op = OPS.get(wanted) or (OPS.get(wanted) if load_late(wanted.partition(".")[0]) else None)
    reason = ""
    if op is None:
        reason = "the op table has no op of this name"
    elif key != "CPU":
        reason = f"of an op of the table only the kernel for key 'CPU' can be replaced, not for {key or 'all keys'!r}"
    elif op.composite is not None or op.cpu is None or op.view:
        reason = "it has no kernel of its own that could be replaced: it is made of other ops, or a view"
    if op is None or reason:
        raise NotImplementedError(f"torch.library: cannot implement aten::{wanted}: {reason}")
    return op


def replace(op: Op, function: Callable[..., Any]) -> Callable[[], None]:
    """Make a function on tensors the kernel of an op; calling the result undoes it."""
    made = compile_op(op)
    names = made.__code__.co_freevars
    cells = [cell for name, cell in zip(names, made.__closure__ or (), strict=True)
             if name in ("kernel_", "kernel_full_")]
    before = [cell.cell_contents for cell in cells]
    kernel = _on_arrays(op, function)
    for cell in cells:
        cell.cell_contents = kernel

    def undo() -> None:
        for cell, old in zip(cells, before, strict=True):
            if cell.cell_contents is kernel:
                cell.cell_contents = old

    return undo


def _on_arrays(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    arguments = op.schema.arguments
    tensors = [a for a in arguments if a.is_tensor]

    def kernel(*values: Any) -> Any:
        # Where all other arguments have their defaults, the op passes its arrays only.
        passed = tensors if len(values) == len(tensors) else arguments
        given, named = [], {}
        for argument, value in zip(passed, values, strict=True):
            if argument.is_list:
                value = [wrap_known(array) for array in value]
            elif argument.is_tensor and value is not None:
                value = wrap_known(value)
            if argument.keyword_only:
                named[argument.name] = value
            else:
                given.append(value)
        state = THREAD.state
        state.exposed += 1
        enabled, state.grad = state.grad, False
        try:
            result = function(*given, **named)
        finally:
            state.grad = enabled
        if isinstance(result, (tuple, list)):
            return type(result)(one._a if isinstance(one, Tensor) else one for one in result)
        return result._a if isinstance(result, Tensor) else result

    return kernel
