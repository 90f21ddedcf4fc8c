"""Random numbers of NPUs: seeds and states. Before the runtime starts, a seed waits; without an NPU it is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._backends.npu import runtime
from .._backends.npu.stream import DEVICE, index_of
from .._device import DeviceLike
from .._random import Generator, generator_on
from .._tensor import Tensor


def _generator(device: DeviceLike) -> Generator:
    index = index_of(device)
    runtime.bind(index)
    return generator_on(DEVICE(index))


def default_generators() -> tuple[Generator, ...]:
    """The stream of each NPU; none without one."""
    return tuple([_generator(index) for index in range(runtime.device_count())])


def _waiting(function: Any) -> None:
    """Do something now, or when the runtime starts; never, if there is no NPU."""
    if runtime.PROCESS.initialized:
        function()
    else:
        runtime.PROCESS.at_first_use.append(function)


def manual_seed(seed: int) -> None:
    """Restart the stream of the thread's NPU."""
    _waiting(lambda: _generator(None).manual_seed(int(seed)))


def manual_seed_all(seed: int) -> None:
    """Restart the streams of all NPUs."""
    _waiting(lambda: [generator.manual_seed(int(seed)) for generator in default_generators()])


def seed() -> None:
    """Restart the stream of the thread's NPU from a seed of the operating system."""
    _waiting(lambda: _generator(None).seed())


def seed_all() -> None:
    """Restart the streams of all NPUs from one seed of the operating system."""

    def restart() -> None:
        first, *others = default_generators()
        chosen = first.seed()
        for generator in others:
            generator.manual_seed(chosen)

    _waiting(restart)


def initial_seed() -> int:
    """The seed of the stream of the thread's NPU."""
    return _generator(None).initial_seed()


def get_rng_state(device: DeviceLike = "npu") -> Tensor:
    """The state of an NPU's stream."""
    return _generator(device).get_state()


def set_rng_state(new_state: Tensor, device: DeviceLike = "npu") -> None:
    """Continue an NPU's stream from a state."""
    _waiting(lambda: _generator(device).set_state(new_state))


def get_rng_state_all() -> list[Tensor]:
    """The states of all NPUs' streams."""
    return [generator.get_state() for generator in default_generators()]


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Continue all NPUs' streams."""
    states = list(new_states)
    if len(states) > runtime.device_count():
        raise RuntimeError(f"set_rng_state_all: {len(states)} states for {runtime.device_count()} NPUs")
    for index, state in enumerate(states):
        set_rng_state(state, index)


__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed",
           "seed_all", "set_rng_state", "set_rng_state_all"]
