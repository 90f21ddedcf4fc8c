"""The two ops of `GradScaler`: undo the scale of gradients while looking for infinities, and adapt the scale."""

from __future__ import annotations

from .._autograd.inplace import bump
from .._backends.base import device_of, on_device, to_host
from .._backends.cpu import amp as kernels
from .._dispatch.promotion import pretty
from .._dispatch.registry import declare
from .._dtype import DType, float32, int32
from .._tensor import Tensor

unscale, update_scale = on_device(kernels.unscale), on_device(kernels.update_scale)


def _check(tensor: Tensor, name: str, dtype: DType = float32) -> None:
    if tensor.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if tensor.dtype is not dtype:
        raise RuntimeError(f"{name} must be {'a float' if dtype is float32 else 'an int'} tensor.")


def _unscale(self: Tensor, found_inf: Tensor, inv_scale: Tensor) -> None:
    if not self:
        return
    _check(inv_scale, "inv_scale")
    _check(found_inf, "found_inf")
    inverse = to_host(inv_scale._a).reshape(())[()]
    for grad in self:
        if not grad.dtype.is_floating_point:
            raise NotImplementedError('"_amp_foreach_non_finite_check_and_unscale_cpu" not implemented for '
                                      f"'{pretty(grad.dtype)}'")
        if unscale(grad._a, inverse):
            device_of(found_inf._a).fill(found_inf._a, 1.0)
        bump(grad)
    bump(found_inf)


def _update_scale(self: Tensor, growth_tracker: Tensor, found_inf: Tensor, scale_growth_factor: float,
                  scale_backoff_factor: float, growth_interval: int) -> Tensor:
    _check(growth_tracker, "growth_tracker", int32)
    _check(self, "current_scale")
    _check(found_inf, "found_inf")
    update_scale(self._a, growth_tracker._a, found_inf._a, scale_growth_factor, scale_backoff_factor, growth_interval)
    bump(self)
    bump(growth_tracker)
    return self


declare("_amp_foreach_non_finite_check_and_unscale_(Tensor[] self, Tensor found_inf, Tensor inv_scale) -> ()",
        composite=_unscale, where="f")
declare("_amp_update_scale_(Tensor self, Tensor growth_tracker, Tensor found_inf, float scale_growth_factor, "
        "float scale_backoff_factor, int growth_interval) -> Tensor", composite=_update_scale, where="f")
