"""`torch.nn.attention`: choosing how `scaled_dot_product_attention` is computed.

On this runtime there are two ways: `FLASH_ATTENTION`, one fused op, where the arguments allow it, and `MATH`, step by
step. If none of the allowed ways can do a call, the call raises, as PyTorch's does.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from ..._absent import refusing
from ..._attention_backends import ALLOWED

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "current_flash_attention_impl", "list_flash_attention_impls",
           "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """Ways to compute attention; those that this runtime does not have are never used."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    return [SDPBackend(number) for number in ALLOWED.numbers]


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """Allow only these ways inside the block."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
                             f"{type(backends).__name__}")
    chosen = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    before = ALLOWED.numbers
    ALLOWED.numbers = tuple(int(backend) for backend in chosen)
    try:
        yield {}
    finally:
        ALLOWED.numbers = before


def list_flash_attention_impls() -> list[str]:
    """No implementations can be registered."""
    return []


def current_flash_attention_impl() -> str | None:
    """None: the built-in one."""
    return None


_REASON = "torch.nn.attention.{0}: implementations of attention cannot be exchanged in this runtime"
register_flash_attention_impl = refusing("register_flash_attention_impl", NotImplementedError, _REASON)
activate_flash_attention_impl = refusing("activate_flash_attention_impl", NotImplementedError, _REASON)
restore_flash_attention_impl = refusing("restore_flash_attention_impl", NotImplementedError, _REASON)
