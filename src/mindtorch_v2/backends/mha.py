"""`torch.backends.mha`: whether layers of attention may be computed as one op at inference."""

from __future__ import annotations

from .._attention_backends import FastPath


def get_fastpath_enabled() -> bool:
    """Whether attention and encoder layers take their one op where they can."""
    return FastPath.enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid that one op."""
    FastPath.enabled = value
