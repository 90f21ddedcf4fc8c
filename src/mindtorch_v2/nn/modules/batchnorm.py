"""Batch normalisation."""

from __future__ import annotations

from typing import Any

from ..._construct import tensor
from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import DType, bfloat16, float16, int64
from ..._tensor import Tensor
from .. import functional as F
from ._affine import Affine
from ._homes import elsewhere


class _NormBase(Affine):
    """What batch and instance normalisation share: the parameters, and running estimates for evaluation."""

    _version = 2
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    allowed_ndims: tuple[int, ...] = ()

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: DeviceLike = None, dtype: DType | None = None, *,
                 bias: bool = True) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_affine((num_features,), affine, bias, device, dtype)
        mean = var = count = None
        if track_running_stats:
            mean = aten.zeros((num_features,), device=device, dtype=dtype)
            var = aten.ones((num_features,), device=device, dtype=dtype)
            count = tensor(0, dtype=int64, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen so far."""
        if self.track_running_stats:
            aten.zero_(self.running_mean)
            aten.fill_(self.running_var, 1)
            aten.zero_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Back to the first values."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.allowed_ndims:
            wanted = " or ".join(f"{ndim}D" for ndim in self.allowed_ndims)
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """Settings."""
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        version = local_metadata.get("version")
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Files of version 1 were written before batches were counted.
            known = self.num_batches_tracked
            state_dict[key] = tensor(0, dtype=int64) if known is None or known.is_meta else known
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)


class _BatchNorm(_NormBase):
    """Zero mean and unit variance per channel; keeps running estimates of both for evaluation."""

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input; while training, the running estimates move towards the batch."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            aten.add_(self.num_batches_tracked, 1)
            if self.momentum is None:
                # Without momentum the estimate is the plain average of all batches.
                momentum = 1.0 / float(aten.item(self.num_batches_tracked))
        uses_batch = self.training or (self.running_mean is None and self.running_var is None)
        uses_estimates = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if uses_estimates else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, uses_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of `(N, C)` or `(N, C, L)` input."""

    allowed_ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of `(N, C, H, W)` input."""

    allowed_ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of `(N, C, D, H, W)` input."""

    allowed_ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks of a group; over this process's where there is no group."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: DeviceLike = None,
                 dtype: DType | None = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input, by mean and variance of all ranks' batches."""
        uses_batch = self.training or (self.running_mean is None and self.running_var is None)
        group = self._ranks() if uses_batch else None
        if group is None:
            return super().forward(input)
        from ...distributed.nn.functional import all_reduce

        self._check_input_dim(input)
        axes = [axis for axis in range(input.ndim) if axis != 1]
        shape = [1, -1] + [1] * (input.ndim - 2)
        own = input.numel() // input.shape[1] if input.shape[1] else 0
        kind = input.dtype
        if kind in (bfloat16, float16):  # too few digits for sums and counts
            input = input.float()
        count_of_own = aten.full((1,), float(own), dtype=input.dtype)
        totals = all_reduce(aten.cat([aten.sum(input, axes), count_of_own]), group=group)
        count = float(aten.item(totals[-1]))
        if count <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        mean = totals[:-1] / count
        centred = input - mean.view(shape)
        var = all_reduce(aten.sum(centred * centred, axes), group=group) / count
        if self.training and self.track_running_stats:
            self._follow(mean.detach(), var.detach() * (count / (count - 1)))
        made = centred * aten.rsqrt(var + self.eps).view(shape)
        if self.weight is not None:
            made = made * self.weight.view(shape)
        return (made if self.bias is None else made + self.bias.view(shape)).to(kind)

    def _ranks(self) -> Any:
        """The group, if it has more than one rank."""
        from ... import distributed as dist

        if not dist.is_initialized() or dist.get_world_size(self.process_group) <= 1:
            return None
        return dist.group.WORLD if self.process_group is None else self.process_group

    def _follow(self, mean: Tensor, var: Tensor) -> None:
        """Move the running estimates towards the batch."""
        aten.add_(self.num_batches_tracked, 1)
        weight = 1.0 / float(aten.item(self.num_batches_tracked)) if self.momentum is None else self.momentum
        for estimate, seen in ((self.running_mean, mean), (self.running_var, var)):
            if estimate is not None:
                aten.lerp_(estimate, seen.to(estimate.dtype), weight)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with all batch normalisations replaced, which keep their parameters and statistics."""
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                       process_group, bias=module.bias is not None)
            if module.affine:
                made.weight, made.bias = module.weight, module.bias
            made.running_mean, made.running_var = module.running_mean, module.running_var
            made.num_batches_tracked = module.num_batches_tracked
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


__getattr__ = elsewhere(__name__)
