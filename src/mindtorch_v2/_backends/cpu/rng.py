"""PyTorch's CPU random numbers on NumPy arrays: the same seed gives the same numbers and the same state after.

Which words of the stream each draw takes, found by experiment against PyTorch 2.13 on x86-64:

    draw                            words per element     number made of them
    uniform, 16- and 32-bit floats  1                     low 24 bits / 2**24, scaled with one rounding
    uniform, float64                2                     low 53 bits / 2**53, scaled with one rounding
    normal, 16 elements or more     as uniform            Box-Muller on blocks of 16 (cosines, then sines)
    normal, fewer; log_normal       2 (4 for each pair)   Box-Muller in float64, the second half is kept in the state
    integers                        1, or 2 from 2**28    modulo the width of the range
    bernoulli with one p            2                     uniform float64 < p
    bernoulli with an array of p    as uniform            uniform < p, in the precision of p
    exponential, geometric, cauchy  2                     inverse of the distribution function, in float64
    permutation                     1                     Fisher-Yates from the front; of 2**32 / 20 items or more:
                                                          2 words, and the inside-out variant

The CPU wheel of 2.13 draws bernoulli and exponential from its own generator, not from MKL streams.

How close, compared with PyTorch's AVX2 and AVX512 kernels: uniform, integers, permutation, bernoulli, and normal in
float32, float16 and bfloat16 came out equal bit for bit, and so did the state, except for the normal sample kept after
an odd `log_normal` of more than 16 elements, which may differ in its last bits. The other draws call log, sin, cos,
tan or exp in float64 and inherit the last bits of NumPy's mathematics: rounded to float32 or less no difference was
seen; kept in float64 they agree within 4 units in the last place of the larger of result and mean (`log_normal` within
16). PyTorch without AVX2, or on other processors, rounds differently itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mindtorch_v2._backends.cpu import providers
from mindtorch_v2._backends.cpu.rng_cephes import float32_box_muller
from mindtorch_v2._backends.cpu.rng_checks import (
    COMPLEX,
    FLOATING,
    INTEGRAL,
    check_full_range,
    check_integer_bounds,
    check_multinomial,
    check_permutation,
    check_uniform_bounds,
    info,
    require,
)
from mindtorch_v2._backends.cpu.rng_engine import LOW_53, MersenneEngine
from mindtorch_v2._backends.cpu.rng_rounding import fused_multiply_add, narrow
from mindtorch_v2._backends.cpu.rng_shuffle import shuffle_forward, shuffle_inside_out

__all__ = ["MersenneGenerator"]

# Elements per step: temporaries of a step stay in the cache. A multiple of 16, so that `normal` never splits a block.
STEP = 1 << 15
BOX_MULLER_BLOCK = 16
WIDE_RANGE = 1 << 28
WIDE_PERMUTATION = ((1 << 32) - 1) // 20
BOOL = np.dtype(np.bool_)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
INEXACT, REAL = FLOATING | COMPLEX, FLOATING | INTEGRAL | {BOOL}
Shape = tuple[int, ...]


class MersenneGenerator(MersenneEngine):
    """PyTorch's CPU random stream on NumPy arrays. Every draw returns a fresh C-contiguous array."""

    def clone(self) -> MersenneGenerator:
        """A generator that continues the same stream independently."""
        copy = MersenneGenerator()
        copy.set_state(self.get_state())
        return copy

    def uniform(self, shape: Shape, dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Uniform on [low, high): `rand`, `uniform_`."""
        dtype = np.dtype(dtype)
        require(dtype, INEXACT, "check_uniform_bounds")
        if dtype in COMPLEX:
            return self._as_complex(self.uniform((*shape, 2), _real_part(dtype), low, high), shape, dtype)
        draw = self._unit_doubles if dtype == FLOAT64 else self._unit_floats
        if low == 0 and high == 1 and dtype.itemsize > 2:
            if providers.native is not None:
                with self._lock:
                    return self._drawn(providers.native.random_uniform, np.empty(shape, dtype))
            return self._draw(shape, dtype, draw)
        check_uniform_bounds(dtype, low, high)
        compute = FLOAT64 if dtype == FLOAT64 else FLOAT32
        lowest, highest = compute.type(low), compute.type(high)
        low_stored, high_stored = lowest, highest
        if dtype.itemsize == 2:
            low_stored, high_stored = (narrow(np.array(bound), dtype) for bound in (lowest, highest))

        def step(count: int) -> np.ndarray:
            values = narrow(fused_multiply_add(draw(count), highest - lowest, lowest), dtype)
            # Rounding can reach the open end; those samples wrap round to the closed one.
            reached = values == high_stored
            if reached.any():
                values[reached] = low_stored
            return values

        return self._draw(shape, dtype, step)

    def normal(self, shape: Shape, dtype: np.dtype, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Normal: `randn`, `normal_` on a contiguous tensor."""
        dtype = np.dtype(dtype)
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        require(dtype, INEXACT, "normal_kernel_cpu")
        if dtype in COMPLEX:
            # The variance is shared by the two parts.
            return self._as_complex(self.normal((*shape, 2), _real_part(dtype), mean, std / math.sqrt(2)), shape, dtype)
        if dtype == FLOAT32 and self.fill_normal(made := np.empty(shape, FLOAT32), mean, std):
            return made
        if math.prod(shape) < BOX_MULLER_BLOCK:
            return self._draw(
                shape, dtype, lambda count: narrow(fused_multiply_add(self._paired_normals(count), std, mean), dtype)
            )
        return self._normal_blocks(shape, dtype, mean, std)

    def fill_normal(self, target: np.ndarray, mean: float, std: float) -> bool:
        """Fill a contiguous float32 array with what `normal` draws, in C; False if that cannot be done."""
        native = providers.native
        if native is None or not native.RANDOM_NORMAL or target.dtype is not FLOAT32 or not std >= 0:
            return False
        if target.size:
            with self._lock:
                self._untouched = False
                if target.size >= BOX_MULLER_BLOCK:
                    native.random_normal(self._capsule, target, mean, std)
                else:
                    self._double_sample = native.random_few(self._capsule, target, mean, std, self._double_sample)
        return True

    def fill_integers(self, target: np.ndarray, low: int, high: int | None) -> bool:
        """Fill a contiguous int64 array with what `integers` draws, in C; False if that cannot be done."""
        if (providers.native is None or target.dtype is not INT64 or type(low) is not int or type(high) is not int
                or not -(1 << 63) <= low < high < 1 << 63):
            return False
        span = high - low
        if target.size:
            with self._lock:
                self._untouched = False
                providers.native.random_integers(self._capsule, target, span, low, span >= WIDE_RANGE)
        return True

    def fill_permutation(self, target: np.ndarray) -> bool:
        """Fill a contiguous vector of int64 with what `permutation` draws, in C; False if that cannot be done."""
        if providers.native is None or target.dtype is not INT64 or not 1 < target.size < WIDE_PERMUTATION:
            return False
        with self._lock:
            self._drawn(providers.native.random_permutation, target)
        return True

    def fill_uniform(self, target: np.ndarray) -> bool:
        """Fill a contiguous array with what `uniform` of [0, 1) draws, in C; False if that cannot be done."""
        kind = target.dtype
        if providers.native is None or (kind is not FLOAT32 and kind is not FLOAT64):
            return False
        if target.size:
            with self._lock:
                self._untouched = False
                providers.native.random_uniform(self._capsule, target)
        return True

    def _normal_blocks(self, shape: Shape, dtype: np.dtype, mean: float, std: float) -> np.ndarray:
        count = math.prod(shape)
        whole = count - count % BOX_MULLER_BLOCK
        draw = self._unit_doubles if dtype == FLOAT64 else self._unit_floats
        box_muller = _float64_box_muller if dtype == FLOAT64 else float32_box_muller

        def normals(unit: np.ndarray) -> np.ndarray:
            return narrow(fused_multiply_add(box_muller(unit), std, mean), dtype)

        if whole == count <= STEP:
            with self._lock:
                return normals(draw(count)).reshape(shape)
        # The rest is drawn like the blocks before it, but never used: the last 16 are drawn again.
        unused = count - whole if dtype.itemsize > 2 else 0
        result = np.empty(count, dtype)
        with self._lock:
            if whole < count <= STEP:
                # So few that two passes over them would cost twice as much as one.
                unit = draw(whole + unused + BOX_MULLER_BLOCK)
                made = normals(np.concatenate((unit[:whole], unit[whole + unused:])))
                result[:whole] = made[:whole]
                result[-BOX_MULLER_BLOCK:] = made[whole:]
                return result.reshape(shape)
            for start in range(0, whole, STEP):
                stop = min(start + STEP, whole)
                result[start:stop] = normals(draw(stop - start))
            if whole < count:
                draw(unused)
                result[-BOX_MULLER_BLOCK:] = normals(draw(BOX_MULLER_BLOCK))
        return result.reshape(shape)

    def normal_elementwise(
        self, mean: np.ndarray | float, std: np.ndarray | float, shape: Shape, dtype: np.dtype
    ) -> np.ndarray:
        """`torch.normal` with an array of means, of deviations, or of both; they broadcast to `shape`."""
        dtype = np.dtype(dtype)
        if not isinstance(std, np.ndarray):
            values = self.normal(shape, dtype, 0.0, std)
        else:
            if std.dtype in COMPLEX:
                raise RuntimeError("normal expects standard deviation to be non-complex")
            if not np.all(std >= 0):
                raise RuntimeError("normal expects all elements of std >= 0.0")
            values = _stored_result(np.multiply, self.normal(shape, dtype), std)
        return _stored_result(np.add, values, mean)

    def integers(self, shape: Shape, dtype: np.dtype, low: int, high: int | None) -> np.ndarray:
        """Integers of [low, high): `randint`, `random_(from, to)`. Without `high`, up to the largest of `dtype`."""
        dtype = np.dtype(dtype)
        if low == -(1 << 63) and high is None:
            check_full_range(dtype)
            return self._modulo(shape, dtype, 1 << 64, 0, wide=True)
        low, high = check_integer_bounds(dtype, low, high)
        return self._modulo(shape, dtype, high - low, low, wide=high - low >= WIDE_RANGE)

    def integers_full(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """`random_()`: every integer from zero that `dtype` holds, or for floats 0 .. 2**digits."""
        dtype = np.dtype(dtype)
        require(dtype, REAL, "random_kernel_cpu")
        span = (1 << info(dtype).digits) + (1 if dtype in FLOATING else 0)
        return self._modulo(shape, dtype, span, 0, wide=dtype.itemsize == 8)

    def _modulo(self, shape: Shape, dtype: np.dtype, span: int, low: int, wide: bool) -> np.ndarray:
        if dtype == INT64 and providers.native is not None:
            with self._lock:
                return self._drawn(providers.native.random_integers, np.empty(shape, dtype), span & 0xFFFFFFFFFFFFFFFF,
                                   low, wide)
        draw = self._double_words if wide else self._words
        offset, divisor = np.uint64(low & 0xFFFFFFFFFFFFFFFF), np.uint64(span & 0xFFFFFFFFFFFFFFFF)

        def step(count: int) -> np.ndarray:
            words = draw(count)
            if span < 1 << 64:
                # The remainder by way of the quotient: NumPy divides by one number with a multiplication.
                quotients = np.floor_divide(words, divisor)
                np.multiply(quotients, divisor, quotients)
                np.subtract(words, quotients, words)
            if low:
                np.add(words, offset, words)  # wraps, as two's complement should
            return narrow(words.view(np.int64), dtype)

        return self._draw(shape, dtype, step)

    def permutation(self, n: int, dtype: np.dtype) -> np.ndarray:
        """`randperm`."""
        dtype = np.dtype(dtype)
        check_permutation(n, dtype)
        if n == 0:
            return np.empty(0, dtype)
        if n > 1 and self.fill_permutation(made := np.empty(n, INT64)):
            return narrow(made, dtype)
        steps = np.arange(n, dtype=np.uint64)
        with self._lock:
            words = self._double_words(n) if n >= WIDE_PERMUTATION else self._words(n - 1)
        if n >= WIDE_PERMUTATION:
            words %= steps + np.uint64(1)
            return narrow(shuffle_inside_out(words.view(np.int64)), dtype)
        # The last item has nowhere to go, and costs no word.
        steps[:-1] += words % (np.uint64(n) - steps[:-1])
        return narrow(shuffle_forward(steps.view(np.int64)), dtype)

    def bernoulli(self, shape: Shape, dtype: np.dtype, p: float) -> np.ndarray:
        """One with probability `p`, else zero: `bernoulli_(p)`, the mask of dropout."""
        dtype = np.dtype(dtype)
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        require(dtype, REAL, "bernoulli_scalar_cpu_")
        # uniform < p, said in integers: k / 2**53 < p exactly when k < ceil(p * 2**53).
        threshold = np.uint64(math.ceil(p * 2.0**53))
        if providers.native is not None and dtype in (FLOAT32, BOOL):
            with self._lock:
                return self._drawn(providers.native.random_bernoulli, np.empty(shape, dtype), int(threshold))
        return self._draw(shape, dtype, lambda count: (self._double_words(count) & LOW_53) < threshold)

    def bernoulli_elementwise(self, p: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """One with the probability found at the same place of `p`: `torch.bernoulli(p)`."""
        dtype = np.dtype(dtype)
        require(dtype, REAL, "bernoulli_tensor_cpu_self_")
        require(p.dtype, FLOATING, "bernoulli_tensor_cpu_p_")
        if providers.native is not None and dtype == p.dtype == FLOAT32 and p.size and p.flags.c_contiguous:
            made = np.empty(p.shape, FLOAT32)
            with self._lock:
                if providers.native.random_bernoulli_each(self._capsule, made, p):
                    self._untouched = False
                    return made
        if not np.all((p >= 0) & (p <= 1)):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
        draw = self._unit_doubles if p.dtype == FLOAT64 else self._unit_floats
        with self._lock:
            unit = draw(p.size)
        return (unit.reshape(p.shape) < p.astype(unit.dtype)).astype(dtype)

    def exponential(self, shape: Shape, dtype: np.dtype, lambd: float = 1.0) -> np.ndarray:
        """Exponential with rate `lambd`: `exponential_`."""
        dtype = np.dtype(dtype)
        if dtype not in FLOATING:
            raise RuntimeError(
                "Exponential distribution is a continuous probability distribution. "
                f"dtype must be a floating point but you specified {info(dtype).scalar_name}"
            )
        if not lambd > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
        return self._draw(
            shape, dtype, lambda count: narrow(np.log1p(-self._unit_doubles(count)) * (-1.0 / lambd), dtype)
        )

    def geometric(self, shape: Shape, dtype: np.dtype, p: float) -> np.ndarray:
        """Number of trials up to the first success: `geometric_`."""
        dtype = np.dtype(dtype)
        if not 0 < p < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
        require(dtype, FLOATING | INTEGRAL, "geometric_cpu")

        def step(count: int) -> np.ndarray:
            with np.errstate(divide="ignore"):
                values = np.ceil(np.log(self._unit_doubles(count)) / math.log1p(-p))
            return narrow(narrow(values, np.dtype(np.int64)), dtype) if dtype in INTEGRAL else narrow(values, dtype)

        return self._draw(shape, dtype, step)

    def log_normal(self, shape: Shape, dtype: np.dtype, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
        """exp of a normal with that mean and deviation: `log_normal_`."""
        dtype = np.dtype(dtype)
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        require(dtype, FLOATING, "log_normal_cpu")

        def step(count: int) -> np.ndarray:
            with np.errstate(over="ignore"):
                return narrow(np.exp(fused_multiply_add(self._paired_normals(count), std, mean)), dtype)

        return self._draw(shape, dtype, step)

    def cauchy(self, shape: Shape, dtype: np.dtype, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
        """Cauchy with that median and half width: `cauchy_`."""
        dtype = np.dtype(dtype)
        if dtype not in FLOATING:
            raise RuntimeError(
                "Cauchy distribution is a continuous probability distribution. "
                f"dtype must be a floating point but you specified {info(dtype).c_name}"
            )
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")

        def step(count: int) -> np.ndarray:
            slope = np.tan(math.pi * (self._unit_doubles(count) - 0.5))
            return narrow(fused_multiply_add(slope, sigma, median), dtype)

        return self._draw(shape, dtype, step)

    def multinomial(self, probs: np.ndarray, num_samples: int, replacement: bool) -> np.ndarray:
        """Indices drawn by weight along the last dimension of a 1-D or 2-D array, int64."""
        if (replacement and num_samples > 1 and probs.ndim in (1, 2) and probs.size and probs.dtype == FLOAT32
                and probs.flags.c_contiguous and providers.native is not None):
            made = np.empty((*probs.shape[:-1], num_samples), INT64)
            with self._lock:
                if providers.native.random_weighted(self._capsule, made, probs, np.empty(probs.shape[-1], FLOAT32)):
                    self._untouched = False
                    return made
        check_multinomial(probs, num_samples, replacement)
        if probs.size == 0:
            return np.empty((*probs.shape[:-1], num_samples), np.int64)
        if replacement and num_samples > 1:
            return self._multinomial_search(probs, num_samples)
        # The fastest of exponential clocks with these rates: the largest weight / exponential wins.
        # They are drawn in the order of the memory.
        transposed = probs.flags.f_contiguous and not probs.flags.c_contiguous
        clocks = self.exponential(probs.shape[::-1] if transposed else probs.shape, probs.dtype)
        clocks = clocks.T if transposed else clocks
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scores = _stored_result(np.divide, probs, clocks).astype(np.float64)
        scores[np.isnan(scores)] = np.inf  # 0 / 0, if a 16-bit clock rounds to zero: PyTorch ranks NaN first
        if num_samples == 1:
            return np.argmax(scores, axis=-1, keepdims=True).astype(np.int64)
        return np.argsort(-scores, axis=-1, kind="stable")[..., :num_samples].astype(np.int64)

    def _multinomial_search(self, probs: np.ndarray, num_samples: int) -> np.ndarray:
        rows = probs.reshape(-1, probs.shape[-1])
        rows = rows if rows.dtype == FLOAT64 else rows.astype(np.float32)
        cumulative = np.cumsum(rows, axis=-1, dtype=rows.dtype)
        cumulative = (cumulative / cumulative[:, -1:]).astype(np.float64)
        with self._lock:
            targets = self._unit_doubles(rows.shape[0] * num_samples).reshape(-1, num_samples)
        # A row is a distribution, not an element: one vectorised search for each.
        found = [np.searchsorted(row, target) for row, target in zip(cumulative, targets, strict=True)]
        return np.array(found, np.int64).reshape((*probs.shape[:-1], num_samples))

    def _draw(self, shape: Shape, dtype: np.dtype, step: Callable[[int], np.ndarray]) -> np.ndarray:
        """Fill a new array with `step(count)` after `step(count)`, as one draw under the lock."""
        count = math.prod(shape)
        if count <= STEP:
            with self._lock:
                made = step(count)
            return (made if made.dtype == dtype else made.astype(dtype)).reshape(shape)
        result = np.empty(count, dtype)
        with self._lock:
            for start in range(0, result.size, STEP):
                stop = min(start + STEP, result.size)
                result[start:stop] = step(stop - start)
        return result.reshape(shape)

    @staticmethod
    def _as_complex(parts: np.ndarray, shape: Shape, dtype: np.dtype) -> np.ndarray:
        return parts.view(dtype).reshape(shape)


def _real_part(dtype: np.dtype) -> np.dtype:
    return FLOAT32 if dtype == np.complex64 else FLOAT64


def _float64_box_muller(unit: np.ndarray) -> np.ndarray:
    """Standard normals from float64 uniforms: of each 16, 8 radii and 8 angles give 8 cosines, then 8 sines."""
    blocks = unit.reshape(-1, 2, BOX_MULLER_BLOCK // 2)
    radius = np.sqrt(-2.0 * np.log(1.0 - blocks[:, 0]))
    angle = (2.0 * math.pi) * blocks[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


def _stored_result(operation: np.ufunc, values: np.ndarray, other: np.ndarray | float) -> np.ndarray:
    """`operation(values, other)` rounded to the dtype of `values`; 16-bit floats compute in float32."""
    right = other if isinstance(other, np.ndarray) else narrow(np.array(other), values.dtype)
    dtypes = {values.dtype, right.dtype}
    compute: np.dtype
    if dtypes & COMPLEX:
        compute = np.dtype(np.complex128) if dtypes & {FLOAT64, np.dtype(np.complex128)} else np.dtype(np.complex64)
    else:
        compute = FLOAT64 if FLOAT64 in dtypes else FLOAT32
    return narrow(operation(values.astype(compute), right.astype(compute)), values.dtype)
