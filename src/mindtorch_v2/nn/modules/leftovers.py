"""Old or rarely used modules."""

from __future__ import annotations

import warnings
from typing import Any

from ..._autograd.function import Function
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from .. import functional as F
from ._homes import settle
from .loss import NLLLoss
from .module import Module

__all__ = ["Container", "CrossMapLRN2d", "FractionalMaxPool2d", "FractionalMaxPool3d", "NLLLoss2d"]


class _FractionalMaxPool(Module):
    """Max pooling over windows at random places."""

    spatial = 0

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()

        def each(value: Any) -> Any:
            return (value,) * self.spatial if isinstance(value, (int, float)) else value

        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """The maxima, with their places if asked for."""
        function = F.fractional_max_pool2d if self.spatial == 2 else F.fractional_max_pool3d
        return function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                        self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling of images."""

    spatial = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling of volumes."""

    spatial = 3


def _channel_window(channels: int, low: int, high: int, where: Any) -> Any:
    """A mask: row c has the channels from c + low to c + high."""
    numbers = aten.arange(channels, device=where)
    away = aten.unsqueeze(numbers, 0) - aten.unsqueeze(numbers, 1)
    return (away >= low) & (away <= high)


class _CrossMap(Function):
    """The normalisation of `CrossMapLRN2d` with PyTorch's two windows, which are not each other's transpose."""

    @staticmethod
    def forward(ctx: Any, input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
        """Divided by a power of the mean square of near channels."""
        half = int((size - 1) / 2 + 1) - 1
        near = _channel_window(input.shape[1], -half, half, input.device)
        near[:, 0] = True  # PyTorch's running sum never drops the first channel
        sums = aten.einsum("ij,njhw->nihw", near.to(input.dtype), input * input)
        scale = sums * (alpha / size) + k
        output = input * scale.pow(-beta)
        ctx.save_for_backward(input, output, scale)
        ctx.settings = size, alpha, beta
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """PyTorch's gradient: its window reaches further back than forward."""
        input, output, scale = ctx.saved_tensors
        size, alpha, beta = ctx.settings
        back = int(size - (size - 1) / 2)
        near = _channel_window(input.shape[1], -back, size - 1 - back, input.device)
        sums = aten.einsum("ij,njhw->nihw", near.to(input.dtype), grad * output / scale)
        return scale.pow(-beta) * grad - 2 * alpha * beta / size * input * sums, None, None, None, None


class CrossMapLRN2d(Module):
    """Normalisation by the squares of neighbouring channels, of images."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        return _CrossMap.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class NLLLoss2d(NLLLoss):
    """`NLLLoss` under an older name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
                      "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.", FutureWarning,
                      stacklevel=2)
        super().__init__(*args, **kwargs)


class Container(Module):
    """A module with given children, from before `Module` could have any."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn("`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. "
                      "Subclass that instead.", FutureWarning, stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


settle(__name__)
