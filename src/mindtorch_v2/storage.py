"""`torch.storage`: the classes of memory."""

from __future__ import annotations

import io
from typing import Any

from ._storage_removal import Removal
from ._typed_storage import TypedStorage, UntypedStorage, _LegacyStorage


def _get_always_warn_typed_storage_removal() -> bool:
    """Whether each use of a TypedStorage warns; else only the first does."""
    return Removal.always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Let each use of a TypedStorage warn, or only the first."""
    Removal.always = bool(always_warn)


def _load_from_bytes(b: bytes) -> Any:
    """Read the bytes of a file of `torch.save`. This may run code from the file."""
    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)


__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]
