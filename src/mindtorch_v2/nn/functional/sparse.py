"""Look-up of vectors by number."""

from __future__ import annotations

import warnings
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.namespace import aten
from ..._dtype import int64
from ..._tensor import Tensor


def checked_padding_index(padding_idx: int | None, rows: int) -> int | None:
    """The padding row counted from the start."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows and padding_idx != 0:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of `weight` that `input` names; the padding row gets no gradient.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if weight._a.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    padding = checked_padding_index(padding_idx, weight._a.shape[0])
    if max_norm is not None:
        input = aten.contiguous(input)
        with no_grad():
            aten.embedding_renorm_(aten.detach(weight), input, max_norm, norm_type)
    return aten.embedding(weight, input, -1 if padding is None else padding, scale_grad_by_freq, sparse)


MODES = {"sum": 0, "mean": 1, "max": 2}


def _as_bags(input: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Any:
    """Indices in one row, where their bags begin, and their factors; rows of a matrix are bags of one size."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
                             f"fixed length sequences. However, found offsets of type {type(offsets)}")
        rows, columns = input.shape
        offsets = aten.arange(0, rows * columns, columns, dtype=input.dtype, device=input.device)
        return aten.reshape(input, (-1,)), offsets, None if weights is None else aten.reshape(weights, (-1,))
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if not isinstance(offsets, Tensor):
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, weights


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of the rows of `weight` that the bags name; `offsets` says where bags begin in `input`.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), torch.eye(2), mode="sum")
    tensor([[1., 1.]])
    """
    if weight.dtype is int64 and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
                      "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
                         f"have the same shape as the input ({input.shape})")
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    input, offsets, per_sample_weights = _as_bags(input, offsets, per_sample_weights)
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with no_grad():
            aten.embedding_renorm_(aten.detach(weight), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                                  f"supported for mode='sum' (got mode='{mode}'). Please open a feature request on "
                                  "GitHub.")
    return aten.embedding_bag(weight, input, offsets, scale_grad_by_freq, MODES[mode], sparse, per_sample_weights,
                              include_last_offset, padding_idx)[0]
