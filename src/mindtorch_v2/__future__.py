"""`torch.__future__`: how a module that is converted changes its parameters."""

from __future__ import annotations

from .nn.modules._convert import Conversion

__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let `module.to(...)` put new parameters in the place of the old ones instead of changing these."""
    Conversion.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether converted modules get new parameters."""
    return Conversion.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let `module.to(...)` and `load_state_dict` exchange parameters with new ones (`torch.utils.swap_tensors`).

    Whoever holds a parameter holds it afterwards; one that something refers to weakly is refused.
    """
    Conversion.swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What was set."""
    return Conversion.swap
