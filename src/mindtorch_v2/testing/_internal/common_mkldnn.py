"""`torch.testing._internal.common_mkldnn`: products of float32 are never computed in less here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["bf32_is_not_fp32", "bf32_on_and_off", "reduced_f32_on_and_off", "tf32_is_not_fp32"]


def bf32_is_not_fp32() -> bool:
    """Whether matrix products of float32 may be computed in bfloat16: no."""
    return False


tf32_is_not_fp32 = bf32_is_not_fp32


@contextmanager
def bf32_off() -> Iterator[None]:
    """A block without reduced precision, as all are."""
    yield


reduced_f32_off = bf32_on = tf32_on = bf32_off


def reduced_f32_on_and_off(bf32_precision: float = 1e-5, tf32_precision: float = 1e-5) -> Any:
    """Run a test with and without reduced precision: there is none, so it runs once."""
    return lambda function: function


bf32_on_and_off = reduced_f32_on_and_off
