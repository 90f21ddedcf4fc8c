"""Activations: elementwise functions between layers, and softmax."""

from __future__ import annotations

import warnings

from ..._dispatch.namespace import aten
from ..._dtype import DType
from ..._memory_format import contiguous_format
from ..._tensor import Tensor


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it exceeds `threshold`, else `value`."""
    return aten.threshold_(input, threshold, value) if inplace else aten.threshold(input, threshold, value)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(input, 0)`."""
    return aten.relu_(input) if inplace else aten.relu(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return aten.glu(input, dim)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` clamped to `[min_val, max_val]`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(input, 0), 6)`."""
    return aten.relu6_(input) if inplace else aten.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where positive, else `alpha * (exp(input) - 1)`."""
    return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled, self-normalising form of `elu`."""
    return aten.selu_(input) if inplace else aten.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The continuously differentiable form of `elu`."""
    return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where positive, else `negative_slope * input`."""
    return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """`leaky_relu` with slopes drawn at random from `[lower, upper]` while training."""
    return aten.rrelu_(input, lower, upper, training) if inplace else aten.rrelu(input, lower, upper, training)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`relu6(input + 3) / 6`."""
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`."""
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))`."""
    return aten.mish_(input) if inplace else aten.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)`."""
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-input))`."""
    return aten.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return aten.tanh(input)


def softsign(input: Tensor) -> Tensor:
    """`input / (1 + |input|)`."""
    return aten.div(input, aten.add(aten.abs(input), 1))


def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`."""
    return aten.sub(input, aten.tanh(input))


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that softmax picks, with a warning, if none was given."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. "
                  "Change the call to include dim=X as an argument.", stacklevel=stacklevel + 1)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Exponentials along `dim`, scaled to sum to one."""
    if dim is None:
        dim = _get_softmax_dim("softmax", input.ndim, _stacklevel)
    return aten.softmax(input, dim) if dtype is None else aten.softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """`softmax(-input)`."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.ndim, _stacklevel)
    return softmax(aten.neg(input), dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`, computed without leaving the logarithmic scale."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.ndim, _stacklevel)
    return aten.log_softmax(input, dim) if dtype is None else aten.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample from the Gumbel-softmax distribution; `hard` makes it one-hot with the soft sample's gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = aten.neg(aten.log(aten.exponential_(aten.empty_like(logits, memory_format=contiguous_format))))
    soft = aten.softmax(aten.div(aten.add(logits, noise), tau), dim)
    if not hard:
        return soft
    index = aten.max(soft, dim, True)[1]
    one_hot = aten.scatter_(aten.zeros_like(logits, memory_format=contiguous_format), dim, index, 1.0)
    return aten.add(aten.sub(one_hot, aten.detach(soft)), soft)
