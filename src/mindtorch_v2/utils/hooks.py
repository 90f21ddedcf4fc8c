"""`torch.utils.hooks`: the handle that takes a hook away again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.graph import RemovableHandle as _Handle


class RemovableHandle(_Handle):
    """An id for a hook in a dictionary; `remove` deletes it there and in `extra_dict`.

    >>> hooks = {}
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> hooks
    {}
    """

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        super().__init__(hooks_dict)
        if extra_dict is None:
            self.extra_dicts: tuple[Any, ...] = ()
        else:
            self.extra_dicts = tuple(extra_dict) if isinstance(extra_dict, Sequence) else (extra_dict,)

    def remove(self) -> None:
        """Take the hook away; doing it twice is fine."""
        super().remove()
        for entries in self.extra_dicts:
            entries.pop(self.id, None)


__all__ = ["RemovableHandle"]
