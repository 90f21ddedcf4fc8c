"""Random ops against PyTorch: the same seed gives the same numbers through a whole program."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from harness import check, check_error, data, make, ours, theirs, to_numpy

from mindtorch_v2 import _random


def randomness(torch):
    """Where the generators of a module are."""
    return _random if torch is ours else theirs


def seeded(function):
    """The function, started from seed 7 on whichever module it is run; the state after it is compared too."""

    def run(torch, *x):
        randomness(torch).manual_seed(7)
        made = function(torch, *x)
        return [made, randomness(torch).get_rng_state()]

    return run


def same(function, *given, tolerance=0.0, **options):
    check(seeded(function), *given, tolerance=tolerance, **options)


def permuted(torch, *shape, dtype="float32"):
    """A dense tensor whose dimensions are stored in reverse."""
    return torch.empty(*shape[::-1], dtype=getattr(torch, dtype)).permute(*range(len(shape))[::-1])


FILLS = {
    "uniform": lambda t: t.uniform_(-1, 3),
    "normal": lambda t: t.normal_(1, 2),
    "random": lambda t: t.random_(),
    "random to": lambda t: t.random_(10),
    "random from": lambda t: t.random_(-5, 10),
    "exponential": lambda t: t.exponential_(2.0),
    "geometric": lambda t: t.geometric_(0.3),
    "log_normal": lambda t: t.log_normal_(0.5, 0.5),
    "cauchy": lambda t: t.cauchy_(1.0, 2.0),
    "bernoulli": lambda t: t.bernoulli_(0.3),
    "bernoulli default": lambda t: t.bernoulli_(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FILLS)
def test_fills(name, dtype):
    tolerance = 1e-12 if dtype == "float64" else 0.0

    def run(torch):
        kind = getattr(torch, dtype)
        fill = FILLS[name]
        made = [fill(torch.empty(shape, dtype=kind)) for shape in ((3,), (5, 7), (), (0,), (40,), (4, 4))]
        made += [fill(permuted(torch, *shape, dtype=dtype)) for shape in ((3, 4), (5, 6), (2, 3, 4))]
        whole = torch.zeros(6, 8, dtype=kind)
        fill(whole[1:4, ::2])
        fill(whole[:, 3])
        fill(whole.t()[2:, 1:])
        return [*made, whole]

    same(run, tolerance=tolerance)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_integer_fills(dtype):
    def run(torch):
        made = torch.empty(20, dtype=getattr(torch, dtype))
        return [made.random_().clone(), made.bernoulli_(0.4).clone(), made.random_(0, 2).clone(),
                permuted(torch, 3, 4, dtype=dtype).random_()]

    same(run)


def test_fill_keywords_and_probabilities():
    same(lambda torch: torch.empty(5).uniform_(**{"from": 1.0, "to": 2.0}))
    same(lambda torch: torch.empty(5).random_(**{"from": 1, "to": 20}))
    same(lambda torch: torch.empty(3, 4).bernoulli_(torch.tensor([0.1, 0.5, 0.9, 1.0])))
    same(lambda torch: permuted(torch, 3, 4).bernoulli_(torch.tensor([0.1, 0.5, 0.9, 1.0])))
    same(lambda torch: torch.empty(4, dtype=torch.int64).bernoulli_(torch.tensor(0.5, dtype=torch.float64)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_factories(name, dtype):
    tolerance = 1e-12 if dtype == "float64" else 0.0

    def run(torch):
        make_it, kind = getattr(torch, name), getattr(torch, dtype)
        like = getattr(torch, f"{name}_like")
        return [make_it(3, 4, dtype=kind), make_it((5, 6), dtype=kind), make_it(size=(2,), dtype=kind),
                make_it([], dtype=kind), make_it(0, 3, dtype=kind), like(torch.empty(4, 5, dtype=kind)),
                like(permuted(torch, 4, 5, dtype=dtype)), like(torch.empty(3, dtype=torch.int64), dtype=kind)]

    same(run, tolerance=tolerance)


def test_factory_options():
    same(lambda torch: torch.rand(3, out=torch.empty(5)))
    same(lambda torch: torch.randn(3, out=torch.empty(0, dtype=torch.float64)), tolerance=1e-12)
    same(lambda torch: torch.rand(torch.Size([2, 2])))
    same(lambda torch: torch.randn(20, requires_grad=True).is_leaf)
    same(lambda torch: torch.rand(2, requires_grad=True), grad=False)


def test_randint():
    same(lambda torch: [torch.randint(10, (3,)), torch.randint(-5, 5, (3, 2)), torch.randint(high=7, size=(2,)),
                        torch.randint(low=2, high=7, size=(2,)), torch.randint(3, 9, size=(4,)),
                        torch.randint(10, (3,), dtype=torch.float32), torch.randint(2, (3,), dtype=torch.bool),
                        torch.randint(1 << 40, (3,)), torch.randint(1 << 40, (3,), dtype=torch.float64)])
    same(lambda torch: [torch.randint_like(torch.empty(3), 10), torch.randint_like(torch.empty(3), -4, 10),
                        torch.randint_like(torch.empty(3), 10, dtype=torch.int32),
                        torch.randint_like(permuted(torch, 3, 4), low=1, high=9)])


@pytest.mark.parametrize("shape", [(0,), (1,), (15,), (16,), (17,), (3, 40), (70, 1000)])
@pytest.mark.parametrize("wide", [False, True])
def test_factories_draw_what_the_fills_draw(shape, wide):
    def program(torch):
        torch.manual_seed(3)
        dtype = torch.float64 if wide else torch.float32
        return [torch.randn(shape, dtype=dtype), torch.rand(shape, dtype=dtype),
                torch.randint(1 << (40 if wide else 9), shape), torch.randint(-5, 5, shape), torch.randn(*shape),
                torch.get_rng_state()]

    same(program, tolerance=1e-14 if wide else 0.0)  # of float64 the last digit may differ


@pytest.mark.parametrize("wrong", [(0, 10, 2), (10, 2), (5, 5, (2,)), (6, 5, (2,)), (0, 1 << 64, (2,)), (10, (-1,)),
                                   (0, 10, (2.0,)), (3.5, (2,))])
def test_randint_refuses(wrong):
    import torch as theirs

    import mindtorch_v2 as ours

    kinds = []
    for torch in (theirs, ours):
        with pytest.raises((TypeError, RuntimeError, ValueError)) as found:
            torch.randint(*wrong)
        kinds.append(found.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("n", [0, 1, 2, 10, 1000])
def test_randperm(n):
    same(lambda torch: [torch.randperm(n), torch.randperm(n, dtype=torch.int32),
                        torch.randperm(n, dtype=torch.float32)])


def test_normal():
    means, deviations = data(4, 5), data(4, 5, low=0.1, high=2, seed=1)
    same(lambda torch, m, s: torch.normal(m, s), means, deviations, second=False)
    same(lambda torch, m: torch.normal(m, 2.0), means, second=False)
    same(lambda torch, m: torch.normal(m), means, second=False)
    same(lambda torch, s: torch.normal(1.0, s), deviations, second=False)
    same(lambda torch, m, s: torch.normal(m, s), data(5), deviations, second=False)
    same(lambda torch: torch.normal(1.0, 2.0, (3, 6)))
    same(lambda torch: torch.normal(mean=1.0, std=2.0, size=(3,), dtype=torch.float64), tolerance=1e-12)
    same(lambda torch, m: torch.normal(m, 2.0, out=torch.empty(4, 5)), means, grad=False)


def test_bernoulli_and_multinomial():
    chances = data(4, 5, low=0, high=1)
    same(lambda torch, p: torch.bernoulli(p), chances, second=False)
    same(lambda torch, p: torch.bernoulli(p.t()), chances, grad=False)
    same(lambda torch, p: p.bernoulli(0.3), chances, grad=False)
    same(lambda torch, p: torch.bernoulli(p, 0.3), data(5, dtype="int64"))
    same(lambda torch, p: torch.multinomial(p, 2), chances, grad=False)
    same(lambda torch, p: p.multinomial(7, replacement=True), chances, grad=False)
    same(lambda torch, p: torch.multinomial(p[0], 1), chances, grad=False)


DROPOUTS = ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"]


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout(name, p):
    for train in (True, False):
        same(lambda torch, x, train=train: getattr(torch, name)(x, p, train), data(3, 4, 5), tolerance=1e-6,
             second=False)
    same(lambda torch, x: getattr(torch, name)(x.transpose(0, 2), p, True), data(3, 4, 5), tolerance=1e-6, second=False)
    same(lambda torch, x: getattr(torch, f"{name}_")(x * 1, p, True), data(3, 4), tolerance=1e-6, second=False)


def test_dropout_returns_its_input_when_idle():
    x = make(ours, data(3), True)
    assert ours.dropout(x, 0.5, False) is x
    assert ours.dropout(x, 0.0, True) is x


@pytest.mark.parametrize("p", [0.2, 1.0, 0.0])
def test_native_dropout(p):
    for train in (True, False):
        same(lambda torch, x, train=train: list(torch.native_dropout(x, p, train)), data(4, 5), second=False,
             tolerance=1e-6)


def test_a_whole_program():
    def run(torch):
        made = [torch.rand(3), torch.randn(3), torch.randn(20), torch.randperm(5)]
        made.append(torch.dropout(torch.ones(4, 4), 0.3, True))
        made += [torch.randint(9, (2,)), torch.randn(5), torch.empty(3, 7).t().normal_(), torch.randn(1)]
        made += [torch.bernoulli(torch.full((5,), 0.5)), torch.randn(2, dtype=torch.float64), torch.rand(2)]
        return made

    same(run, tolerance=1e-6)


# -- generators --------------------------------------------------------------------------------------------------------


def test_generator_argument():
    def run(torch):
        generator = randomness(torch).Generator().manual_seed(3)
        assert generator.initial_seed() == 3
        made = [torch.rand(3, generator=generator), torch.randn(20, generator=generator),
                torch.randint(9, (3,), generator=generator), torch.randperm(5, generator=generator),
                torch.empty(3).uniform_(generator=generator), torch.empty(3).normal_(generator=generator),
                torch.empty(3).random_(generator=generator), torch.empty(3).exponential_(generator=generator),
                torch.empty(3).bernoulli_(0.5, generator=generator), torch.normal(0.0, 1.0, (3,), generator=generator),
                torch.bernoulli(torch.full((3,), 0.5), generator=generator),
                torch.multinomial(torch.ones(4), 2, generator=generator),
                torch.normal(torch.zeros(3), 1.0, generator=generator)]
        return [*made, generator.get_state()]

    same(run)


def test_states():
    def run(torch):
        source = randomness(torch)
        first = torch.randn(3)
        state = source.get_rng_state()
        second = torch.randn(5)
        source.set_rng_state(state)
        third = torch.randn(5)
        generator = source.Generator()
        generator.set_state(state)
        return [first, second, third, torch.randn(5, generator=generator), source.initial_seed()]

    same(run)


def test_states_are_exchanged_with_pytorch():
    theirs.manual_seed(11)
    theirs.randn(7)
    state = theirs.get_rng_state()
    _random.set_rng_state(ours.tensor(state.tolist(), dtype=ours.uint8))
    np.testing.assert_array_equal(to_numpy(ours.randn(20)), to_numpy(theirs.randn(20)))


def test_fork_leaves_the_stream_alone():
    _random.manual_seed(0)
    with _random.fork_rng():
        ours.rand(10)
    first = ours.rand(3)
    _random.manual_seed(0)
    assert first.tolist() == ours.rand(3).tolist()


def test_generators_are_objects():
    generator = _random.Generator(device="cpu")
    assert generator.device == ours.device("cpu")
    assert generator.initial_seed() == theirs.Generator().initial_seed()
    assert isinstance(generator.seed(), int)
    ours.rand(3, generator=generator)
    for twin in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator), generator.clone_state()):
        assert ours.rand(3, generator=twin).tolist() == ours.rand(3, generator=generator.clone_state()).tolist()
    assert _random.manual_seed(5) is _random.default_generator
    assert isinstance(_random.seed(), int)


def test_gradients_stop_at_a_fill():
    check(lambda torch, x: (x * 2).uniform_(0, 0) + x, data(3), nodes=False, second=False)
    check_error(lambda torch: torch.ones(3, requires_grad=True).uniform_())


@pytest.mark.parametrize("run", [
    lambda torch: torch.rand(3, dtype=torch.int64), lambda torch: torch.randn(3, dtype=torch.int64),
    lambda torch: torch.randint(0, 0, (3,)), lambda torch: torch.randint(0, 300, (3,), dtype=torch.uint8),
    lambda torch: torch.randint(0, 5.5, (3,)), lambda torch: torch.randperm(-1),
    lambda torch: torch.ones(3, dtype=torch.int64).uniform_(), lambda torch: torch.normal(0.0, -1.0, (3,)),
    lambda torch: torch.normal(torch.ones(3), torch.ones(4)),
    lambda torch: torch.bernoulli(torch.ones(3, dtype=torch.int64)), lambda torch: torch.normal(0.0, 1.0),
    lambda torch: torch.ones(1, 3).expand(2, 3).uniform_(), lambda torch: torch.dropout(torch.ones(2), 1.5, True),
    lambda torch: torch.feature_dropout(torch.ones(2), 0.5, True), lambda torch: torch.rand(-1),
    lambda torch: torch.ones(2, 20).t().normal_(0, -1), lambda torch: torch.multinomial(torch.zeros(3), 1)])
def test_errors(run):
    check_error(run)


def test_wrong_generators():
    check_error(lambda torch: torch.rand(3, generator=3), words=False)
    check_error(lambda torch: torch.bernoulli(torch.ones(3) * 2), words=False)
    check_error(lambda torch: randomness(torch).manual_seed(1 << 64))
    check_error(lambda torch: randomness(torch).set_rng_state(torch.rand(3)))
    with pytest.raises(RuntimeError, match="No NPU is available"):
        _random.Generator("npu")
