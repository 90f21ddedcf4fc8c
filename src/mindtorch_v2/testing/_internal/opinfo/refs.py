"""`PythonRefInfo` and its kin: PyTorch has ops a second time in Python (`torch._refs`), this runtime does not."""

from __future__ import annotations

from .infos import BinaryUfuncInfo, OpInfo, ReductionOpInfo, UnaryUfuncInfo


class PythonRefInfo(OpInfo):
    """A second form of an op. There is none here: tests only ask whether an op is one."""


class ReductionPythonRefInfo(ReductionOpInfo):
    """A second form of a reduction."""


class ElementwiseUnaryPythonRefInfo(UnaryUfuncInfo):
    """A second form of an elementwise op."""


class ElementwiseBinaryPythonRefInfo(BinaryUfuncInfo):
    """A second form of an elementwise op of two tensors."""
