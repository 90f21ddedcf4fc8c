"""`torch.autograd.profiler_legacy`: the profiler before Kineto, by the recorder that all profilers share."""

from __future__ import annotations

import warnings
from typing import Any

from ..profiler.profiler_state import ActiveProfilerType
from ..profiler.session import profile as _Session
from .profiler_util import EventList, FunctionEvent

__all__ = ["EventList", "FunctionEvent", "profile"]


class profile(_Session):
    """Record what runs inside. Deprecated in PyTorch, as its arguments are: use `torch.profiler`.

    >>> import mindtorch_v2 as torch
    >>> with torch.autograd.profiler_legacy.profile() as prof:
    ...     y = torch.ones(2) + 1
    >>> "aten::add" in [event.name for event in prof.function_events]
    True
    """

    kind = ActiveProfilerType.LEGACY

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, record_shapes: bool = False,
                 with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_modules: bool = False) -> None:
        if use_cuda:
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        super().__init__(enabled, record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory,
                         with_stack=with_stack, with_modules=with_modules)

    def config(self) -> Any:
        """Refused: settings of the recorder that was PyTorch's before Kineto."""
        raise NotImplementedError("profiler_legacy.profile.config: this runtime has one recorder, without its settings")
