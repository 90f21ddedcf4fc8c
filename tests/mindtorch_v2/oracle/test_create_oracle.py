"""Factories and conversions against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from both import same
from harness import assert_same, check, check_error, data, ours, theirs

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64"]

CALLS = {
    "zeros": lambda t: t.zeros(2, 3),
    "zeros tuple": lambda t: t.zeros((2, 3)),
    "zeros 0-d": lambda t: t.zeros(()),
    "ones": lambda t: t.ones(2, dtype=t.int32),
    "full": lambda t: t.full((2, 2), 7),
    "full f": lambda t: t.full((2,), 1.5),
    "full bool": lambda t: t.full((2,), True),
    "arange": lambda t: t.arange(5),
    "arange float": lambda t: t.arange(0, 1, 0.1),
    "arange down": lambda t: t.arange(5, 0, -2),
    "arange dtype": lambda t: t.arange(3, dtype=t.float64),
    "arange empty": lambda t: t.arange(0),
    "linspace": lambda t: t.linspace(0, 1, 7),
    "linspace 1": lambda t: t.linspace(2, 3, 1),
    "linspace int": lambda t: t.linspace(0, 10, 4, dtype=t.int64),
    "logspace": lambda t: t.logspace(0, 2, 5),
    "eye": lambda t: t.eye(3),
    "eye 2x4": lambda t: t.eye(2, 4),
    "zeros_like": lambda t: t.zeros_like(t.ones(2, 3)),
    "ones_like dtype": lambda t: t.ones_like(t.ones(2), dtype=t.int8),
    "full_like": lambda t: t.full_like(t.ones(2, 3), 4),
    "new_zeros": lambda t: t.ones(1, dtype=t.float64).new_zeros(2, 3),
    "new_ones": lambda t: t.ones(1).new_ones((2,)),
    "new_full": lambda t: t.ones(1, dtype=t.int32).new_full((2,), 9),
    "tensor list": lambda t: t.tensor([[1, 2], [3, 4]]),
    "tensor float": lambda t: t.tensor([1.5, 2]),
    "tensor bool": lambda t: t.tensor([True, False]),
    "tensor scalar": lambda t: t.tensor(3),
    "tensor empty": lambda t: t.tensor([]),
    "tensor complex": lambda t: t.tensor([1 + 2j]),
    "tensor numpy": lambda t: t.tensor(np.arange(3, dtype=np.int16)),
    "tensor of tensors": lambda t: t.tensor([t.tensor(1), t.tensor(2)]),
    "tensor numpy scalar": lambda t: t.tensor(np.float64(1.5)),
    "tensor mixed": lambda t: t.tensor([1, 2.5, True]),
    "as_tensor": lambda t: t.as_tensor(np.ones(2)),
    "from_numpy": lambda t: t.from_numpy(np.ones((2, 2), np.float32)),
    "scalar_tensor": lambda t: t.scalar_tensor(2.5),
    "empty_strided": lambda t: t.empty_strided((2, 3), (1, 2)).fill_(1),
    "asarray": lambda t: t.asarray([1, 2, 3]),
    "Tensor": lambda t: t.Tensor([1, 2]),
    "finfo": lambda t: t.finfo(t.float32).eps,
    "iinfo": lambda t: t.iinfo(t.int16).max,
}


@pytest.mark.parametrize("name", CALLS)
def test_factories(name):
    assert_same(CALLS[name](ours), CALLS[name](theirs), name)


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch warns about complex to real and complex half
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversions(source, target):
    given = data(5, dtype=source, low=-3, high=3)
    check(lambda torch, x: x.to(getattr(torch, target)), given, second=False)
    check(lambda torch, x: torch.zeros(5, dtype=getattr(torch, target)).copy_(x), given, grad=False)


def test_to_forms():
    for f in (lambda t, x: x.to("cpu"), lambda t, x: x.to(t.float64), lambda t, x: x.to(dtype=t.int32),
              lambda t, x: x.to("cpu", t.float16), lambda t, x: x.to(t.ones(1, dtype=t.float64)),
              lambda t, x: x.double(),
              lambda t, x: x.half(), lambda t, x: x.int(), lambda t, x: x.long(), lambda t, x: x.bool(),
              lambda t, x: x.type(t.int64), lambda t, x: x.type_as(t.ones(1).double()), lambda t, x: x.type()):
        check(f, data(3), second=False)
    x = ours.ones(2)
    assert x.to(ours.float32) is x
    assert x.to(ours.float32, copy=True) is not x


@pytest.mark.parametrize("call", [
    lambda t: t.zeros(-1),
    lambda t: t.arange(0, 5, -1),
    lambda t: t.arange(0, 1, 0),
    lambda t: t.tensor([[1], [2, 3]]),
    lambda t: t.tensor("a"),
    lambda t: t.tensor([None]),
    lambda t: t.ones(2).item(),
    lambda t: t.device("nowhere"),
    lambda t: t.ones(2).grad_fn.name(),
    lambda t: bool(t.ones(2)),
    lambda t: len(t.tensor(1)),
    lambda t: t.no_such_op,
    lambda t: t.ones(2).no_such_method,
    lambda t: t.from_numpy([1]),
    lambda t: t.ones(2, requires_grad=True).numpy(),
    lambda t: t.zeros(2, dtype=t.int64).requires_grad_(),
    lambda t: t.ones(2).to("cuda"),
    lambda t: t.empty(2, 2).to([3]),
])
def test_errors(call):
    check_error(lambda torch: call(torch), words=False)


def test_promotion_table():
    for a in DTYPES:
        for b in DTYPES:
            got = ours.promote_types(getattr(ours, a), getattr(ours, b))
            want = theirs.promote_types(getattr(theirs, a), getattr(theirs, b))
            assert str(got) == str(want), (a, b)
            for other in (2, 2.5, True):
                assert str(ours.result_type(ours.ones(2).to(getattr(ours, a)), other)) == str(
                    theirs.result_type(theirs.ones(2).to(getattr(theirs, a)), other)), (a, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_conversions(dtype):
    for torch_value, want in ((ours, theirs),):
        a = torch_value.tensor([[1, 0], [2, 3]]).to(getattr(torch_value, dtype))
        b = want.tensor([[1, 0], [2, 3]]).to(getattr(want, dtype))
        assert a.tolist() == b.tolist()
        assert a[1, 0].item() == b[1, 0].item()
        assert type(a[1, 0].item()) is type(b[1, 0].item())
        assert a.element_size() == b.element_size()
        assert repr(a) == repr(b)
        assert str(a.size()) == str(b.size())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 1), (2.3, 7.7), (-5, -3.3)])
def test_linspace_bit_by_bit(start, end, dtype):
    for steps in (2, 3, 28, 61, 1000):
        got, want = (t.linspace(start, end, steps, dtype=getattr(t, dtype)).tolist() for t in (ours, theirs))
        assert got == want, steps


FACTORIES = [
    lambda torch, **out: torch.zeros(2, 3, **out), lambda torch, **out: torch.ones(2, 3, **out),
    lambda torch, **out: torch.full((2, 3), 2.0, **out), lambda torch, **out: torch.eye(2, 3, **out),
    lambda torch, **out: torch.arange(6, **out), lambda torch, **out: torch.linspace(0, 1, 6, **out),
]


@pytest.mark.parametrize("factory", FACTORIES)
def test_factories_fill_what_they_are_given(factory):
    for make in (lambda torch: torch.empty(0), lambda torch: torch.empty(2, 3), lambda torch: torch.empty(3, 2).t(),
                 lambda torch: torch.empty(0, dtype=torch.float64), lambda torch: torch.empty(2, 3, dtype=torch.int64)):
        made = []
        for torch in (ours, theirs):
            out = make(torch)
            assert factory(torch, out=out) is out
            made.append((str(out.dtype), out.shape, out.stride(), out.tolist()))
        assert made[0] == made[1]
    for torch in (ours, theirs):
        with pytest.raises(RuntimeError, match="does not match dtype of out"):
            factory(torch, out=torch.empty(6), dtype=torch.int64)
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            factory(torch, out=torch.empty(6, requires_grad=True))


def test_tensors_that_are_given_move_to_the_device_of_a_context():
    def program(torch):
        here = torch.ones(1)
        with torch.device("meta"):
            return torch.randperm(3), torch.as_tensor(here), torch.asarray(here), torch.as_tensor(here, device="cpu")

    same(program)
