"""Corners of ops that a sweep over PyTorch's sample inputs found."""

import re
import warnings

import pytest
import torch as pytorch

import mindtorch_v2

PROGRAMS = """
[one.dtype for one in (t.ops.aten.native_dropout_backward(t.ones(2).to(k), t.ones(2) > 0, 2.0) for k in kinds)]
t.ops.aten.native_dropout_backward(t.tensor([3, 4]), t.tensor([True, False]), 2.5)
t.histogramdd(points, [t.tensor([0.5, 0.0]), t.tensor([0.0, 1.0])])[0]
t.histogramdd(points, [t.tensor([0.2, 0.5, 0.4, 1]), t.tensor([0.0, 1.0])], weight=t.tensor([1.0, 2, 3]))[0]
t.histogramdd(points, [t.tensor([0.2, 0.5, 0.4, 1]), t.tensor([0.0, 1.0])], density=True)[0]
F.fractional_max_pool3d(t.ones(0, 1, 4, 5, 4), (2, 2, 1), output_size=2).shape
F.fractional_max_pool2d(t.ones(0, 1, 4, 5), 2, output_size=2).shape
t.polygamma(1, t.ones(3, device="meta")), t.polygamma(2, t.ones(3, dtype=t.int64, device="meta"))
t.lu(square, out=(t.zeros(0), t.zeros(0, dtype=t.int32)))
t.lu(square, get_infos=True, out=(t.zeros(0), t.zeros(0, dtype=t.int32), t.zeros(0, dtype=t.int32)))
t.lu(square, out=(t.zeros(3, 3).double(), t.zeros(3)))
t.lu(square, out=(t.zeros(0),))
t.lu(square, out=t.zeros(3))
[t.masked.argmax(square, dim, keepdim=True).shape for dim in (None, 0)]
[t.hash_tensor(square, dim, keepdim=True) for dim in (None, 0, (0, 1))]
t.hash_tensor(t.ones(0, 3), 0)
t.hash_tensor(t.ones(0, 3))
t.hash_tensor(t.ones(0, 3), 1)
[f(t.ones(2, 2, dtype=t.uint8), 0, out=t.empty(2, dtype=k)) for f in (t.all, t.any) for k in (t.bool, t.uint8)]
t.all(t.ones(2, 2), 0, out=t.empty(2, dtype=t.int64))
t.histogram(t.ones(3), t.tensor([0.0, 2.0]), range=(0.0, 1.0))
t._int_mm(t.ones(2, 8).to(t.int8), t.ones(8, 8).to(t.int8), out=t.empty(2, 8))
t._foreach_pow(t.tensor(2.0), [t.arange(3.0)])
t._foreach_norm([t.ones(2), t.empty(0)], float("inf"))
[t.polygamma(n, t.tensor([-4988429.7, -100.25, -31.5, -29.9, 3.3], dtype=t.float64)) for n in (1, 2, 3, 4)]
[f(t.tensor([float("inf"), -float("inf"), 5.0])) for f in (t.i0, t.special.i1, t.special.i0e)]
[t._refs.sum(square, keepdim=True), t._refs.mean(square, keepdim=True), t._refs.prod(square, [0, 1], True)]
[t._refs.prod(square, dim) for dim in (None, (), (1,), 0)], t._refs.prod(t.tensor(3), None)
t._refs.prod(square, (0, 0))
t._refs.isinf(square, out=t.empty(2, 2)), t._refs.nn.functional.relu(-square, out=t.empty(2, 2))
t._refs.true_divide(square, 2, out=t.empty(2, 2, dtype=t.float64)), t._refs.add(square, 2, alpha=3)
t._refs.exp(square, out=t.empty(2, 2, dtype=t.int64))
t._refs.frexp(square, out=(t.empty(2, 2), t.empty(2, 2, dtype=t.int32)))[1]
str(t.backends.cuda.preferred_linalg_library()), str(t.backends.cuda.preferred_blas_library())
t.backends.cuda.preferred_linalg_library("magma")
t.backends.cuda.preferred_linalg_library("other")
t.backends.cuda.preferred_linalg_library(3)
""".strip().splitlines()


def answer(torch, program):
    """What a program prints on one runtime, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.sub(r", device='\w+:0'", "", repr(eval(program, {
                "t": torch, "F": torch.nn.functional, "points": torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.9, 0.95]]),
                "square": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
                "kinds": (torch.int64, torch.bool, torch.float64, torch.bfloat16)})))
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("program", PROGRAMS)
def test_corners(program):
    assert answer(mindtorch_v2, program) == answer(pytorch, program)
