"""`GradScaler`: multiplies losses so that small gradients survive float16, and undoes it before the step."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .._autograd.grad_mode import no_grad
from .._device import MEANT
from .._dispatch.namespace import aten
from .._dtype import float16, float32, float64, int32
from .._tensor import Tensor


class OptState(Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Progress:
    """One optimizer's stage, and on each device whether its gradients were infinite."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found_inf: dict[Any, Tensor] = {}


def _on(device: Any, tensor: Tensor, copies: dict[Any, Tensor]) -> Tensor:
    """The copy of a tensor that is on a device; made when it is first asked for."""
    if device not in copies:
        copies[device] = tensor.to(device=device, non_blocking=True, copy=True)
    return copies[device]


def _none_yet(scale: Tensor) -> Tensor:
    """What is found before an infinite gradient is."""
    return aten.full((), 0.0, dtype=float32, device=scale.device)


class GradScaler:
    """Scales losses, skips steps whose gradients are infinite, and adapts the scale.

    >>> import mindtorch_v2 as torch
    >>> weight = torch.ones(1, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([weight], lr=0.5), GradScaler("cpu")
    >>> scaler.scale((weight * weight).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.detach(), scaler.get_scale()
    (tensor([0.]), 65536.0)
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        self._device = device = MEANT.get(device, device)
        if enabled and device == "cuda":
            # What PyTorch does where there is no CUDA.
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                          stacklevel=2)
            enabled = False
        self._enabled = enabled
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Made by the first `scale`, on the device of what it scales.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._progress: dict[int, _Progress] = {}

    def _of(self, optimizer: Any) -> _Progress:
        return self._progress.setdefault(id(optimizer), _Progress())

    def _tensors(self, caller: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(f"Attempted {caller} but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration.")
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """A tensor, or the tensors in nested iterables, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._start(outputs)
            return outputs * self._tensors("scale")[0].to(device=outputs.device)
        if isinstance(outputs, Iterable):
            return self._scale_all(outputs, {})
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _scale_all(self, outputs: Any, copies: dict[Any, Tensor]) -> Any:
        """The tensors in nested iterables times the scale, of which each device gets one copy."""
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._start(outputs)
            return outputs * _on(outputs.device, self._tensors("scale")[0], copies)
        if isinstance(outputs, Iterable):
            scaled = (self._scale_all(one, copies) for one in outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _start(self, outputs: Tensor) -> None:
        """Make the scale, where the first outputs are."""
        self._scale = aten.full((), self._init_scale, dtype=float32, device=outputs.device)
        self._growth_tracker = aten.full((), self._init_growth_tracker, dtype=int32, device=outputs.device)

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
                        ) -> dict[Any, Tensor]:
        """Multiply all gradients by a factor; per device, a copy of `found_inf` that is 1 if one was infinite."""
        grads: dict[Any, dict[Any, list[Tensor]]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None:
                    continue
                if grad.dtype is float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads.setdefault(grad.device, {}).setdefault(grad.dtype, []).append(grad)
        found: dict[Any, Tensor] = {}
        inverses: dict[Any, Tensor] = {}
        with no_grad():
            for device, by_dtype in grads.items():
                for some in by_dtype.values():
                    aten._amp_foreach_non_finite_check_and_unscale_(
                        some, _on(device, found_inf, found), _on(device, inv_scale, inverses))
        return found

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Per device, a tensor that is 1 if a gradient of an optimizer is infinite; the gradients stay as they are."""
        scale, _ = self._tensors("_check_inf_per_device")
        one = aten.full((), 1.0, dtype=float32, device=scale.device)
        progress = self._of(optimizer)
        progress.found_inf = self._unscale_grads_(optimizer, one, _none_yet(scale), allow_fp16=True)
        return progress.found_inf

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """What was found last."""
        return self._of(optimizer).found_inf

    def _get_scale_async(self) -> Tensor | None:
        """The scale as a tensor, None before the first use."""
        return self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Bring an optimizer's gradients back to their true size, for those who look at them before `step`."""
        if not self._enabled:
            return
        scale, _ = self._tensors("unscale_")
        progress = self._of(optimizer)
        if progress.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal in float64, so that it is rounded once.
        inverse = scale.to(float64).reciprocal().to(float32)
        progress.found_inf = self._unscale_grads_(optimizer, inverse, _none_yet(scale), allow_fp16=False)
        progress.stage = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)` on unscaled gradients; nothing if one of them is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._tensors("step")
        progress = self._of(optimizer)
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        result = None
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._scaled_step(optimizer, scale, progress, args, kwargs)
        else:
            if progress.stage is OptState.READY:
                self.unscale_(optimizer)
            if not progress.found_inf:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            if not any(found.item() for found in progress.found_inf.values()):
                result = optimizer.step(*args, **kwargs)
        progress.stage = OptState.STEPPED
        return result

    def _scaled_step(self, optimizer: Any, scale: Tensor, progress: _Progress, args: Any, kwargs: Any) -> Any:
        """A step of an optimizer whose kernels unscale and skip by themselves."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn("GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. "
                          "In the near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to "
                          "the passed optimizer and let the optimizer use them directly.", FutureWarning, stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        own = getattr(optimizer, "grad_scale", None)
        if progress.stage is OptState.READY:
            self._check_inf_per_device(optimizer)
            own = scale if own is None else scale * own
        optimizer.grad_scale = own
        optimizer.found_inf = sum(found.to(device=scale.device) for found in progress.found_inf.values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Adapt the scale to what the steps since the last update found, or set it."""
        if not self._enabled:
            return
        scale, growth_tracker = self._tensors("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                                     "torch.FloatTensor with requires_grad=False.")
            scale.copy_(new_scale)
        else:
            found = [one.to(device=scale.device) for progress in self._progress.values()
                     for one in progress.found_inf.values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            together = found[0]
            for one in found[1:]:
                together = together + one
            aten._amp_update_scale_(scale, growth_tracker, together, self._growth_factor, self._backoff_factor,
                                    self._growth_interval)
        self._progress = {}

    def get_scale(self) -> float:
        """The scale; 1.0 if switched off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many good steps in a row make the scale grow."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs; nothing if switched off."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state of another scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled "
                               "instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(state_dict["scale"])
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        if self._progress:
            raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                                 "the end after scaler.update().")
        # The tensors are made again when they are needed.
        return {**self.__dict__, "_init_scale": self.get_scale() if self._enabled else self._init_scale,
                "_init_growth_tracker": self._get_growth_tracker(), "_scale": None, "_growth_tracker": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


__all__ = ["GradScaler", "OptState"]
