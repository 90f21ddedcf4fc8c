"""`from torch_npu.contrib import transfer_to_npu`: what a program says of CUDA is meant of the NPU from then on.

`"cuda"` in devices and autocast, `.cuda()`, `is_cuda`, `torch.cuda` and `ProfilerActivity.CUDA` are the NPU's. Names
that the NPU does not have stay as they were.
"""

from __future__ import annotations

from types import ModuleType

from ... import cuda, npu
from ..._device import MEANT
from ..._tensor import Tensor
from ...nn import Module


def _give(names_of: ModuleType, to: ModuleType) -> None:
    for name in dir(names_of):
        if not name.startswith("_"):
            setattr(to, name, getattr(names_of, name))


MEANT["cuda"] = "npu"
_give(npu.amp, cuda.amp)
_give(npu.random, cuda.random)
_amp, _random = cuda.amp, cuda.random
_give(npu, cuda)
cuda.amp, cuda.random = _amp, _random  # the modules that programs may have imported already
Tensor.cuda = Tensor.npu  # type: ignore[method-assign, attr-defined]
Tensor.is_cuda = Tensor.is_npu  # type: ignore[assignment]
Module.cuda = Module.npu  # type: ignore[method-assign]
