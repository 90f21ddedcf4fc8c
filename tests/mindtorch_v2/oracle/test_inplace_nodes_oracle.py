"""In-place forms, and forms with numbers, that have nodes of their own in PyTorch's graph: same node, same gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness import ours, theirs

pytestmark = pytest.mark.usefixtures("walk")

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "leaky_relu_": lambda t, x: t.nn.functional.leaky_relu_(x, 0.2),
    "elu_": lambda t, x: t.nn.functional.elu_(x, 1.5),
    "selu_": lambda t, x: t.selu_(x),
    "t_": lambda t, x: x.t_(),
    "transpose_": lambda t, x: x.transpose_(0, 1),
    "swapaxes_": lambda t, x: x.swapaxes_(0, 1),
    "unsqueeze_": lambda t, x: x.unsqueeze_(1),
    "squeeze_": lambda t, x: x.squeeze_(),
    "squeeze_ one": lambda t, x: x.squeeze_(1),
    "squeeze_ two": lambda t, x: x.squeeze_((0, 1)),
    "as_strided_": lambda t, x: x.as_strided_((2, 2), (1, 2)),
    "fill_ number": lambda t, x: x.fill_(2.0),
    "fill_ tensor": lambda t, x: x.fill_(t.tensor(2.0)),
    "div rounded": lambda t, x: t.div(x, 0.5, rounding_mode="floor"),
    "div_ rounded": lambda t, x: x.div_(0.5, rounding_mode="trunc"),
    "eq_": lambda t, x: x.eq_(t.zeros(4, 1)),
    "ne_": lambda t, x: x.ne_(x * 1),
    "lt_": lambda t, x: x.lt_(t.zeros(1)),
    "less_equal_": lambda t, x: x.less_equal_(t.zeros(1)),
    "gt_": lambda t, x: x.gt_(t.zeros(1)),
    "ge_": lambda t, x: x.ge_(t.zeros(1, requires_grad=True)),
    "conj_physical_": lambda t, x: x.conj_physical_(),
}


@pytest.mark.parametrize("name", CASES)
def test_node_and_gradient(name: str) -> None:
    def run(t: Any) -> tuple[str, list[Any], list[Any]]:
        x = t.linspace(-2, 2, 4).reshape(4, 1).requires_grad_()
        made = CASES[name](t, x * 1)
        made.backward(t.arange(1.0, made.numel() + 1).reshape(made.shape))
        return made.grad_fn.name(), made.tolist(), x.grad.tolist()

    got, want = run(ours), run(theirs)
    assert got[0] == want[0]
    for mine, other in zip(got[1:], want[1:]):
        assert ours.tensor(mine).shape == ours.tensor(other).shape
        assert ours.tensor(mine).allclose(ours.tensor(other), atol=1e-6)


@pytest.mark.parametrize("name", ["eq_", "gt_", "less_equal_", "conj_physical_"])
def test_leaves_are_refused(name: str) -> None:
    for t in (ours, theirs):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            CASES[name](t, t.ones(4, 1, requires_grad=True))


@pytest.mark.parametrize("name", ["leaky_relu_", "elu_"])
def test_negative_slopes_are_refused_in_backward(name: str) -> None:
    """The result, which replaces the input, does not tell the input's sign."""
    for t in (ours, theirs):
        x = t.ones(3, requires_grad=True)
        made = getattr(t.nn.functional, name)(x * 1, -1.0)
        with pytest.raises(RuntimeError, match="negative slope which is not supported"):
            made.sum().backward()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_truth(count: int) -> None:
    def run(t: Any) -> Any:
        try:
            return bool(t.ones(count)), t.is_nonzero(t.zeros(count)), t.ones(count).is_nonzero()
        except RuntimeError as error:
            return str(error)

    assert run(ours) == run(theirs)


CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mul_ number": lambda t, x, y: x.mul_(3),
    "mul_ constant": lambda t, x, y: x.mul_(y.detach()),
    "mul_ leaf": lambda t, x, y: x.mul_(y),
    "mul_ view": lambda t, x, y: x.mul_(y[:]),
    "mul_ view of what gets a history": lambda t, x, y: x.mul_(view_of_later(t, y)),
    "div_ number": lambda t, x, y: x.div_(3),
    "div_ leaf": lambda t, x, y: x.div_(y),
    "addcmul_": lambda t, x, y: x.addcmul_(y, y),
    "lerp_": lambda t, x, y: x.lerp_(y, 0.5),
    "atan2_": lambda t, x, y: x.atan2_(y.detach()),
}


def view_of_later(t: Any, y: Any) -> Any:
    base = t.ones(4)
    view = base[:]
    base.mul_(y)
    return view


@pytest.mark.parametrize("name", CHANGES)
def test_the_value_before_is_copied_only_for_a_gradient(name: str) -> None:
    def run(t: Any) -> int:
        y = t.linspace(0.5, 2, 4).requires_grad_()
        product = t.linspace(1, 2, 4).requires_grad_() * 2
        with t.profiler.profile() as prof:
            CHANGES[name](t, product, y)
        return sum(event.name == "aten::clone" for event in prof.events())

    assert run(ours) == run(theirs)


@pytest.mark.parametrize("name", CHANGES)
def test_gradients_of_a_change(name: str) -> None:
    def run(t: Any) -> list[Any]:
        x, y = (t.linspace(begin, 2, 4).requires_grad_() for begin in (1.0, 0.5))
        made = CHANGES[name](t, x * 2, y)
        return [None if g is None else [round(v, 4) for v in g.tolist()]
                for g in t.autograd.grad(made.sum(), (x, y), allow_unused=True)]

    assert run(ours) == run(theirs)
