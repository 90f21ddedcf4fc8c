"""`torch.utils._triton`: whether kernels can be written in Triton. They cannot, there is no GPU."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton() -> bool:
    """Whether Triton and a device for it are there: no."""
    return False


def has_triton_package() -> bool:
    """Whether this runtime would use Triton: no."""
    return False
