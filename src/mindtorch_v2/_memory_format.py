"""Memory formats: names for the order of a tensor's elements in memory."""

from __future__ import annotations

from typing import TypeAlias


class memory_format:
    """One of `contiguous_format`, `preserve_format`, `channels_last`, `channels_last_3d`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # pickled by name: there is one of each


MemoryFormat: TypeAlias = memory_format  # for parameters that are themselves called memory_format

contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

# For a channels-last format: the order of dimensions from outermost to innermost.
CHANNELS_LAST_ORDER = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}
