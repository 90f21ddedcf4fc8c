"""`torch._vendor.packaging`: versions."""

from . import version

__all__ = ["version"]
