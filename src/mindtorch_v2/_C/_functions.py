"""`torch._C._functions`: nodes of the graph that are no op's."""

from __future__ import annotations

from .._autograd.function import DelayedError, Error, UndefinedGrad
from .._autograd.graph import AccumulateGrad
from .._autograd.inplace import CopySlices

__all__ = ["AccumulateGrad", "CopySlices", "DelayedError", "Error", "UndefinedGrad"]
