"""`torch.testing._internal.common_quantization`: this runtime has no quantized tensors, so such tests are skipped."""

from __future__ import annotations

import unittest
from typing import Any


def __getattr__(name: str) -> Any:
    """A helper that skips the test which calls it."""
    if name.startswith("__"):
        raise AttributeError(name)

    def skipped(*args: Any, **kwargs: Any) -> Any:
        raise unittest.SkipTest(f"{name}: quantized tensors are not part of this runtime")

    skipped.__name__ = name
    return skipped
