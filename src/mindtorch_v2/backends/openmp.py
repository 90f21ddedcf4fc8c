"""`torch.backends.openmp`: ops run on NumPy, not on OpenMP."""

from __future__ import annotations


def is_available() -> bool:
    """False: no op of this runtime calls OpenMP itself."""
    return False
