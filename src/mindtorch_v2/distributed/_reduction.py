"""`ReduceOp`, and its meaning for MPI: an operation and a datatype for an array's dtype.

MPI has no 16-bit floats. Their reductions are NumPy functions that MPI calls on its own buffers, so their arrays are
not converted. Bools are reduced by logic, as PyTorch's backends for devices do.
"""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from ._mpi import mpi

__all__ = ["ReduceOp", "movement", "operation", "premul_sum", "prepare", "reduce_op", "supports_complex"]


class RedOpType(enum.IntEnum):
    """How values of several ranks become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    __str__ = enum.Enum.__str__


class _ReduceOpMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RedOpType) or type.__instancecheck__(cls, instance)


class ReduceOp(metaclass=_ReduceOpMeta):
    """`ReduceOp.SUM` and similar, and sums with a factor (`_make_nccl_premul_sum`)."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = (RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX)
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __init__(self, op: Any = RedOpType.SUM, factor: Any = None) -> None:
        self.op: Any = op.op if type(op) is ReduceOp else op
        self.factor = factor

    def __eq__(self, other: Any) -> bool:
        return self.op is (other.op if type(other) is ReduceOp else other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"<torch.distributed.ReduceOp {self.op.name}>"


def reduce_op(op: Any) -> ReduceOp:
    """The argument `op` of a collective."""
    if type(op) is ReduceOp:
        return op
    if isinstance(op, RedOpType):
        return ReduceOp(op)
    raise TypeError(f"op should be a torch.distributed.ReduceOp, but got {type(op).__name__} {op!r}")


def premul_sum(factor: Any) -> ReduceOp:
    """Sums of values times a factor."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex numbers can be reduced this way."""
    return reduce_op(reduceOp).op in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)


_NAMES = {RedOpType.SUM: "SUM", RedOpType.AVG: "SUM", RedOpType.PREMUL_SUM: "SUM", RedOpType.PRODUCT: "PROD",
          RedOpType.MIN: "MIN", RedOpType.MAX: "MAX", RedOpType.BAND: "BAND", RedOpType.BOR: "BOR",
          RedOpType.BXOR: "BXOR"}
_LOGIC = {"SUM": "LOR", "PROD": "LAND", "MIN": "LAND", "MAX": "LOR", "BAND": "LAND", "BOR": "LOR", "BXOR": "LXOR"}
_UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum}
_HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


@cache
def _half_operation(name: str, dtype: np.dtype) -> Any:
    function = _UFUNCS[name]

    def combine(left: Any, right: Any, datatype: Any) -> None:
        target = np.frombuffer(right, dtype)
        function(np.frombuffer(left, dtype), target, out=target)

    return mpi().Op.Create(combine, commute=True)


def operation(op: ReduceOp, dtype: np.dtype, what: str) -> tuple[Any, Any, np.dtype]:
    """MPI's operation and datatype, and the dtype in which the array goes to MPI."""
    MPI, name = mpi(), _NAMES[op.op]
    if op.op is RedOpType.AVG and dtype.kind in "iub":
        raise RuntimeError(f"{what}: result type Float can't be cast to the desired output type {dtype}; ReduceOp.AVG "
                           f"works on floating-point numbers")
    if dtype in _HALVES:
        if name not in _UFUNCS:
            raise RuntimeError(f"{what}: cannot use ReduceOp.{op.op.name} with {dtype}, it works on integers")
        return _half_operation(name, dtype), MPI.UINT16_T, np.dtype(np.uint16)
    if dtype.kind == "b":
        return getattr(MPI, _LOGIC[name]), MPI.C_BOOL, dtype
    if dtype.kind == "c" and not supports_complex(op):
        refusal = ValueError if what == "all_reduce" else RuntimeError  # as in PyTorch
        raise refusal(f"{what} does not support {op!r} on complex tensors")
    if dtype.kind not in "iufc" or (name in ("BAND", "BOR", "BXOR") and dtype.kind not in "iu"):
        raise RuntimeError(f"{what}: cannot use ReduceOp.{op.op.name} with {dtype}")
    return getattr(MPI, name), MPI._typedict[dtype.char], dtype


def prepare(op: ReduceOp, array: np.ndarray) -> None:
    """Prepare a rank's own values before a sum: the factor of `PREMUL_SUM`."""
    if op.op is RedOpType.PREMUL_SUM:
        factor = getattr(op.factor, "_a", op.factor)
        np.multiply(array, np.asarray(1 if factor is None else factor, array.dtype), out=array)


def conclude(op: ReduceOp, array: np.ndarray, ranks: int) -> None:
    """Finish the sum: `AVG` divides it."""
    if op.op is RedOpType.AVG:
        np.divide(array, np.asarray(ranks, array.dtype), out=array)


def movement(array: np.ndarray) -> list[Any]:
    """An array as bytes, for collectives that only move data."""
    return [array.reshape(-1).view(np.uint8), mpi().BYTE]
