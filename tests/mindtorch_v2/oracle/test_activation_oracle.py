"""Activation functions against PyTorch. Those that PyTorch keeps in `nn.functional` are taken from the op tables."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check, check_error, data, ours, theirs, values  # noqa: E402

from mindtorch_v2._dispatch.namespace import aten  # noqa: E402


def op(module: Any, name: str) -> Any:
    """An op of either module."""
    return getattr(torch.ops.aten, name) if module is torch else getattr(aten, name)


ACTIVATIONS: dict[str, list[tuple[Any, ...]]] = {
    "relu": [()], "relu6": [()], "hardtanh": [(), (-0.5, 1.5)], "hardsigmoid": [()], "hardswish": [()],
    "leaky_relu": [(), (0.2,), (1.5,), (-0.1,)], "elu": [(), (0.5,), (1.3, 0.7, 1.1)], "selu": [()],
    "celu": [(), (0.7,)], "gelu": [()], "silu": [()], "mish": [()], "softplus": [(), (2.0, 3.0)],
    "hardshrink": [(), (0.2,)], "softshrink": [(), (0.2,)], "threshold": [(0.1, -3.0)], "log_sigmoid": [()],
    "sigmoid": [()], "tanh": [()], "rrelu": [()], "glu": [()],
}
CASES = [(name, args) for name, all_args in ACTIVATIONS.items() for args in all_args]
NO_INPLACE = {"softplus", "hardshrink", "softshrink", "log_sigmoid", "glu", "rrelu"}
INTEGERS = {"relu", "relu6", "hardtanh", "threshold", "sigmoid", "tanh"}
SPECIAL = values([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 3.0, -3.0, 6.0, 0.5, -0.5, 40.0, -40.0, 1e-20,
                  1e20, -1e20, 100.0, -100.0, 20.5])


@pytest.mark.parametrize(("name", "args"), CASES)
def test_values_and_gradients(name, args):
    nodes = name != "rrelu"
    second = name != "hardsigmoid"  # PyTorch does not differentiate it twice.
    for dtype in ("float32", "float64"):
        # PyTorch rounds some factors of these to float32.
        tolerance = None if dtype == "float32" else 1e-6 if name in ("celu", "hardsigmoid") else 1e-10
        check(lambda module, x: op(module, name)(x, *args), data(3, 6, dtype=dtype, low=-5, high=5), nodes=nodes,
              second=second, tolerance=tolerance)
    check(lambda module, x: op(module, name)(x.t(), *args), data(6, 4, low=-2), nodes=nodes, second=second)
    check(lambda module, x: op(module, name)(x, *args), data(0, 4), nodes=nodes, second=second)
    if name != "glu":
        check(lambda module, x: op(module, name)(x, *args), data(low=-2), nodes=nodes, second=second)


@pytest.mark.parametrize(("name", "args"), CASES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(name, args, dtype):
    check(lambda module, x: op(module, name)(x, *args), data(4, 6, dtype=dtype, low=-4, high=4), second=False,
          nodes=name != "rrelu")


@pytest.mark.parametrize(("name", "args"), CASES)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers(name, args, dtype):
    given = data(6, dtype=dtype, low=-3, high=3)
    if name in ("hardtanh", "threshold") and (args or dtype == "uint8"):
        return  # Bounds that the integer type cannot hold.
    if name in INTEGERS and (dtype != "bool" or name in ("sigmoid", "tanh")):
        check(lambda module, x: op(module, name)(x, *args), given)
    else:
        check_error(lambda module, x: op(module, name)(x, *args), given, words=name not in ("softshrink", "rrelu"))


@pytest.mark.parametrize(("name", "args"), CASES)
def test_special_values(name, args):
    if name == "gelu":  # PyTorch has NaN at +inf, where the limit is +inf.
        check(lambda module, x: op(module, name)(x), (SPECIAL[0][3:], "float32"), grad=False)
    else:
        check(lambda module, x: op(module, name)(x, *args), SPECIAL, grad=False)
    finite = values([0.0, -0.0, 3.0, -3.0, 6.0, 0.5, -0.5, 40.0, -40.0, 1.0, -1.0, 100.0])
    check(lambda module, x: op(module, name)(x, *args), finite, second=False, nodes=name != "rrelu")


@pytest.mark.parametrize(("name", "args"), CASES)
def test_in_place(name, args):
    if name in NO_INPLACE or (name == "leaky_relu" and args and args[0] < 0):
        return
    check(lambda module, x: op(module, name + "_")(x * 1, *args), data(3, 6), second=False)
    check(lambda module, x: op(module, name + "_")(x.t(), *args), data(3, 6), grad=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_gelu_by_tanh(dtype):
    check(lambda module, x: op(module, "gelu")(x, approximate="tanh"), data(3, 6, dtype=dtype, low=-5, high=5),
          second=dtype != "float16", tolerance=5e-3 if dtype == "float16" else None)
    check(lambda module, x: op(module, "gelu")(x, approximate="tanh"), SPECIAL, grad=False)
    check_error(lambda module, x: op(module, "gelu")(x, approximate="other"), data(3))


def test_many_values():
    """Enough values for the kernels' other paths."""
    for name in ("relu", "hardtanh", "softshrink", "mish", "elu"):
        check(lambda module, x, name=name: op(module, name)(x), data(50, 60, low=-9, high=30), second=False)
    check(lambda module, x: module.relu(x.t()), data(50, 60))
    infinite = values([float("inf"), -float("inf"), float("nan"), 1.0] * 1000), values([-1.0, 2.0, 0.0, 5.0] * 1000)
    check(lambda module, g, x: op(module, "threshold_backward")(g, x, 0), *infinite, grad=False)


def test_gelu_of_many_values():
    check(lambda module, x: op(module, "gelu")(x), data(4000, low=-8, high=8), tolerance=1e-6, second=False)
    check(lambda module, x: op(module, "gelu")(x), data(4000, low=-0.01, high=0.01), tolerance=1e-7, grad=False)


@pytest.mark.parametrize("shapes", [((2, 3, 4), (3,)), ((2, 3), (1,)), ((5,), (1,)), ((2, 3), (3,)), ((), (1,))])
def test_prelu(shapes):
    check(lambda module, x, w: module.prelu(x, w), data(*shapes[0]), data(*shapes[1], seed=1))


def test_glu_dimensions():
    for dim in (0, 1, -1, -2):
        check(lambda module, x, dim=dim: op(module, "glu")(x, dim), data(4, 6))
    check_error(lambda module, x: op(module, "glu")(x, 0), data(3, 4))
    check_error(lambda module, x: op(module, "glu")(x, 2), data(3, 4))


def test_public_functions():
    check(lambda module, x: module.relu(x), data(3))
    check(lambda module, x: x.relu(), data(3))
    check(lambda module, x: module.relu_(x * 1), data(3))
    check(lambda module, x: module.selu(x), data(3))
    check(lambda module, x: module.celu(x, alpha=0.5), data(3))
    check(lambda module, x: module.threshold(x, 0.5, 2), data(3))
    check(lambda module, x: x.hardshrink(lambd=0.3), data(3))
    check(lambda module, x: module.relu(x.relu_() if x.is_leaf else x), data(3), grad=False)


def test_composed_functions():
    for name, reference in (("softsign", torch.nn.functional.softsign), ("tanhshrink", torch.nn.functional.tanhshrink)):
        check(lambda module, x, name=name, reference=reference: reference(x) if module is torch
              else getattr(aten, name)(x), data(3, 4))


def test_errors():
    check_error(lambda module, x: module.celu(x, 0.0), data(3))
    check_error(lambda module, x: op(module, "softshrink")(x, -1), data(3))
    check_error(lambda module, x, w: module.prelu(x, w), data(2, 3), data(2))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_blocks_with_a_spread_gradient(approximate):
    grads = []
    for t in (ours, theirs):
        x = t.linspace(-4, 4, 40000).reshape(200, 200).requires_grad_()
        t.nn.functional.gelu(x, approximate=approximate).sum().backward()
        grads.append(x.grad)
    assert_same(*grads, "gradient", 1e-5)
