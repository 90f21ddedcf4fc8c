"""`torch._C._nn`: how `Module.to` reads its arguments, and ops that `torch.nn.functional` alone has in public."""

from __future__ import annotations

from typing import Any

from ..nn import functional
from ..nn.modules._convert import parse_to

__all__ = ["_parse_to"]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, whether it may happen later, and memory format.

    >>> _parse_to("cpu")
    (device(type='cpu'), None, False, None)
    """
    where, kind, non_blocking, memory_format = parse_to(args, dict(kwargs))
    return where, kind, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    if name not in functional.IN_C:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(functional, next(public for public, op in functional.DIRECT.items() if op == name))
