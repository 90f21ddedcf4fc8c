"""`torch._C._nn`: how `Module.to` reads its arguments."""

from __future__ import annotations

from typing import Any

from ..nn.modules._convert import parse_to

__all__ = ["_parse_to"]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, whether it may happen later, and memory format.

    >>> _parse_to("cpu")
    (device(type='cpu'), None, False, None)
    """
    where, kind, non_blocking, memory_format = parse_to(args, dict(kwargs))
    return where, kind, non_blocking, memory_format
