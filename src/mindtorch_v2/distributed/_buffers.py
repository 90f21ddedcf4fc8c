"""Tensors as the arrays that MPI reads and writes.

A contiguous tensor on the CPU is its own buffer. Others go through a copy: those with strides, and those of the
simulated NPU, whose memory MPI does not know.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autograd.grad_mode import no_grad
from .._backends.sparse import SparseArray
from .._tensor import Tensor, wrap

__all__ = ["Buffer", "check_list", "check_tensor", "facts"]


class Buffer:
    """The array of a tensor, and the way back if it is a copy."""

    def __init__(self, tensor: Tensor, read: bool = True) -> None:
        held = tensor._a
        self.tensor = tensor
        self.is_copy = True
        if isinstance(held, SparseArray):
            raise NotImplementedError("torch.distributed: sparse tensors cannot be sent; use to_dense()")
        if type(held) is np.ndarray:
            self.is_copy = not held.flags.c_contiguous
            self.array = held if not self.is_copy else np.ascontiguousarray(held) if read else np.empty(
                held.shape, held.dtype)
            return
        if tensor.device.type != "npu":
            raise RuntimeError(f"torch.distributed: tensors on {tensor.device} cannot be sent")
        from .. import npu

        if not npu.is_simulated():
            raise RuntimeError("torch.distributed: NPU tensors need HCCL, which is not bound; move them to the CPU")
        self.array = np.ascontiguousarray(tensor.detach().cpu()._a)

    def write_back(self) -> None:
        """Copy what MPI wrote to the tensor."""
        if self.is_copy:
            with no_grad():
                self.tensor.copy_(wrap(self.array))


def check_tensor(value: Any, name: str, what: str) -> Tensor:
    """The argument, if it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Invalid function argument: {what} expects `{name}` to be of type torch.Tensor, but got "
                        f"{type(value).__name__}")
    return value


def check_list(value: Any, name: str, what: str) -> list[Tensor]:
    """The argument, if it is a list of tensors."""
    if not isinstance(value, list) or not all(isinstance(one, Tensor) for one in value):
        raise TypeError(f"Invalid function argument: {what} expects `{name}` to be of type List[torch.Tensor], but got "
                        f"{type(value).__name__}")
    return value


def facts(tensor: Tensor) -> str:
    """The properties of a tensor on which ranks must agree: its dtype and number of elements."""
    return f"{tensor.dtype}, {tensor.numel()} elements"
