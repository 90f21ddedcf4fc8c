"""Random number generators: `torch.Generator` and the functions on the default one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._backends.base import GENERATORS, device_named, to_host
from ._backends.cpu import device as cpu_device  # noqa: F401  (registers the CPU)
from ._backends.cpu.rng import MersenneGenerator
from ._device import CPU, DeviceLike, as_device, device
from ._tensor import Tensor, wrap


class Generator:
    """A stream of random numbers, equal to PyTorch's for the same seed.

    >>> import mindtorch_v2 as torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.randint(10, (3,), generator=generator)
    tensor([4, 9, 3])
    """

    __slots__ = ("__weakref__", "_device", "_engine")
    _device: device

    def __init__(self, device: DeviceLike = "cpu") -> None:
        on = device_named(as_device(device))
        self._device = on.resolve(as_device(device))
        self._engine = on.new_engine(self._device)

    @property
    def device(self) -> device:
        """Where its numbers are made."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream."""
        self._engine.manual_seed(_as_seed(seed))
        return self

    def seed(self) -> int:
        """Restart the stream from a seed of the operating system, and return that seed."""
        return self._engine.seed()

    def initial_seed(self) -> int:
        """The seed given last."""
        return self._engine.initial_seed()

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes."""
        return wrap(self._engine.get_state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` returned."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        self._engine.set_state(to_host(new_state._a))
        return self

    def get_offset(self) -> int:
        """How far a stream of a device is; the CPU's has none."""
        raise RuntimeError(f"{self._device.type.upper()} Generator does not use offset")

    def set_offset(self, offset: int) -> Generator:
        """Refused: the CPU's stream has no offset."""
        self.get_offset()
        return self

    def graphsafe_get_state(self) -> Generator:
        """Refused: there are no graphs that keep a generator."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Refused: there are no graphs that keep a generator."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def clone_state(self) -> Generator:
        """A generator that continues the same stream independently."""
        return Generator(self._device).set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _rebuild, (self.get_state(), self._device)


def _rebuild(state: Tensor, where: device = CPU) -> Generator:
    return Generator(where).set_state(state)


def _as_seed(seed: Any) -> Any:
    """Tensors and floats with a whole value count as integers, as `int()` takes them."""
    whole = isinstance(seed, (float, Tensor))
    return int(seed) if whole else seed


default_generator = Generator()
# The default stream of each device.
DEFAULTS: dict[device, Generator] = {CPU: default_generator}


def generator_on(where: device) -> Generator:
    """The default generator of a device, made when it is first drawn from: seeded as the CPU's was."""
    found = DEFAULTS.get(where)
    if found is None:
        found = DEFAULTS[where] = Generator(where).manual_seed(default_generator.initial_seed())
    return found


def generator_for(where: device, generator: Generator | None) -> Generator:
    """What an op on a device that is not the CPU draws from."""
    if generator is None:
        return generator_on(where)
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    if generator.device.type != where.type:
        raise RuntimeError(f"Expected a '{where.type}' device type for generator but found '{generator.device.type}'")
    return generator


GENERATORS.append(generator_for)


def engine_of(generator: Generator | None) -> MersenneGenerator:
    """What an op draws from: the given generator's stream, or the default one's."""
    if generator is None:
        return default_generator._engine
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    if generator._device is not CPU and generator._device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator._device.type}'")
    return generator._engine


def manual_seed(seed: Any) -> Generator:
    """Restart the default streams of all devices."""
    seed = int(seed)
    for generator in DEFAULTS.values():
        generator.manual_seed(seed)
    return default_generator


def seed() -> int:
    """Restart the default stream from a seed of the operating system, and return that seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default stream as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default stream from a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


class StreamStates:
    """The position of the default stream of each device, or of each but one.

    A device's stream is made when it is first drawn from. Before that its position is the beginning.
    """

    def __init__(self, but: device | None = None) -> None:
        self.but, self.seed = but, default_generator.initial_seed()
        self.states = {generator: generator._engine.get_state() for generator in self._generators()}

    def _generators(self) -> list[Generator]:
        return [generator for where, generator in DEFAULTS.items() if where != self.but]

    def go_on_from_here(self) -> None:
        """Let the streams continue from these positions."""
        for generator in self._generators():
            if generator in self.states:
                generator._engine.set_state(self.states[generator])
            else:
                generator.manual_seed(self.seed)

    def were_drawn_from(self) -> bool:
        """Whether one of them has moved since."""
        return any(not np.array_equal(self._state(generator), generator._engine.get_state())
                   for generator in self._generators())

    def _state(self, generator: Generator) -> Any:
        found = self.states.get(generator)
        return Generator(generator.device).manual_seed(self.seed)._engine.get_state() if found is None else found


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str = "cpu") -> Iterator[None]:
    """Draw inside the block without moving the streams outside it, on any device."""
    if not enabled:
        yield
        return
    device(device_type)  # refuses what is none
    before = StreamStates()
    try:
        yield
    finally:
        before.go_on_from_here()
