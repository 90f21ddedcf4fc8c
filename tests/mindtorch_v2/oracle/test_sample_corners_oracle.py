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
