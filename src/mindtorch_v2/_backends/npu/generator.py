"""Random numbers of an NPU: the kernels make them from a seed and an offset, which advances with every op."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

STEP = 10  # torch_npu advances the offset by this, whatever an op draws
DEFAULT_SEED = 67280421310721


class NpuEngine:
    """The stream of numbers behind a `torch.Generator` on an NPU."""

    def __init__(self) -> None:
        self._seed = DEFAULT_SEED
        self._offset = 0
        self._lock = threading.Lock()

    def manual_seed(self, seed: int) -> None:
        """Restart the stream."""
        if not -0x8000_0000_0000_0000 <= seed <= 0xFFFF_FFFF_FFFF_FFFF:
            raise RuntimeError("Overflow when unpacking long long")
        self._seed, self._offset = seed & 0xFFFF_FFFF_FFFF_FFFF, 0

    def seed(self) -> int:
        """Restart the stream from a seed of the operating system, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") & 0x7FFF_FFFF_FFFF_FFFF)
        return self._seed

    def initial_seed(self) -> int:
        """The seed given last."""
        return self._seed

    def next(self) -> tuple[int, int]:
        """Seed and offset for the next op, as signed numbers of 64 bits."""
        with self._lock:
            offset = self._offset
            self._offset += STEP
        return signed(self._seed), signed(offset)

    def get_state(self) -> np.ndarray:
        """Seed and offset as 16 bytes."""
        return np.frombuffer(np.array([self._seed, self._offset], np.uint64).tobytes(), np.uint8).copy()

    def set_state(self, state: Any) -> None:
        """Continue from a state."""
        if state.dtype != np.uint8 or state.size != 16:
            raise RuntimeError(f"RNG state is wrong size: an NPU's has 16 bytes, this one {state.size}")
        self._seed, self._offset = (int(v) for v in np.frombuffer(state.tobytes(), np.uint64))


def signed(value: int) -> int:
    """The 64-bit number as a signed C type holds it.

    >>> signed(5), signed(0xFFFFFFFFFFFFFFFF)
    (5, -1)
    """
    return value - (1 << 64) if value >= 1 << 63 else value
