"""The one flag that `Module.__call__` checks. Module hooks set it, and so does a recording that watches calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Flag:
    """Whether a call of a module may need more than `forward`."""

    raised = False
    hooks = False  # whether any hook was ever registered in this process
    # Called as `watch(module, args, kwargs)` instead of the module's `_call_impl`, which it calls if there are hooks.
    watch: Callable[[Any, Any, Any], Any] | None = None
