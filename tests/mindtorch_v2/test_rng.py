"""The CPU random generator by itself: known numbers, repeatability, saved states, ranges, refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2._backends.cpu.rng import MersenneGenerator
from mindtorch_v2._backends.cpu.rng_rounding import fused_multiply_add
from mindtorch_v2._backends.cpu.rng_shuffle import shuffle_forward, shuffle_inside_out

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
BF16, I64, BOOL = np.dtype(ml_dtypes.bfloat16), np.dtype(np.int64), np.dtype(np.bool_)
seeds = st.integers(-(1 << 63), (1 << 64) - 1)
sizes = st.integers(0, 700)

DRAWS: dict[str, Callable[[MersenneGenerator, int], np.ndarray]] = {
    "uniform": lambda g, n: g.uniform((n,), F32),
    "uniform16": lambda g, n: g.uniform((n,), BF16, -1.0, 2.0),
    "normal": lambda g, n: g.normal((n,), F32),
    "normal64": lambda g, n: g.normal((n,), F64, 1.0, 2.0),
    "integers": lambda g, n: g.integers((n,), I64, -5, 5),
    "integers_full": lambda g, n: g.integers_full((n,), I64),
    "permutation": lambda g, n: g.permutation(n, I64),
    "bernoulli": lambda g, n: g.bernoulli((n,), BOOL, 0.3),
    "bernoulli_elementwise": lambda g, n: g.bernoulli_elementwise(np.full(n, 0.5, np.float32), F32),
    "exponential": lambda g, n: g.exponential((n,), F32),
    "geometric": lambda g, n: g.geometric((n,), I64, 0.2),
    "log_normal": lambda g, n: g.log_normal((n,), F32),
    "cauchy": lambda g, n: g.cauchy((n,), F32),
    "multinomial": lambda g, n: g.multinomial(np.ones(n + 1, np.float32), n + 1, False),
}
draws = st.lists(st.tuples(st.sampled_from(sorted(DRAWS)), sizes), max_size=5)


# Printed by torch 2.13.0 after manual_seed(42) on a new generator, each.
GOLDEN: dict[str, tuple[Callable[[MersenneGenerator], np.ndarray], list[float]]] = {
    "rand": (lambda g: g.uniform((3,), F32), [0.8822692632675171, 0.9150039553642273, 0.38286375999450684]),
    "rand float64": (lambda g: g.uniform((3,), F64), [0.05815448596142969, 0.06291016742457756, 0.12358607277440903]),
    "rand bfloat16": (lambda g: g.uniform((3,), BF16), [0.8828125, 0.9140625, 0.3828125]),
    "uniform": (
        lambda g: g.uniform((3,), F32, -0.1, 0.1),
        [0.07645385712385178, 0.0830007940530777, -0.023427248001098633],
    ),
    "randn, few": (lambda g: g.normal((3,), F32), [0.33669036626815796, 0.12880940735340118, 0.23446236550807953]),
    "randn, many": (
        lambda g: g.normal((17,), F32)[[0, 1, 16]],
        [1.9269152879714966, -0.1595974713563919, -0.3097267746925354],
    ),
    "randn float16": (lambda g: g.normal((17,), F16)[[0, 1, 16]], [1.9267578125, 1.642578125, 0.85986328125]),
    "normal": (
        lambda g: g.normal((40,), F32, 0.5, 2.0)[:3],
        [4.353830337524414, 3.4745681285858154, 2.3014345169067383],
    ),
    "randint": (lambda g: g.integers((5,), I64, 0, 10), [2.0, 7.0, 6.0, 4.0, 6.0]),
    "randint, wide": (lambda g: g.integers((2,), I64, 0, 1 << 40), [441507790259.0, 395924837646.0]),
    "randperm": (lambda g: g.permutation(8, I64), [6.0, 3.0, 0.0, 7.0, 2.0, 1.0, 4.0, 5.0]),
    "bernoulli": (lambda g: g.bernoulli((8,), F32, 0.5), [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0]),
    "exponential": (
        lambda g: g.exponential((3,), F32),
        [0.05991401523351669, 0.06497612595558167, 0.13191677629947662],
    ),
    "multinomial": (lambda g: g.multinomial(np.arange(1, 9, dtype=np.float32), 5, False), [3.0, 1.0, 2.0, 0.0, 5.0]),
    "multinomial, again": (
        lambda g: g.multinomial(np.arange(1, 9, dtype=np.float32), 5, True),
        [1.0, 1.0, 2.0, 1.0, 5.0],
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_known_numbers(case: str) -> None:
    draw, expected = GOLDEN[case]
    assert draw(MersenneGenerator(42)).astype(np.float64).tolist() == expected


@given(seed=seeds, program=draws)
def test_same_seed_same_numbers(seed: int, program: list[tuple[str, int]]) -> None:
    first, second = MersenneGenerator(seed), MersenneGenerator(0)
    second.normal((1,), F32)  # leaves a sample behind, which seeding must drop
    second.manual_seed(seed)
    for kind, size in program:
        np.testing.assert_array_equal(DRAWS[kind](first, size), DRAWS[kind](second, size))
    np.testing.assert_array_equal(first.get_state(), second.get_state())
    assert first.initial_seed() == seed % (1 << 64)


@given(seed=seeds, before=draws, after=draws)
def test_state_round_trip(seed: int, before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    original = MersenneGenerator(seed)
    for kind, size in before:
        DRAWS[kind](original, size)
    state = original.get_state()
    restored, copy = MersenneGenerator(1), original.clone()
    restored.set_state(state)
    np.testing.assert_array_equal(restored.get_state(), state)
    for kind, size in after:
        expected = DRAWS[kind](original, size)
        np.testing.assert_array_equal(DRAWS[kind](restored, size), expected)
        np.testing.assert_array_equal(DRAWS[kind](copy, size), expected)


def test_state_is_a_copy_of_5056_bytes() -> None:
    generator = MersenneGenerator(3)
    state = generator.get_state()
    assert (state.dtype, state.shape) == (np.uint8, (5056,))
    state[:] = 0
    assert generator.get_state().any()


def test_clone_is_independent() -> None:
    generator = MersenneGenerator(3)
    copy = generator.clone()
    copy.uniform((10,), F32)
    np.testing.assert_array_equal(generator.get_state(), MersenneGenerator(3).get_state())


def test_seed_is_fresh_and_reproducible() -> None:
    generator = MersenneGenerator(3)
    seed = generator.seed()
    assert seed == generator.initial_seed() != MersenneGenerator(3).seed()
    np.testing.assert_array_equal(generator.uniform((5,), F32), MersenneGenerator(seed).uniform((5,), F32))


@pytest.mark.parametrize("kind", DRAWS)
def test_large_draw_continues_small_ones(kind: str) -> None:
    """Draws are made in steps; their borders must not change the numbers."""
    if kind in ("normal", "normal64", "permutation", "multinomial"):
        pytest.skip("the size of the draw is part of its definition")
    whole, parts = MersenneGenerator(9), MersenneGenerator(9)
    expected = DRAWS[kind](whole, 100_000)
    pieces = [DRAWS[kind](parts, size) for size in (1, 32_767, 60_001, 7_231)]
    if kind == "log_normal":  # few float64 normals are computed by the C library, many by NumPy
        np.testing.assert_allclose(np.concatenate(pieces), expected, rtol=2e-7)
    else:
        np.testing.assert_array_equal(np.concatenate(pieces), expected)


@given(seed=seeds, dtype=st.sampled_from([F16, BF16, F32, F64]), low=st.floats(-100, 100), width=st.floats(0, 100))
def test_uniform_stays_in_range(seed: int, dtype: np.dtype, low: float, width: float) -> None:
    values = MersenneGenerator(seed).uniform((300,), dtype, low, low + width).astype(np.float64)
    low_stored, high_stored = (float(np.float32(bound).astype(dtype)) for bound in (low, low + width))
    if dtype == F64:
        low_stored, high_stored = low, low + width
    assert (values >= low_stored).all()
    assert (values < high_stored).all() or low_stored == high_stored


@given(seed=seeds, low=st.integers(-(1 << 63), (1 << 63) - 2), width=st.integers(1, 1 << 64))
def test_integers_stay_in_range(seed: int, low: int, width: int) -> None:
    high = min(low + width, (1 << 63) - 1)
    values = MersenneGenerator(seed).integers((100,), I64, low, high)
    assert low <= int(values.min()) <= int(values.max()) < high


@given(seed=seeds, n=sizes)
def test_permutation_holds_every_item_once(seed: int, n: int) -> None:
    assert sorted(MersenneGenerator(seed).permutation(n, I64).tolist()) == list(range(n))


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=200))
def test_shuffles_equal_their_swaps_done_one_by_one(fractions: list[float]) -> None:
    count = len(fractions)
    ahead = [i + int(fraction * (count - i)) for i, fraction in enumerate(fractions)]
    items = list(range(count))
    for here, there in enumerate(ahead):
        items[here], items[there] = items[there], items[here]
    assert shuffle_forward(np.array(ahead, np.int64)).tolist() == items

    behind = [int(fraction * (i + 1)) for i, fraction in enumerate(fractions)]
    items = []
    for i, there in enumerate(behind):
        items.append(i)
        items[i] = items[there]
        items[there] = i
    assert shuffle_inside_out(np.array(behind, np.int64)).tolist() == items


@given(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=1), st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32)
)
def test_fused_multiply_add_rounds_once(values: list[float], factor: float, addend: float) -> None:
    """Against exact integer arithmetic: Python divides integers with a single rounding."""

    def exact(value: float) -> float:
        numerator, denominator = value.as_integer_ratio()
        factor_ratio, addend_ratio = factor.as_integer_ratio(), addend.as_integer_ratio()
        top = numerator * factor_ratio[0] * addend_ratio[1] + addend_ratio[0] * denominator * factor_ratio[1]
        return top / (denominator * factor_ratio[1] * addend_ratio[1])

    thirds = [value / 3 for value in values]  # uses all 53 bits, unlike `values`
    if all(abs(value) > 1e-100 for value in (*thirds, factor)):  # the error of a product must not underflow
        assert fused_multiply_add(np.array(thirds), factor, addend).tolist() == [exact(value) for value in thirds]


def test_fused_multiply_add_resolves_float32_ties() -> None:
    """1 + 2**-24 is halfway between two float32, and a last bit too small for float64 must decide."""
    value, factor = np.array([1 + 2.0**-23], np.float32), float(np.float32(2.0**-60))
    above = fused_multiply_add(value, 2.0**-24, 1.0)
    assert above.tolist() == [1 + 2.0**-23]
    assert fused_multiply_add(np.array([2.0**-24], np.float32), 1.0, 1.0).tolist() == [1.0]
    tied = np.float32(1 + 2.0**-12)
    # (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24: a tie of float32, broken by an addend below the reach of float64.
    for addend, expected in ((factor, 1 + 2.0**-11 + 2.0**-23), (-factor, 1 + 2.0**-11)):
        assert fused_multiply_add(np.array([tied]), float(tied), addend).tolist() == [expected]


def test_moments() -> None:
    """The rough shape of each distribution: a wrong parameter would exceed the tolerance by far."""
    generator, shape = MersenneGenerator(1), (200_000,)
    assert abs(generator.uniform(shape, F32, 1.0, 3.0).mean() - 2) < 0.01
    normal = generator.normal(shape, F32, 2.0, 0.5)
    assert abs(normal.mean() - 2) < 0.01
    assert abs(normal.std() - 0.5) < 0.01
    parts = generator.normal(shape, np.dtype(np.complex64))
    assert abs(parts.real.std() ** 2 - 0.5) < 0.01
    assert abs(generator.bernoulli(shape, F32, 0.3).mean() - 0.3) < 0.01
    assert abs(generator.exponential(shape, F32, 2.0).mean() - 0.5) < 0.01
    assert abs(generator.geometric(shape, F32, 0.25).mean() - 4) < 0.05
    assert abs(np.median(generator.cauchy(shape, F32, 3.0, 0.5)) - 3) < 0.01
    assert abs(np.log(generator.log_normal(shape, F64, 0.5, 0.25)).mean() - 0.5) < 0.01
    weights = np.array([[1, 2, 7], [5, 0, 5]], np.float32)
    drawn = generator.multinomial(weights, 100_000, True)
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn]) / 100_000
    np.testing.assert_allclose(counts, weights / 10, atol=0.01)


def test_multinomial_without_replacement_repeats_nothing() -> None:
    drawn = MersenneGenerator(1).multinomial(np.ones((4, 50), np.float32), 50, False)
    np.testing.assert_array_equal(np.sort(drawn, axis=-1), np.tile(np.arange(50), (4, 1)))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (4, 5), (2, 3, 7)])
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, np.dtype(np.complex64), np.dtype(np.complex128)])
def test_shape_and_dtype(shape: tuple[int, ...], dtype: np.dtype) -> None:
    generator = MersenneGenerator(1)
    for values in (generator.uniform(shape, dtype), generator.normal(shape, dtype)):
        assert (values.shape, values.dtype, values.flags.c_contiguous) == (shape, dtype, True)
        values[...] = 0  # fresh, so writable


def test_inconsistent_state_is_refused() -> None:
    generator = MersenneGenerator(1)
    generator.uniform((10,), F32)
    state = generator.get_state()
    state[8] ^= 1  # `left` no longer fits `next`
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state(state)


def test_float_that_cannot_hold_the_bounds_warns() -> None:
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^11\), 2\^11\]"):
        values = MersenneGenerator(1).integers((100,), F16, 0, 5000)
    assert values.max() < 5000


def test_threads_share_the_stream_without_loss() -> None:
    """Draws of several threads are those of one thread, in some order."""
    generator, drawn = MersenneGenerator(4), []

    def work() -> None:
        for _ in range(50):
            drawn.append(generator.normal((7,), F64).tobytes() + generator.normal((1,), F64).tobytes())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    alone = MersenneGenerator(4)
    for _ in range(200):
        alone.normal((8,), F64)
    np.testing.assert_array_equal(generator.get_state(), alone.get_state())
    assert len(set(drawn)) == 200
