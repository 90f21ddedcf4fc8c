"""`torch.jit.annotations`: types that scripts are annotated with. Here they are Python's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035  programs import them from here

from ..futures import Future

__all__ = ["Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Callable", "Dict", "Future", "List",
           "Optional", "Tuple", "Union"]


class _BroadcastingList:
    """A list that may be given as one number: `BroadcastingList2[int]` is a list of two integers."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
