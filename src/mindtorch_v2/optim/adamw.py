"""`torch.optim.adamw`: AdamW, which is a kind of Adam."""

from __future__ import annotations

from ._stepping import functional_forms
from .adam import AdamW

__all__ = ["AdamW", "adamw"]  # noqa: F822 - the function is made when it is asked for

__getattr__ = functional_forms(__name__)
