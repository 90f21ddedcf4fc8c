"""`torch.npu.amp`: mixed precision on NPUs, the same as `torch.amp` with "npu"."""

from __future__ import annotations

from .. import amp as _amp
from .._dtype import DType, bfloat16, dtype, float16
from ..amp import settings


class autocast(_amp.autocast):
    """A block in which listed ops on the NPU run in lower precision."""

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True) -> None:
        super().__init__("npu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """Keeps small gradients alive."""

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        super().__init__("npu", init_scale=init_scale, growth_factor=growth_factor, backoff_factor=backoff_factor,
                         growth_interval=growth_interval, enabled=enabled)


def get_amp_supported_dtype() -> list[dtype]:
    """The dtypes that autocast can run in."""
    return [float16, bfloat16]


def is_autocast_enabled() -> bool:
    """Whether this thread is inside an enabled autocast for NPUs."""
    return settings.is_autocast_enabled("npu")


def set_autocast_enabled(enable: bool) -> None:
    """Switch autocast for NPUs."""
    settings.set_autocast_enabled("npu", enable)


def get_autocast_dtype() -> dtype:
    """The dtype that listed ops run in."""
    return settings.get_autocast_dtype("npu")


def set_autocast_dtype(dtype: dtype) -> None:
    """Set that dtype."""
    settings.set_autocast_dtype("npu", dtype)
