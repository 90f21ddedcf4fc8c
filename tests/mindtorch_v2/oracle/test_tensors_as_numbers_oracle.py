"""Tensors of one element in the place of a number: their value counts at the time of the call, on both runtimes."""

from __future__ import annotations

from typing import Any

import pytest
from harness import assert_same, ours, theirs

CALLS = {
    "add": lambda t, x, y, a: x.add(y, alpha=a),
    "add_": lambda t, x, y, a: x.clone().add_(y, alpha=a),
    "addcdiv": lambda t, x, y, a: x.addcdiv(y, y, value=a),
    "addcmul": lambda t, x, y, a: x.addcmul(y, y, value=a),
    "addmm": lambda t, x, y, a: t.addmm(x[:1], y[None], y[:, None], alpha=a, beta=a),
    "addmv": lambda t, x, y, a: t.addmv(x[:1], y[None], y, alpha=a, beta=a),
    "addr": lambda t, x, y, a: t.addr(t.zeros(3, 3), x, y, alpha=a),
    "baddbmm": lambda t, x, y, a: t.baddbmm(x[:1], y[None, None], y[None, :, None], alpha=a),
    "celu": lambda t, x, y, a: t.celu(-x, a),
    "elu": lambda t, x, y, a: t.nn.functional.elu(-x, a),
    "foreach": lambda t, x, y, a: t._foreach_add([x], [y], alpha=a)[0],
    "full": lambda t, x, y, a: y * t.full((3,), a, dtype=t.float32),
    "index_add": lambda t, x, y, a: x.index_add(0, t.tensor([0]), y[:1], alpha=a),
    "leaky_relu": lambda t, x, y, a: t.nn.functional.leaky_relu(-x, a),
    "nan_to_num": lambda t, x, y, a: t.nan_to_num(x * float("nan"), nan=a),
    "norm": lambda t, x, y, a: y.norm(a),
    "pad": lambda t, x, y, a: t.nn.functional.pad(x, (1, 0), value=a),
    "rsub": lambda t, x, y, a: t.rsub(x, y, alpha=a),
    "softplus": lambda t, x, y, a: t.nn.functional.softplus(x, a),
    "sub": lambda t, x, y, a: x.sub(y, alpha=a),
    "threshold": lambda t, x, y, a: t.threshold(x, a, a),
}


def results(torch: Any, call: Any, dtype: str) -> list[Any]:
    """Results and gradients with a number that is another one at the second call, and one more before backward."""
    x, y = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    number = torch.tensor(0.25, dtype=getattr(torch, dtype))
    made = [call(torch, x, y, number)]
    made.append(call(torch, x, y, number.fill_(0.5)))
    number.fill_(3.0)
    return [*made, *torch.autograd.grad([one.sum() for one in made], [x, y], allow_unused=True)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_the_value_at_the_time_of_the_call(name: str, dtype: str) -> None:
    got, want = (results(torch, CALLS[name], dtype) for torch in (ours, theirs))
    for number, (mine, other) in enumerate(zip(got, want, strict=True)):
        assert (mine is None) == (other is None)
        if other is not None:
            assert_same(mine, other, f"{name} {number}", 1e-5)
