"""`torch._vendor.packaging.version`: versions that can be compared."""

from __future__ import annotations

from ...torch_version import TorchVersion as Version

__all__ = ["Version", "parse"]


def parse(version: str) -> Version:
    """A version from its text."""
    return Version(version)
