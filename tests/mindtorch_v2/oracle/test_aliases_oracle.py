"""Aliases and rarely used forms, so that every declared op meets PyTorch at least once."""

from __future__ import annotations

import pytest
from harness import check, data, values

POSITIVE = data(3, 4, low=0.2, high=2.0)

CASES = {
    "arctan2_": (lambda t, x, y: (x * 1).arctan2_(y), POSITIVE, data(3, 4, seed=1)),
    "divide_": (lambda t, x, y: (x * 1).divide_(y), POSITIVE, POSITIVE),
    "true_divide_": (lambda t, x, y: (x * 1).true_divide_(y), POSITIVE, POSITIVE),
    "multiply_": (lambda t, x, y: (x * 1).multiply_(y), POSITIVE, POSITIVE),
    "subtract_": (lambda t, x, y: (x * 1).subtract_(y), POSITIVE, POSITIVE),
    "moveaxis": (lambda t, x: t.moveaxis(x, (0, 1), (1, 0)), POSITIVE),
    "swapdims": (lambda t, x: t.swapdims(x, 0, 1), POSITIVE),
    "reshape_as": (lambda t, x, y: x.reshape_as(y), POSITIVE, data(4, 3)),
    "softmin": (lambda t, x: t.nn.functional.softmin(x, 1), POSITIVE),
    "std unbiased": (lambda t, x: t.std(x, False), POSITIVE),
    "var_mean": (lambda t, x: t.var_mean(x), POSITIVE),
    "var_mean unbiased": (lambda t, x: t.var_mean(x, False), POSITIVE),
    "var_mean dim": (lambda t, x: t.var_mean(x, [1], False, True), POSITIVE),
    "matrix_power": (lambda t, x: t.linalg.matrix_power(x[:, :3], 3), POSITIVE),
    "cholesky": (lambda t, x: t.cholesky(x @ x.t() + 2 * t.eye(3)), POSITIVE),
    "pinverse": (lambda t, x: t.pinverse(x), POSITIVE),
    **{f"special.{name}": (lambda t, x, name=name: getattr(t.special, name)(x), data(3, 4, low=0.2, high=0.8))
       for name in ("digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "logit",
                    "psi", "round", "sinc")},
    "special.polygamma": (lambda t, x: t.special.polygamma(1, x), POSITIVE),
    "special.xlogy": (lambda t, x, y: t.special.xlogy(x, y), POSITIVE, POSITIVE),
}


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    function, *given = CASES[name]
    check(function, *given, tolerance=1e-4, second=False, nodes=name not in ("cholesky", "pinverse", "matrix_power"))


INTEGERS = values([[1, 5], [3, 2]], "int64")


@pytest.mark.parametrize("call", [
    lambda t, x: x.clone().greater_(2), lambda t, x: x.clone().greater_equal_(2), lambda t, x: x.clone().less_(3),
    lambda t, x: x.clone().less_equal_(3), lambda t, x: x.clone().not_equal_(3),
    lambda t, x: t.bitwise_left_shift(3, x), lambda t, x: t.bitwise_right_shift(1000, x),
    lambda t, x: t.count_nonzero(x - 3, (0, 1)), lambda t, x: t.count_nonzero(x - 3, (1,)),
])
def test_integers(call):
    check(call, INTEGERS, grad=False)


@pytest.mark.parametrize("call", [
    lambda t, x, y: t._foreach_addcdiv_(x, y, y, t.tensor([1.0, 2.0])),
    lambda t, x, y: t._foreach_addcmul_(x, y, y, t.tensor([1.0, 2.0])),
    lambda t, x, y: t._foreach_lerp_(x, y, y), lambda t, x, y: t._foreach_pow_(x, y),
])
def test_foreach_in_place(call):
    def program(torch, a, b, c, d):
        changed = [a.clone(), b.clone()]
        call(torch, changed, [c, d])
        return changed

    check(program, POSITIVE, data(2, low=0.2, high=1), data(3, 4, low=0.2, high=1, seed=2),
          data(2, low=0.2, high=1, seed=3), grad=False)


def test_conv3d_with_named_padding():
    check(lambda t, x, w: t.conv3d(x, w, padding="same"), data(1, 2, 4, 4, 4), data(3, 2, 3, 3, 3, seed=1),
          second=False, tolerance=1e-4, nodes=False)


def test_packed_rnn_relu():
    def program(torch, x):
        torch.manual_seed(0)
        layer = torch.nn.RNN(3, 4, nonlinearity="relu")
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2]))
        output, hidden = layer(packed)
        return output.data, hidden

    check(program, data(4, 2, 3), second=False, nodes=False)
