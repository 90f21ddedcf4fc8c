"""Dropout: random zeros while training."""

from __future__ import annotations

import warnings

from ..._dispatch.namespace import aten
from ..._tensor import Tensor


def check_probability(p: float) -> None:
    """A probability lies between 0 and 1."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability `p` and scale the others by `1 / (1 - p)`."""
    check_probability(p)
    return aten.dropout_(input, p, training) if inplace else aten.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance after `selu`."""
    check_probability(p)
    return aten.alpha_dropout_(input, p, training) if inplace else aten.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    check_probability(p)
    form = aten.feature_alpha_dropout_ if inplace else aten.feature_alpha_dropout
    return form(input, p, training)


def _channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `(N, C, L)` or `(C, L)` input."""
    check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
                           "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
                           "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _maybe_unbatched(input, 3, p, training, inplace)


def _maybe_unbatched(input: Tensor, batched_ndim: int, p: float, training: bool, inplace: bool) -> Tensor:
    """Channels are counted in dimension 1, so a sample without a batch dimension gets one for the moment."""
    if input.ndim == batched_ndim:
        return _channels(input, p, training, inplace)
    result = _channels(aten.unsqueeze(input, 0), p, training, inplace)
    return input if inplace else aten.squeeze(result, 0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `(N, C, H, W)` input."""
    check_probability(p)
    if input.ndim not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result "
                      "in an error in a future release. It drops whole channels of 3-D or 4-D input; for other input "
                      "use dropout.", stacklevel=2)
    if input.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
                      "is desired: the shape is read as (N, C, L), and dropout1d does that without a warning. A later "
                      "release will read it as (C, H, W).", stacklevel=2)
    return _channels(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of `(N, C, D, H, W)` or `(C, D, H, W)` input."""
    check_probability(p)
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result "
                      "in an error in a future release. It drops whole channels of 4-D or 5-D input; for other input "
                      "use dropout.", stacklevel=2)
    return _maybe_unbatched(input, 5, p, training, inplace)
