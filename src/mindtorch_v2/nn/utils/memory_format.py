"""Memory formats of convolution weights."""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M")


def _convert(module: Any, memory_format: Any, kinds: tuple[type, ...]) -> Any:
    for part in module.modules():
        if isinstance(part, kinds):
            layer: Any = part
            layer.weight.data = layer.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Store the weights of all two-dimensional convolutions in a memory format."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Store the weights of all three-dimensional convolutions in a memory format."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
