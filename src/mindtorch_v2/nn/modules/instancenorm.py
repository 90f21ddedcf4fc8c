"""Instance normalisation."""

from __future__ import annotations

import warnings
from typing import Any

from ..._device import DeviceLike
from ..._dtype import DType
from ..._tensor import Tensor
from .. import functional as F
from ._homes import elsewhere
from .batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    """Zero mean and unit variance per sample and channel."""

    unbatched_ndim = 0

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: DeviceLike = None, dtype: DType | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            # In files from before 0.4.0 such layers had statistics too.
            found = [name for name in ("running_mean", "running_var") if f"{prefix}{name}" in state_dict]
            if found:
                names = " and ".join(f'"{prefix}{name}"' for name in found)
                keys = " and ".join(f'"{name}"' for name in found)
                error_msgs.append(f"Unexpected running stats buffer(s) {names} for {self._get_name()} with "
                                  "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this "
                                  f"may be expected: such layers keep no {keys} any more. Please remove these keys "
                                  "from state_dict, or set track_running_stats=True.")
                for name in found:
                    state_dict.pop(f"{prefix}{name}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input, which may lack the batch dimension."""
        self._check_input_dim(input)
        feature_dim = input.ndim - self.unbatched_ndim
        if input.shape[feature_dim] != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={feature_dim} to match num_features "
                                 f"({self.num_features}), but got: {input.shape[feature_dim]}.")
            warnings.warn(f"input's size at dim={feature_dim} does not match num_features. You can silence this "
                          "warning by not passing in num_features, which is not used because affine=False",
                          stacklevel=2)
        if feature_dim == 0:
            return self._apply_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_norm(input)

    def _apply_norm(self, input: Tensor) -> Tensor:
        from_input = self.training or not self.track_running_stats
        momentum = self.momentum if self.momentum is not None else 0.0
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, from_input, momentum,
                               self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of `(N, C, L)` or `(C, L)` input."""

    allowed_ndims = (2, 3)
    unbatched_ndim = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of `(N, C, H, W)` or `(C, H, W)` input."""

    allowed_ndims = (3, 4)
    unbatched_ndim = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    allowed_ndims = (4, 5)
    unbatched_ndim = 4


__getattr__ = elsewhere(__name__)
