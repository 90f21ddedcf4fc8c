"""`torch.backends.cuda`: not there. The flags can be set and read back, since programs set them unasked."""

from __future__ import annotations

from typing import Any


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
