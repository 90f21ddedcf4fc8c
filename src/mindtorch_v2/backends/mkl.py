"""`torch.backends.mkl`: ops run on NumPy, not on Intel's MKL."""

from __future__ import annotations


def is_available() -> bool:
    """False: no op of this runtime calls Intel's MKL itself."""
    return False
