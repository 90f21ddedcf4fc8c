"""Hooks of modules: forward, backward and global ones. Nothing here needs PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.modules import _hooks
from mindtorch_v2.nn.modules import module as module_file


class Scale(nn.Module):
    """`x * weight + shift`."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) * 2)
        self.register_buffer("shift", torch.zeros(size))

    def forward(self, x: Any, *, plus: float = 0.0) -> Any:
        return x * self.weight + self.shift + plus


class Pair(nn.Module):
    """Two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = Scale()

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))


def test_without_hooks_call_goes_straight_to_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hooks.Flag, "raised", False)
    monkeypatch.setattr(nn.Module, "_call_impl", None)
    assert Scale()(torch.ones(2)).tolist() == [2.0, 2.0]


def test_forward_hooks() -> None:
    module = Scale()
    seen: list[Any] = []
    first = module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    second = module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"plus": kwargs["plus"] + 1.0}), with_kwargs=True, prepend=True)
    third = module.register_forward_hook(lambda m, args, out: out * 10)
    fourth = module.register_forward_hook(
        lambda m, args, kwargs, out: seen.append((args[0].tolist(), kwargs, out.tolist())), with_kwargs=True)
    assert module(torch.zeros(2), plus=2.0).tolist() == [50.0, 50.0]
    assert seen == [([1.0, 1.0], {"plus": 3.0}, [50.0, 50.0])]
    for handle in (first, second, third, fourth):
        handle.remove()
    assert module(torch.ones(2)).tolist() == [2.0, 2.0]
    assert not module._forward_pre_hooks_with_kwargs
    assert not module._forward_hooks_with_kwargs


def test_prepend_and_handle_as_context() -> None:
    module = Scale()
    order: list[int] = []
    module.register_forward_hook(lambda m, a, o: order.append(1))
    with module.register_forward_hook(lambda m, a, o: order.append(0), prepend=True):
        module(torch.ones(2))
    module(torch.ones(2))
    assert order == [0, 1, 1]


class Failing(nn.Module):
    """Always raises."""

    def forward(self, x: Any) -> Any:
        raise ValueError("no")


def test_always_call() -> None:
    module = Failing()
    seen: list[str] = []
    module.register_forward_hook(lambda m, a, o: seen.append("plain"))
    module.register_forward_hook(lambda m, a, o: seen.append("always"), always_call=True)
    with pytest.raises(ValueError, match="no"):
        module(1)
    assert seen == ["always"]


def test_hooks_put_directly_into_the_table_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hooks.Flag, "raised", False)
    module = Scale()
    module._forward_hooks[-1] = lambda m, a, o: o + 1
    assert module(torch.ones(2)).tolist() == [3.0, 3.0]
    monkeypatch.setattr(_hooks.Flag, "raised", False)
    assert copy.deepcopy(module)(torch.ones(2)).tolist() == [3.0, 3.0]


def test_global_hooks() -> None:
    seen: list[str] = []
    with module_file.register_module_forward_pre_hook(lambda m, a: seen.append("pre " + type(m).__name__)), \
            module_file.register_module_forward_hook(lambda m, a, o: seen.append("post " + type(m).__name__)):
        Pair()(torch.ones(2))
    Pair()(torch.ones(2))
    assert seen == ["pre Pair", "pre Scale", "post Scale", "pre Scale", "post Scale", "post Pair"]
    with module_file.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)):
        Scale()
    assert seen[-1] == "weight"


def test_full_backward_hooks_see_and_replace_gradients() -> None:
    module = Scale()
    seen: list[Any] = []

    def hook(m: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 100,)

    module.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 3,))
    module.register_full_backward_hook(hook)
    x = torch.ones(2, requires_grad=True)
    y = module(x)
    assert y.grad_fn.name() == "BackwardHookFunctionBackward"
    y.sum().backward()
    assert seen == [([6.0, 6.0], [3.0, 3.0])]
    assert x.grad.tolist() == [600.0, 600.0]
    assert module.weight.grad.tolist() == [3.0, 3.0]


def test_full_backward_hook_without_input_gradients() -> None:
    module = Scale()
    seen: list[Any] = []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    loss = module(torch.ones(2)).sum()
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        loss.backward()
    assert seen == [((None,), [1.0, 1.0])]


def test_backward_hook_kinds_do_not_mix() -> None:
    module = Scale()
    module.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        module.register_backward_hook(lambda *a: None)
    old = Scale()
    seen: list[Any] = []
    old.register_backward_hook(lambda m, gi, go: seen.append(go[0].tolist()))
    with pytest.warns(FutureWarning, match="multiple autograd Nodes"):
        old(torch.ones(2, requires_grad=True)).sum().backward()
    assert seen == [[1.0, 1.0]]


def test_wrong_number_of_replaced_gradients() -> None:
    module = Scale()
    module.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="got 2, but expected 1"):
        module(torch.ones(2, requires_grad=True)).sum().backward()


def test_an_error_in_an_always_called_hook_does_not_hide_the_first() -> None:
    module = Failing()

    def hook(m: Any, args: Any, output: Any) -> None:
        raise KeyError("later")

    module.register_forward_hook(hook, always_call=True)
    with pytest.warns(UserWarning, match="silenced as another error"), pytest.raises(ValueError, match="no"):
        module(1)


class Named(nn.Module):
    """Returns a dictionary."""

    def forward(self, x: Any) -> Any:
        return {"out": x * 2}


def test_backward_hooks_need_tensors_as_output() -> None:
    module = Named()
    module.register_full_backward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        module(torch.ones(2, requires_grad=True))
