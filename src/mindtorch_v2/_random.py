"""Random number generators: `torch.Generator` and the functions on the default one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ._backends.cpu.rng import MersenneGenerator
from ._device import CPU, as_device, device
from ._tensor import Tensor, wrap


class Generator:
    """A stream of random numbers, equal to PyTorch's for the same seed.

    >>> import mindtorch_v2 as torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.randint(10, (3,), generator=generator)
    tensor([4, 9, 3])
    """

    __slots__ = ("__weakref__", "_engine")

    def __init__(self, device: Any = "cpu") -> None:
        where = as_device(device)
        if where.type != "cpu":
            raise RuntimeError(f"Generator: only the CPU has a random number generator here, not {where}")
        self._engine = MersenneGenerator()

    @property
    def device(self) -> device:
        """Where its numbers are made."""
        return CPU

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
        self._engine.set_state(new_state._a)
        return self

    def clone_state(self) -> Generator:
        """A generator that continues the same stream independently."""
        return Generator().set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _rebuild, (self.get_state(),)


def _rebuild(state: Tensor) -> Generator:
    return Generator().set_state(state)


def _as_seed(seed: Any) -> Any:
    """Tensors and floats with a whole value count as integers, as `int()` takes them."""
    whole = isinstance(seed, (float, Tensor))
    return int(seed) if whole else seed


default_generator = Generator()


def engine_of(generator: Generator | None) -> MersenneGenerator:
    """What an op draws from: the given generator's stream, or the default one's."""
    if generator is None:
        return default_generator._engine
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return generator._engine


def manual_seed(seed: Any) -> Generator:
    """Restart the default stream."""
    return default_generator.manual_seed(seed)


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


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str = "cpu") -> Iterator[None]:
    """Draw inside the block without moving the stream outside it."""
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)
