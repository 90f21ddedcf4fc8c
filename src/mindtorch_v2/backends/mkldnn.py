"""`torch.backends.mkldnn`: ops run on NumPy, not on oneDNN. The flags can be set and read back."""

from __future__ import annotations

enabled = True
deterministic = False
allow_tf32 = False


def is_available() -> bool:
    """False: no op of this runtime calls oneDNN."""
    return False
