"""`torch.backends.cuda`: not there. The flags can be set and read back, since programs set them unasked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._absent import refusing_class


class _Matmul:
    """Precision of matrix products on a device that does not exist."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


matmul: Any = _Matmul()


def is_built() -> bool:
    """False."""
    return False


def flash_sdp_enabled() -> bool:
    """False."""
    return False


mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def math_sdp_enabled() -> bool:
    """True: attention is computed step by step."""
    return True


def _no_choice(enabled: bool) -> None:
    """Nothing: attention on the CPU is not chosen by these flags."""


enable_flash_sdp = enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = _no_choice
def __getattr__(name: str) -> Any:
    """`SDPBackend` is known here too; its module is imported after this one."""
    if name == "SDPBackend":
        from ..nn.attention import SDPBackend

        return SDPBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


SDPAParams = refusing_class("SDPAParams", RuntimeError, "SDPAParams describes attention on CUDA, which is not there")


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """False: that kernel is CUDA's."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """False."""
    return False


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:
    """A block with some of CUDA's ways to compute attention. On the CPU it changes nothing."""
    yield
