"""PyTorch's names of overloads, where the op table has others.

>>> from mindtorch_v2._dispatch.registry import OPS
>>> overload_name(OPS["pow.Tensor_Scalar"]), overload_name(OPS["pow.Tensor_Scalar"], inplace=True)
('Tensor_Scalar', 'Scalar')
"""

from __future__ import annotations

from .registry import Op

_NAMES = {"normal.fill": "", **dict.fromkeys(
    ["greater", "greater_", "greater_equal", "greater_equal_", "less", "less_", "less_equal",
     "less_equal_", "multiply", "multiply_", "not_equal", "not_equal_", "subtract", "subtract_", "true_divide",
     "true_divide_"], "Tensor"), **dict.fromkeys(
    ["greater.out", "greater_equal.out", "less.out", "less_equal.out", "not_equal.out"], "Tensor_out")}
# ... and of in-place forms whose overload is not that of the op.
_INPLACE_NAMES = {"floor_divide": "Tensor", "ldexp.Tensor": "", "pow.Tensor_Scalar": "Scalar",
                  "pow.Tensor_Tensor": "Tensor"}


def overload_name(op: Op, inplace: bool = False) -> str:
    """The name of an op's overload in PyTorch, empty for the one without."""
    found = _NAMES.get(op.key, "" if op.overload == "inplace" else op.overload)
    return _INPLACE_NAMES.get(op.key, found) if inplace else found


def is_inplace_alone(op: Op) -> bool:
    """Whether an entry of the table is there for an in-place form, and is no overload of the op itself in PyTorch."""
    return op.overload.startswith("inplace") or op.key == "normal.fill"
