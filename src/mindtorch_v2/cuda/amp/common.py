"""Whether mixed precision on CUDA is possible."""

from __future__ import annotations


def amp_definitely_not_available() -> bool:
    """True: there is no CUDA."""
    return True
