"""`torch_npu` for programs that import it: its names are those of `torch.npu` and of this runtime's profiler.

Importing it changes nothing: the NPU is part of this runtime.
"""

from __future__ import annotations

from typing import Any

from .. import npu
from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..version import __version__ as _runtime_version
from . import profiler

__version__ = _runtime_version
ND, NCHW = 2, 0


def npu_format_cast(self: Tensor, acl_format: int) -> Tensor:
    """A tensor in a format of the NPU; this runtime has PyTorch's own layouts only, and keeps the tensor."""
    if acl_format not in (ND, NCHW, -1):
        raise NotImplementedError(f"npu_format_cast: format {acl_format} is not supported; tensors keep PyTorch's "
                                  "layouts (2, ND)")
    return self


def get_npu_format(self: Tensor) -> int:
    """The number of a tensor's format: ND."""
    return ND


def empty_with_format(*args: Any, acl_format: int = ND, **kwargs: Any) -> Tensor:
    """A new tensor; formats other than PyTorch's own are refused."""
    return npu_format_cast(aten.empty(*args, **kwargs), acl_format)


def npu_fusion_attention(*args: Any, **kwargs: Any) -> Any:
    """Attention in one operator of torch_npu, which libraries import whether or not they call it."""
    raise NotImplementedError("torch_npu.npu_fusion_attention is not in this runtime; "
                              "torch.nn.functional.scaled_dot_product_attention runs on the NPU")


__all__ = ["empty_with_format", "get_npu_format", "npu", "npu_format_cast", "npu_fusion_attention", "profiler"]
