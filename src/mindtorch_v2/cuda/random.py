"""`torch.cuda.random`: random numbers of devices that are not there."""

from __future__ import annotations

from typing import Any

from .._absent import refusing

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]

_REASON = "Torch not compiled with CUDA enabled"
get_rng_state = refusing("get_rng_state", AssertionError, _REASON)
set_rng_state = refusing("set_rng_state", AssertionError, _REASON)
initial_seed = refusing("initial_seed", AssertionError, _REASON)


def get_rng_state_all() -> list[Any]:
    """The states of no devices."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of no devices; a state for one is refused."""
    for state in new_states:
        set_rng_state(state)


def manual_seed(seed: int) -> None:
    """Nothing: as in PyTorch, a seed for a device that never comes is forgotten."""


manual_seed_all = manual_seed


def seed() -> None:
    """Nothing, as `manual_seed`."""


seed_all = seed
