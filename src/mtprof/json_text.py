"""Small pieces of JSON text, encoded once per distinct value."""

from __future__ import annotations

from typing import Any

import orjson


def text(value: Any) -> str:
    """A value as JSON. Lone surrogates, which UTF-8 cannot hold, become `?`."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_printable(value), option=orjson.OPT_NON_STR_KEYS).decode()


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(item) for item in value]
    if value is None or (isinstance(value, (bool, float)) or (isinstance(value, int) and -(2**63) <= value < 2**64)):
        return value
    return str(value)


def microseconds(ns: int) -> str:
    """Nanoseconds as microseconds with three decimals, exactly."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"
