"""`torch.backends.cpu`: what the processor can do for this runtime's own kernels."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """"DEFAULT": vector instructions are NumPy's business."""
    return "DEFAULT"
