"""`torch.autograd`: gradients on demand."""

from __future__ import annotations

from .._autograd.anomaly import detect_anomaly, set_detect_anomaly
from .._autograd.api import backward, grad
from .._autograd.function import Function
from .._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .._autograd.gradcheck import gradcheck, gradgradcheck
from .._tensor import Tensor as Variable
from . import function, graph, profiler, profiler_util

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "profiler_util",
    "set_detect_anomaly",
    "set_grad_enabled",
]
