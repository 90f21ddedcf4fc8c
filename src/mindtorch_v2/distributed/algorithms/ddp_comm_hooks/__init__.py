"""`torch.distributed.algorithms.ddp_comm_hooks`: ways to reduce gradients."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from ...._outside import attributes
from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(enum.Enum):
    """Hooks by name. Those that quantize are not in this runtime."""

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = "quantization_pertensor_hook"
    QUANTIZE_PER_CHANNEL = "quantization_perchannel_hook"
    POWER_SGD = partial(powerSGD_hook.powerSGD_hook), 1
    POWER_SGD_RANK2 = partial(powerSGD_hook.powerSGD_hook), 2
    BATCHED_POWER_SGD = partial(powerSGD_hook.batched_powerSGD_hook), 1
    BATCHED_POWER_SGD_RANK2 = partial(powerSGD_hook.batched_powerSGD_hook), 2
    NOOP = partial(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Reduce a module's gradients by one of these hooks; the state is its process group."""
    chosen: Any = comm_hook_type.value
    if isinstance(chosen, str):
        raise NotImplementedError(f"{chosen}: gradients of 8 bits are not part of this runtime; FP16_COMPRESS, "
                                  f"BF16_COMPRESS and POWER_SGD make them smaller")
    if isinstance(chosen, tuple):
        chosen, rank = chosen
        state = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank)
    model.register_comm_hook(state, chosen.func)


__getattr__ = attributes("distributed.algorithms.ddp_comm_hooks", globals())
