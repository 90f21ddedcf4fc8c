"""Softmax, normalization and embedding against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from harness import assert_same, check, check_error, data, make, ours, theirs, values

from mindtorch_v2._dispatch.namespace import aten


def functional(torch):
    return aten if torch is ours else theirs.ops.aten


# -- softmax -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(("shape", "dim"), [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((5,), 0), ((), 0), ((), -1),
                                            ((0, 3), 1), ((3, 0), 1), ((2, 1), 1)])
def test_softmax(name, shape, dim):
    check(lambda torch, x: getattr(torch, name)(x, dim), data(*shape, dtype="float64"))
    check(lambda torch, x: getattr(x, name)(dim), data(*shape), nodes=True)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_softmax_dtypes(name, dtype):
    check(lambda torch, x: getattr(torch, name)(x, -1), data(3, 4, dtype=dtype), second=False,
          tolerance=0.03 if "16" in dtype else None)
    check(lambda torch, x: getattr(torch, name)(x, dim=1, dtype=torch.float64), data(3, 4, dtype=dtype), second=False,
          tolerance=0.03 if "16" in dtype else 1e-5)
    check(lambda torch, x: getattr(torch, name)(x.t(), 0), data(3, 4, dtype=dtype), second=False,
          tolerance=0.03 if "16" in dtype else None)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_extremes(name):
    inf, nan = float("inf"), float("nan")
    rows = values([[1000.0, 1000.0], [-inf, 0.0], [-inf, -inf], [inf, 0.0], [nan, 0.0], [-1000.0, 1000.0]])
    check(lambda torch, x: getattr(torch, name)(x, -1), rows, second=False)
    check(lambda torch, x: getattr(torch, name)(x, 0, dtype=torch.float32), data(3, dtype="int64"))
    check_error(lambda torch, x: getattr(torch, name)(x, 0), data(3, dtype="int64"))
    check_error(lambda torch, x: getattr(torch, name)(x, 2), data(3, 4))


# -- layer norm --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "normalized"), [((2, 3), (3,)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 4)), ((4,), (4,)),
                                                   ((2, 1, 3), (3,)), ((0, 3), (3,))])
def test_layer_norm(shape, normalized):
    x = data(*shape, dtype="float64")
    weight, bias = data(*normalized, dtype="float64", seed=1), data(*normalized, dtype="float64", seed=2)
    check(lambda torch, x, w, b: functional(torch).layer_norm(x, normalized, w, b), x, weight, bias, tolerance=1e-8)
    check(lambda torch, x, w: functional(torch).layer_norm(x, normalized, w), x, weight, tolerance=1e-8)
    check(lambda torch, x: functional(torch).layer_norm(x, normalized, None, None, 0.1), x, tolerance=1e-8)
    check(lambda torch, x, w, b: functional(torch).layer_norm(x.detach(), normalized, w, b), x, weight, bias,
          tolerance=1e-8, second=False)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_layer_norm_dtypes(dtype):
    tolerance = {"float32": 2e-5, "float16": 0.02, "bfloat16": 0.1}[dtype]
    given = data(3, 4, dtype=dtype), data(4, dtype=dtype, seed=1), data(4, dtype=dtype, seed=2)
    check(lambda torch, x, w, b: functional(torch).layer_norm(x, (4,), w, b), *given, second=False, tolerance=tolerance)
    check(lambda torch, x: functional(torch).layer_norm(x.t(), (3,)), given[0], second=False, tolerance=tolerance)


def test_layer_norm_statistics_and_errors():
    check(lambda torch, x: list(torch.native_layer_norm(x, (4,), None, None, 1e-5)), data(3, 4), second=False)
    check_error(lambda torch, x: functional(torch).layer_norm(x, (5,)), data(3, 4))
    check_error(lambda torch, x, w: functional(torch).layer_norm(x, (4,), w), data(3, 4), data(5))
    check_error(lambda torch, x: functional(torch).layer_norm(x, ()), data(3, 4))
    check_error(lambda torch, x, w: functional(torch).layer_norm(x, (4,), w), data(3, 4), data(4, dtype="float64"))


@pytest.mark.parametrize(("shape", "normalized"), [((2, 3), (3,)), ((2, 3, 4), (3, 4)), ((4,), (4,))])
def test_rms_norm(shape, normalized):
    x, weight = data(*shape, dtype="float64"), data(*normalized, dtype="float64", seed=1)
    check(lambda torch, x, w: functional(torch).rms_norm(x, normalized, w), x, weight, tolerance=1e-8)
    check(lambda torch, x: functional(torch).rms_norm(x, normalized, None, 0.1), x, tolerance=1e-8)
    check(lambda torch, x: functional(torch).rms_norm(x, normalized), data(*shape, dtype="bfloat16"), second=False,
          nodes=False)


# -- group, batch and instance norm ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "groups"), [((2, 4, 3), 2), ((2, 4, 3, 2), 4), ((2, 4), 2), ((3, 6, 2), 1)])
def test_group_norm(shape, groups):
    x = data(*shape, dtype="float64")
    weight, bias = data(shape[1], dtype="float64", seed=1), data(shape[1], dtype="float64", seed=2)
    check(lambda torch, x, w, b: functional(torch).group_norm(x, groups, w, b), x, weight, bias, tolerance=1e-7)
    check(lambda torch, x: functional(torch).group_norm(x, groups), x, tolerance=1e-7)
    check(lambda torch, x: functional(torch).group_norm(x, groups), data(*shape, dtype="bfloat16"), second=False,
          tolerance=0.1)


def test_group_norm_errors():
    check_error(lambda torch, x: functional(torch).group_norm(x, 3), data(3, 4))
    check_error(lambda torch, x, w: functional(torch).group_norm(x, 2, w), data(3, 4), data(3))


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2), (2, 3, 2, 2), (2, 3, 2, 2, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape, training):
    x, weight, bias = data(*shape, dtype="float64"), data(3, dtype="float64", seed=1), data(3, dtype="float64", seed=2)
    mean, variance = data(3, dtype="float64", seed=3), data(3, dtype="float64", low=0.5, high=2, seed=4)

    def run(torch, x, w, b, m, v):
        m, v = m.detach().clone(), v.detach().clone()
        made = torch.batch_norm(x, w, b, m, v, training, 0.1, 1e-5, False)
        return [made, m, v]

    check(run, x, weight, bias, mean, variance, tolerance=1e-7)
    check(lambda torch, x, m, v: run(torch, x, None, None, m, v), x, mean, variance, tolerance=1e-7,
          second=training)
    if training:
        check(lambda torch, x, w, b: torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-5, False), x, weight, bias,
              tolerance=1e-7)


def test_batch_norm_twice_before_backward():
    def run(torch, x, w, b):
        m, v = torch.zeros(3), torch.ones(3)
        first = torch.batch_norm(x, w, b, m, v, True, 0.1, 1e-5, False)
        second = torch.batch_norm(x * 2, w, b, m, v, True, 0.1, 1e-5, False)
        return [first + second, m, v]

    check(run, data(4, 3), data(3), data(3, seed=1), tolerance=2e-3)


def test_batch_norm_errors():
    check_error(lambda torch, x, m: torch.batch_norm(x, None, None, m, m, False, 0.1, 1e-5, False), data(3, 4), data(3))
    check_error(lambda torch, x, w: torch.batch_norm(x, w, None, None, None, True, 0.1, 1e-5, False), data(3, 4),
                data(3))
    check_error(lambda torch, x: torch.batch_norm(x, None, None, None, None, False, 0.1, 1e-5, False), data(3, 4))
    check_error(lambda torch, x: torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False), data(4))


@pytest.mark.parametrize("running", [True, False])
def test_instance_norm(running):
    def run(torch, x, w, b):
        m, v = (torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)) if running else (None, None)
        made = torch.instance_norm(x, w, b, m, v, True, 0.1, 1e-5, False)
        return [made, *([m, v] if running else [])]

    check(run, data(2, 3, 4, dtype="float64"), data(3, dtype="float64", seed=1), data(3, dtype="float64", seed=2),
          tolerance=1e-7)


# -- embedding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indices", [[0, 2, 2, 1], [[1, 1], [0, 4]], 3, []])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_embedding(indices, dtype):
    where = values(np.array(indices, dtype=np.int64), dtype)
    check(lambda torch, w, i: torch.embedding(w, i), data(5, 3), where)
    check(lambda torch, w, i: torch.embedding(w, i, 2), data(5, 3), where)
    check(lambda torch, w, i: torch.embedding(w, i, -1, True), data(5, 3), where, second=False)
    check(lambda torch, w, i: torch.embedding(w, i), data(5, 3, dtype="bfloat16"), where, second=False)


def test_embedding_in_a_graph():
    check(lambda torch, w, i: torch.embedding(w * w, i, 1).exp(), data(5, 3), values([[1, 0, 3], [3, 3, 1]], "int64"))


def test_embedding_renorm():
    def run(torch, w, i):
        table = w.detach().clone()
        made = torch.embedding_renorm_(table, i, 1.0, 2.0)
        assert made is table
        return table

    check(run, data(5, 3), values([0, 2, 2, 4], "int64"), grad=False)


def test_embedding_errors():
    for index in (5, -1):
        check_error(lambda torch, w, i: torch.embedding(w, i), data(5, 3), values([index], "int64"))
    check_error(lambda torch, w, i: torch.embedding(w, i), data(5, 3), values([1.0]))
    check_error(lambda torch, w, i: torch.embedding(w, i), data(5), values([1], "int64"))


def test_sparse_gradients():
    grads = []
    for torch in (ours, theirs):
        weight = make(torch, data(5, 3), True)
        torch.embedding(weight, torch.tensor([1, 3, 1]), -1, False, True).sum().backward()
        assert weight.grad.is_sparse
        grads.append(weight.grad.to_dense())
    assert_same(*grads, "the gradient")
