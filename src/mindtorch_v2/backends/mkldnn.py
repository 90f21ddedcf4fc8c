"""`torch.backends.mkldnn`: ops run on NumPy, not on oneDNN. The flags can be set and read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
deterministic = False
allow_tf32 = False


def is_available() -> bool:
    """False: no op of this runtime calls oneDNN."""
    return False


@contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
          fp32_precision: str = "none") -> Iterator[None]:
    """Wishes for a block; nothing changes."""
    yield
