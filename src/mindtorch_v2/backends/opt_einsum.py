"""`torch.backends.opt_einsum`: ops run on NumPy, not on opt_einsum."""

from __future__ import annotations

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """False: no op of this runtime calls opt_einsum itself."""
    return False
