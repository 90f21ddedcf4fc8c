"""`torch.utils.hooks`: the handle that takes a hook away again."""

from __future__ import annotations

import warnings
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


def unserializable_hook(f: Any) -> Any:
    """Mark a hook that may be lost when its tensor is saved, so that saving does not warn."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn if a tensor that is about to be saved has hooks that would be lost, unless they are marked."""
    for hook in ((None if tensor._ag is None else tensor._ag.hooks) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                          "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)


__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
