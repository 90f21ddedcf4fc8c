"""How functions begin to ask for overrides, and stop."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _faces as faces


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """Other tests run without functions that ask."""
    faces.FACES.for_good = False
    faces.FACES.disarm()
    yield
    faces.FACES.for_good = False
    faces.FACES.disarm()
    assert not faces.FACES.armed


class Kept(torch.Tensor):
    """At module level, so that it can be pickled."""


def test_copies_of_a_subclass() -> None:
    x = torch.ones(2).as_subclass(Kept)
    for made in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is Kept
        assert made.tolist() == [1.0, 1.0]


def test_functions_have_their_own_code_again_after_the_last_mode() -> None:
    x = torch.ones(2)
    x.add(x)  # compiled at its first call, and then the same function as torch.add
    code, method = torch.add.__code__, torch.Tensor.add
    with torch.overrides.BaseTorchFunctionMode():
        assert torch.add.__code__ is not code
        assert "alpha" in inspect.signature(torch.add).parameters
        assert (x.mul(x) + x).tolist() == [2.0, 2.0]  # a method that is compiled while functions ask
    assert torch.add.__code__ is code
    assert torch.Tensor.add is method
    assert x.mul(x).tolist() == [1.0, 1.0]


def test_a_class_that_is_only_defined_changes_nothing() -> None:
    class Never(torch.Tensor):
        pass

    assert not faces.FACES.armed
    torch.ones(1).as_subclass(Never)
    assert faces.FACES.armed


def test_frames_of_functions_that_ask_can_be_looked_into() -> None:
    """Debuggers and tracebacks read their code, which replaces code with a closure."""
    depths = []

    class Looking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            frame, depth = inspect.currentframe(), 0
            while frame is not None:
                depth += len(frame.f_locals) >= 0
                frame = frame.f_back
            depths.append(depth)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2, 2).as_subclass(Looking)
    made = [torch.add(x, x), x + x, torch.linalg.norm(x), torch.norm(x), torch.nn.functional.relu(x), x.sum(dim=0)]
    assert [type(one) for one in made] == [Looking] * 6
    assert len(depths) == 6


def test_every_function_of_the_table_for_tests_can_be_taken_over() -> None:
    """As PyTorch's own tests do: each function is called with objects that take over, and answers with -1."""
    table = torch.overrides.get_testing_overrides()
    seen: list[object] = []

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return table[func](*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return table[func](*args, **(kwargs or {}))

    wrong = []
    for function, override in table.items():
        spec = inspect.getfullargspec(override)
        count = len(spec.args) - len(spec.defaults or ()) + (2 if spec.varargs else 0)
        method = torch.overrides.is_tensor_method_or_property(function)
        result = function(*[Sub([5]) if method else Like() for _ in range(count)])
        if result not in (None, -1) or not (method or function in seen):
            wrong.append(torch.overrides.resolve_name(function))
    assert len(table) > 1300
    assert not wrong
    assert not table.keys() & torch.overrides.get_ignored_functions()
