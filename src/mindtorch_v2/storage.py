"""`torch.storage`: the classes of memory."""

from __future__ import annotations

from ._typed_storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
