"""`torch.storage`: the classes of memory."""

from __future__ import annotations

import io
from typing import Any

from ._storage_removal import Removal, warn
from ._typed_storage import OLD, TypedStorage, UntypedStorage, _LegacyStorage


def _dtype_to_storage_type_map() -> dict[Any, str]:
    """The names of the old storage classes, by dtype."""
    return {old.kind: name for name, old in OLD.items()}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    """The dtypes of the old storage classes, by name."""
    return {name: old.kind for name, old in OLD.items()}


def _reset_warn_typed_storage_removal() -> None:
    """Let the next use of a TypedStorage warn."""
    Removal.warned = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Warn of a use of a TypedStorage, if a warning is due."""
    warn(stacklevel + 1)


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
