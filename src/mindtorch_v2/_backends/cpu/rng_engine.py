"""The word stream behind the CPU random numbers: MT19937 plus the state format PyTorch saves.

State bytes (5056, little endian), the layout of `torch.get_rng_state()`:

    offset  type         field
         0  uint64       seed given last
         8  int32        left: words until the next block is computed, plus one
        12  int32        seeded, always 1
        16  uint64       next: index of the next word in the block
        24  uint64[624]  the block, one 32-bit word in each
      5016  float64      unused (zero)
      5024  float64      second half of the last double Box-Muller pair
      5032  float64      unused (zero)
      5040  int32        whether that second half is still to be used
      5048  float32      second half of the last float pair; no CPU kernel fills it, but it is carried along
      5052  bool         whether it is still to be used
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._forking import renewed_in_children
from . import providers

__all__ = ["DEFAULT_SEED", "MersenneEngine"]

DEFAULT_SEED = 67280421310721
BLOCK_WORDS = 624
FEW = 16
# As arrays without dimensions, which arithmetic takes faster than numbers.
HALF_WORD, LOW_24, LOW_53 = (np.array(value, np.uint64) for value in (32, (1 << 24) - 1, (1 << 53) - 1))
SCALE_24, SCALE_53 = np.array(2.0**-24, np.float32), np.array(2.0**-53)
TURN, MASK_53 = 2.0 * math.pi, (1 << 53) - 1

STATE_DTYPE = np.dtype(
    {
        "names": [
            "seed", "left", "seeded", "next", "block", "double_sample", "has_double_sample",
            "float_sample", "has_float_sample",
        ],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", BLOCK_WORDS), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)  # fmt: skip


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """A seed for a bit generator that is seeded afterwards: computing its usual first seed takes long."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """As many words as asked for."""
        return np.ones(n_words, dtype)


class MersenneEngine:
    """MT19937 words, the cached normal samples, and their exchange with PyTorch's state bytes.

    The methods that start with an underscore do not lock: the caller holds `_lock` for a whole draw.
    """

    _seed: int
    _untouched: bool  # no word drawn since seeding; only the state bytes differ from a spent block
    _double_sample: float | None
    _float_sample: float | None

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._lock = threading.Lock()
        renewed_in_children(self, "_lock")
        self._bits = np.random.MT19937(_NoSeed())
        # Shares the bit generator. Its seeding by an int is MT19937's original one.
        self._seeding = np.random.RandomState(self._bits)
        self._capsule = self._bits.capsule  # the same for C
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        """Restart the stream. Accepts -2**63 .. 2**64-1; a negative seed counts from 2**64 downwards."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = operator.index(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        with self._lock:
            self._seed = seed & 0xFFFFFFFFFFFFFFFF
            # Only the low 32 bits reach the block, which is computed when the first word is drawn.
            self._seeding.seed(seed & 0xFFFFFFFF)
            self._untouched = True
            self._double_sample = None
            self._float_sample = None

    def seed(self) -> int:
        """Restart the stream from a seed of the operating system, and return that seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed given last, as an unsigned 64-bit number."""
        return self._seed

    def get_state(self) -> np.ndarray:
        """The whole state as 5056 bytes that `torch.set_rng_state` accepts."""
        record = np.zeros((), STATE_DTYPE)
        with self._lock:
            inner = self._bits.state["state"]
            position = int(inner["pos"])
            record["seed"] = self._seed
            record["left"] = BLOCK_WORDS + 1 - position
            record["seeded"] = 1
            record["next"] = 0 if self._untouched else position
            record["block"] = inner["key"]
            if self._double_sample is not None:
                record["double_sample"] = self._double_sample
                record["has_double_sample"] = 1
            if self._float_sample is not None:
                record["float_sample"] = self._float_sample
                record["has_float_sample"] = True
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Continue from bytes made by `get_state` or by `torch.get_rng_state`."""
        if not isinstance(state, np.ndarray):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not state.flags.c_contiguous:
            raise RuntimeError("RNG state must be contiguous")
        if state.size != STATE_DTYPE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_DTYPE.itemsize} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), STATE_DTYPE)[0]
        left, following = int(record["left"]), int(record["next"])
        spent = left == 1 and following in (0, BLOCK_WORDS)
        # `left` and `next` say the same thing twice; a pair that disagrees comes from no generator.
        if not record["seeded"] or not (spent or (1 < left <= BLOCK_WORDS and following == BLOCK_WORDS + 1 - left)):
            raise RuntimeError("Invalid mt19937 state")
        with self._lock:
            self._seed = int(record["seed"])
            self._set_block(record["block"].astype(np.uint32), BLOCK_WORDS if spent else following)
            self._untouched = spent and following == 0
            self._double_sample = float(record["double_sample"]) if record["has_double_sample"] else None
            self._float_sample = float(record["float_sample"]) if record["has_float_sample"] else None

    def _set_block(self, block: np.ndarray, position: int) -> None:
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": block, "pos": position}}

    def _words(self, count: int) -> np.ndarray:
        """The next `count` 32-bit words, each in a uint64."""
        if count:
            self._untouched = False
        return self._bits.random_raw(count)

    def _double_words(self, count: int) -> np.ndarray:
        """The next `count` 64-bit numbers; the word drawn first is the high half."""
        words = self._words(2 * count)
        high = np.left_shift(words[0::2], HALF_WORD)
        return np.bitwise_or(high, words[1::2], high)

    def _drawn(self, draw: Callable[..., None], made: np.ndarray, *rest: Any) -> np.ndarray:
        """An array that a function in C has filled."""
        if made.size:
            self._untouched = False
            draw(self._capsule, made, *rest)
        return made

    def _unit_floats(self, count: int) -> np.ndarray:
        """float32 in [0, 1): the low 24 bits of one word each."""
        if providers.native is not None:
            return self._drawn(providers.native.random_uniform, np.empty(count, np.float32))
        words = self._words(count)
        np.bitwise_and(words, LOW_24, words)
        result = words.view(np.int64).astype(np.float32)
        return np.multiply(result, SCALE_24, result)

    def _unit_doubles(self, count: int) -> np.ndarray:
        """float64 in [0, 1): the low 53 bits of two words each."""
        if providers.native is not None:
            return self._drawn(providers.native.random_uniform, np.empty(count, np.float64))
        words = self._double_words(count)
        np.bitwise_and(words, LOW_53, words)
        result = words.view(np.int64).astype(np.float64)
        return np.multiply(result, SCALE_53, result)

    def _paired_normals(self, count: int) -> np.ndarray:
        """Standard normals in float64, two from each pair of uniforms; an odd one out waits in the state."""
        kept = self._double_sample
        missing = count - (kept is not None)
        if missing < 0:
            return np.empty(0)
        pairs = (missing + 1) // 2
        if pairs <= FEW // 2:
            few = ([] if kept is None else [kept]) + self._few_normals(pairs)
            self._double_sample = few.pop() if missing % 2 else None
            return np.array(few, np.float64)
        samples = _box_muller_pairs(self._unit_doubles(2 * pairs))
        self._double_sample = float(samples[-1]) if missing % 2 else None
        samples = samples[:missing]
        return samples if kept is None else np.concatenate([[kept], samples])

    def _few_normals(self, pairs: int) -> list[float]:
        """Standard normals from two uniforms for each pair, for the usual small `normal`."""
        if providers.native is not None:
            return self._drawn(providers.native.random_pairs, np.empty(2 * pairs)).tolist()
        words = iter(self._words(4 * pairs).tolist())
        unit = (((high << 32 | low) & MASK_53) * 2.0**-53 for high, low in zip(words, words))
        return _few_pairs(zip(unit, unit))


def _few_pairs(unit: Iterable[Sequence[float]]) -> list[float]:
    """`_box_muller_pairs` one by one.

    Few numbers are faster without NumPy, and the C library's functions are those that PyTorch calls: the results, and
    the sample kept in the state, agree to the last bit.
    """
    samples: list[float] = []
    for turn, quantile in unit:
        length, angle = math.sqrt(-2.0 * math.log1p(-quantile)), TURN * turn
        samples += (length * math.cos(angle), length * math.sin(angle))
    return samples


def _box_muller_pairs(unit: np.ndarray) -> np.ndarray:
    """Standard normals in float64 from float64 uniforms: of each 2, an angle and a radius give a cosine and a sine."""
    if unit.size <= FEW:
        return np.array(_few_pairs(unit.reshape(-1, 2).tolist()), np.float64)
    radius = np.sqrt(-2.0 * np.log1p(-unit[1::2]))
    angle = TURN * unit[0::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
