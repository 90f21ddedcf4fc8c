"""`torch._dynamo.eval_frame`: the class of compiled modules, of which there are none."""

from __future__ import annotations

from .._absent import refusing_class

__all__ = ["OptimizedModule", "is_dynamo_supported"]

# Libraries ask whether a module is compiled, to find the one inside it.
OptimizedModule = refusing_class("OptimizedModule", NotImplementedError,
                                 "torch._dynamo.OptimizedModule: this runtime has no compiler")


def is_dynamo_supported() -> bool:
    """False."""
    return False
