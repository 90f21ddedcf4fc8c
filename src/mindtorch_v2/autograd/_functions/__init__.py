"""`torch.autograd._functions`: two differentiable steps from before tensors had them as methods."""

from .tensor import Resize, Type

__all__ = ["Resize", "Type"]
