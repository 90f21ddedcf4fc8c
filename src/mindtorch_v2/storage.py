"""`torch.storage`: the classes of memory."""

from __future__ import annotations

from ._typed_storage import TypedStorage, UntypedStorage, _LegacyStorage

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]
