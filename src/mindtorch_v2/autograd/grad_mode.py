"""`torch.autograd.grad_mode`: switching recording on and off."""

from __future__ import annotations

from .._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..utils._contextlib import _DecoratorContextManager
from . import _force_original_view_tracking, set_multithreading_enabled
from ._engine_names import enforce_grad_layout_policy
from .graph import _unsafe_preserve_version_counter

__all__ = ["_DecoratorContextManager", "_force_original_view_tracking", "_unsafe_preserve_version_counter",
           "enable_grad", "enforce_grad_layout_policy", "inference_mode", "no_grad", "set_grad_enabled",
           "set_multithreading_enabled"]
