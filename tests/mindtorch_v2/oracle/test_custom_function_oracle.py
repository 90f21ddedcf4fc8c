"""Custom functions and tangents: what `jvp` is given and may return, defaults of forward, gradients made of zeros."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("walk")

pytest.importorskip("torch")


def function_class(torch: Any, **methods: Any) -> Any:
    return type("Made", (torch.autograd.Function,), {name: staticmethod(one) for name, one in methods.items()})


def dual(torch: Any, function: Any, *args: Any) -> Any:
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        x = ad.make_dual(torch.arange(4.0), torch.arange(4.0) + 1)
        return ad.unpack_dual(function(x, *args)).tangent.tolist()


def tensors_without_a_tangent_get_zeros(torch: Any) -> Any:
    made = function_class(torch, forward=lambda ctx, x, n, y: x * n + y, jvp=lambda ctx, x, n, y: x * 2 + y * 5)
    return dual(torch, lambda x: made.apply(x, 2, torch.ones(4)))


def none_if_not_materialized(torch: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x + y

    made = function_class(torch, forward=forward, jvp=lambda ctx, x, y: x * (3 if y is None else 4))
    return dual(torch, lambda x: made.apply(x, torch.ones(4)))


def saved_for_forward(torch: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y)
        ctx.save_for_forward(x, y)
        return x * y

    made = function_class(torch, forward=forward,
                          jvp=lambda ctx, x, y: x * ctx.saved_tensors[1] + y * ctx.saved_tensors[0])
    return dual(torch, lambda x: made.apply(x, torch.full((4,), 3.0)))


def saved_for_backward_only(torch: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.clone()

    made = function_class(torch, forward=forward, jvp=lambda ctx, x: x + len(ctx.saved_tensors))
    return dual(torch, made.apply)


def no_jvp(torch: Any) -> Any:
    made = function_class(torch, forward=lambda ctx, x: x.clone(), backward=lambda ctx, g: g)
    return dual(torch, made.apply)


def changed_in_place(torch: Any, keep: bool) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    made = function_class(torch, forward=forward, jvp=lambda ctx, x: x.mul_(2) if keep else x * 2)
    return dual(torch, lambda x: made.apply(x.clone()))


def view_of_the_input(torch: Any, how: str) -> Any:
    def jvp(ctx: Any, x: Any) -> Any:
        part = x.narrow(0, 0, 2)
        return {"view": part, "copy": part.clone(), "other": part.clone().view_as(part)}[how]

    made = function_class(torch, forward=lambda ctx, x: x.narrow(0, 0, 2), jvp=jvp)
    return dual(torch, made.apply)


def tangent_with_a_tangent(torch: Any) -> Any:
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        ad.make_dual(torch.ones(2), ad.make_dual(torch.ones(2), torch.ones(2)))


def tangent_that_requires_grad(torch: Any) -> Any:
    ad, tangent = torch.autograd.forward_ad, torch.ones(2, requires_grad=True)
    with ad.dual_level():
        ad.unpack_dual(ad.make_dual(torch.full((2,), 3.0), tangent) ** 2).tangent.sum().backward()
    return tangent.grad.tolist()


def defaults_of_forward(torch: Any) -> Any:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.inputs = inputs

    made = function_class(torch, forward=lambda x, y=3, z=4: x * y, setup_context=setup_context,
                          backward=lambda ctx, g: (g * ctx.inputs[1], None, None))
    x = torch.ones(2, requires_grad=True)
    return [[one.tolist() for one in torch.autograd.grad(made.apply(x, *more).sum(), x)] for more in ((), (5,), (5, 6))]


def zeros_that_can_be_differentiated(torch: Any) -> Any:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    made = []
    for create_graph in (False, True):
        found = torch.autograd.grad((x * 2).sum(), (x, y), create_graph=create_graph, materialize_grads=True)
        made.append([(one.tolist(), one.requires_grad) for one in found[1:]])
    return made


def backward_outside_of_mutation(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        made = (x ** 2).sum()
    made.backward()


CASES = [(f, ()) for f in (
    tensors_without_a_tangent_get_zeros, none_if_not_materialized, saved_for_forward, saved_for_backward_only, no_jvp,
    tangent_with_a_tangent, tangent_that_requires_grad, defaults_of_forward, zeros_that_can_be_differentiated,
    backward_outside_of_mutation)]
CASES += [(changed_in_place, (keep,)) for keep in (True, False)]
CASES += [(view_of_the_input, (how,)) for how in ("view", "copy", "other")]


def outcome(name: str, case: Any, arguments: tuple[Any, ...]) -> Any:
    torch = importlib.import_module(name)
    importlib.import_module(f"{name}.autograd.forward_ad")
    try:
        return case(torch, *arguments)
    except Exception as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, when it loads forward mode
@pytest.mark.parametrize(("case", "arguments"), CASES, ids=[f"{f.__name__}{a or ''}" for f, a in CASES])
def test_as_pytorch(case: Any, arguments: tuple[Any, ...]) -> None:
    assert outcome("mindtorch_v2", case, arguments) == outcome("torch", case, arguments)


@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_saved_is_checked_when_it_is_recorded(recorded: bool) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, "text")
        return x * 2

    found = []
    for name in ("mindtorch_v2", "torch"):
        torch = importlib.import_module(name)
        made = function_class(torch, forward=forward)
        try:
            found.append(str(made.apply(torch.ones(2, requires_grad=recorded)).tolist()))
        except TypeError as error:
            found.append(str(error))
    assert found[0] == found[1]
