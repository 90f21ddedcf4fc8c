"""`GradScaler`, which can be used switched off only."""

from __future__ import annotations

import warnings
from typing import Any


class GradScaler:
    """Scales losses so that small gradients survive float16. Switched off, it passes everything through."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        if enabled and device == "cuda":
            # What PyTorch does where there is no CUDA.
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                          stacklevel=2)
            enabled = False
        if enabled:
            raise NotImplementedError(f"GradScaler('{device}', enabled=True): autocast to float16, which makes scaling "
                                      "necessary, does not exist in this runtime. Use enabled=False.")
        self._device = device
        self._enabled = enabled

    def scale(self, outputs: Any) -> Any:
        """The outputs as they are."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing to undo."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Nothing to adapt."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """1.0, as there is no scale that could grow."""
        return 1.0

    def get_backoff_factor(self) -> float:
        """1.0, as there is no scale that could shrink."""
        return 1.0

    def get_growth_interval(self) -> int:
        """0."""
        return 0

    def state_dict(self) -> dict[str, Any]:
        """Nothing, as in PyTorch when disabled."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to load."""
