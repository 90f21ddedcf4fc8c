"""Classes with `__torch_dispatch__`: which ops they get, what happens to their answers, what a profile shows."""

from __future__ import annotations

import copy
import gc
import importlib
import re
from typing import Any

import pytest
from both import ours, outcome, rows, same

import mindtorch_v2.utils._python_dispatch
import mindtorch_v2.utils._pytree  # noqa: F401  (tests take both from the module)
from mindtorch_v2._dispatch.observer import HOOK


def kinds(torch: Any, log: list[str]) -> dict[str, Any]:
    """Three classes as programs have them, which note what they are given."""
    tree_map = importlib.import_module(f"{torch.__name__}.utils._pytree").tree_map

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype,
                                                       device=inner.device, requires_grad=requires_grad)
            made.held = inner
            return made

        __torch_function__ = torch._C._disabled_torch_function_impl

        def __repr__(self):
            return f"Wrapper({self.held.tolist()})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(f"{func} {[one.__name__ for one in types]} {sorted(kwargs or {})}")
            given = tree_map(lambda one: one.held if isinstance(one, Wrapper) else one, (args, kwargs or {}))
            return tree_map(lambda one: cls(one) if isinstance(one, torch.Tensor) else one, func(*given[0], **given[1]))

    class Noting(torch.Tensor):
        __slots__ = ["held"]

        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, layout=inner.layout,
                                                       device=inner.device, requires_grad=requires_grad)
            made.held = inner.detach() if requires_grad else inner
            return made

        def __repr__(self):
            return super().__repr__(tensor_contents=f"{self.held}")

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            given = tree_map(lambda one: one.held if isinstance(one, Noting) else one, (args, kwargs or {}))
            made = func(*given[0], **given[1])
            log.append(str(func))
            return tree_map(lambda one: Noting(one) if isinstance(one, torch.Tensor) else one, made)

    class Filled(torch.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            return torch.Tensor._make_subclass(cls, inner, requires_grad)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    return {"Wrapper": Wrapper, "Noting": Noting, "Filled": Filled}


def shown(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        inner = getattr(value, "held", None)
        node = value.grad_fn
        contents = None if inner is None else [round(one, 3) for one in inner.flatten().tolist()]
        return (type(value).__name__, tuple(value.shape), str(value.dtype), value.requires_grad,
                None if node is None else node.name(), contents, inner is not None and inner.requires_grad)
    if isinstance(value, (list, tuple)):
        return [shown(torch, one) for one in value]
    return value


def data(torch: Any) -> Any:
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]])


PROGRAMS = [
    lambda torch, x: x + x, lambda torch, x: x + 1, lambda torch, x: 1 + x, lambda torch, x: data(torch) + x,
    lambda torch, x: torch.nn.functional.linear(x, x), lambda torch, x: x @ x, lambda torch, x: x.sum(),
    lambda torch, x: x.view(-1), lambda torch, x: x.t(), lambda torch, x: x.split(1), lambda torch, x: x.max(0),
    lambda torch, x: torch.cat([x, x]), lambda torch, x: x[0], lambda torch, x: x[:, 1],
    lambda torch, x: x[torch.tensor([0])], lambda torch, x: torch.softmax(x, -1), lambda torch, x: torch.relu(x),
    lambda torch, x: torch.zeros_like(x), lambda torch, x: x.clone(), lambda torch, x: x.detach(),
    lambda torch, x: x.add_(1), lambda torch, x: x.mul_(2) is x, lambda torch, x: (x.add_(1)._version, x._version),
    lambda torch, x: x.__setitem__(0, 5.0), lambda torch, x: x.to(torch.float64),
    lambda torch, x: x.to(torch.float32) is x, lambda torch, x: x.double(), lambda torch, x: x.contiguous() is x,
    lambda torch, x: x.sum().item(), lambda torch, x: bool(x[0, 0] == 5), lambda torch, x: list(x),
    lambda torch, x: len(x), lambda torch, x: x == x, lambda torch, x: torch.allclose(x, x),
    lambda torch, x: torch.where(x > 2, x, x), lambda torch, x: torch.nn.functional.layer_norm(x, [2]),
    lambda torch, x: torch.nn.functional.embedding(torch.tensor([0]), x), lambda torch, x: x.new_zeros(2),
    lambda torch, x: torch.nn.functional.conv2d(x[None, None], x[None, None]), lambda torch, x: torch.full_like(x, 2.0),
    lambda torch, x: (x.dim(), x.numel(), x.stride(), x.is_contiguous(), str(x.device), x.is_leaf, x.element_size()),
    lambda torch, x: x.data, lambda torch, x: x.numpy(), lambda torch, x: x.tolist(),
    lambda torch, x: x.requires_grad_() * 2, lambda torch, x: torch.nn.Parameter(x),
    lambda torch, x: isinstance(torch.nn.Parameter(x), torch.nn.Parameter),
    lambda torch, x: torch.nn.functional.dropout(x, 0.0), lambda torch, x: torch.nn.functional.gelu(x)]
WITH_GRADIENTS = [
    lambda torch, x: x * x, lambda torch, x: x.view(-1), lambda torch, x: x.split(1), lambda torch, x: x.sigmoid(),
    lambda torch, x: (x * 2).add_(1), lambda torch, x: (x * 2).mul_(x), lambda torch, x: x.add_(1),
    lambda torch, x: torch.no_grad()(lambda: x * 2)(), lambda torch, x: torch.autograd.grad((x * x).sum(), x),
    lambda torch, x: torch.autograd.grad(torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0].sum(), x)]
LOSSES = [
    lambda torch, x: (x * x).sum(), lambda torch, x: (x.sigmoid() * 2).sum(),
    lambda torch, x: torch.softmax(x, -1).sum(), lambda torch, x: (x @ x).sum(), lambda torch, x: x.view(-1)[1:].sum(),
    lambda torch, x: (x + x.sum()).mean(), lambda torch, x: x.tanh().pow(2).sum(),
    lambda torch, x: torch.nn.functional.linear(x, x, x[0]).relu().sum(), lambda torch, x: (x * 2).mul_(x).sum(),
    lambda torch, x: (x * 3).add_(x).sum(), lambda torch, x: torch.cat([x, x * 2]).sum(),
    lambda torch, x: (x + 1 + x * 2 + x * 3).sum()]
NAMES = ["Wrapper", "Noting", "Filled"]


def run(torch: Any, name: str, program: Any, requires_grad: bool = False) -> Any:
    log: list[str] = []
    x = kinds(torch, log)[name](data(torch), requires_grad)
    result = outcome(lambda: shown(torch, program(torch, x)), 50)
    return [result, log, getattr(x, "held", None)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_class_is_given_ops_on_its_instances(number: int, name: str) -> None:
    same(lambda torch: run(torch, name, PROGRAMS[number]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(len(WITH_GRADIENTS)))
def test_what_a_class_answers_has_a_history(number: int, name: str) -> None:
    same(lambda torch: run(torch, name, WITH_GRADIENTS[number], True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(len(LOSSES)))
def test_backward_runs_through_a_class(number: int, name: str) -> None:
    def program(torch: Any, x: Any) -> Any:
        LOSSES[number](torch, x).backward()
        return x.grad

    same(lambda torch: run(torch, name, program, True))


def test_saved_results_of_several_outputs_are_of_the_class() -> None:
    """PyTorch does not detach the weight that the loss saves, so the ops are not compared."""
    def program(torch: Any) -> Any:
        log: list[str] = []
        x = kinds(torch, log)["Wrapper"](data(torch), True)
        torch.nn.functional.cross_entropy(x, torch.tensor([0, 1])).backward()
        return shown(torch, x.grad)

    same(program)


def test_a_step_of_an_optimizer() -> None:
    def program(torch: Any) -> Any:
        log: list[str] = []
        p = torch.nn.Parameter(kinds(torch, log)["Wrapper"](data(torch)))
        optimizer = torch.optim.SGD([p], 0.1)
        (p * p).sum().backward()
        optimizer.step()
        return [shown(torch, p), log]

    same(program)


def test_a_module_knows_a_parameter_of_a_class() -> None:
    def program(torch: Any) -> Any:
        module = torch.nn.Linear(2, 2)
        module.weight = torch.nn.Parameter(kinds(torch, [])["Wrapper"](data(torch)))
        module.bias = torch.nn.Parameter(torch.zeros(2))
        made = module(data(torch))
        return [sorted(dict(module.named_parameters())), shown(torch, made)]

    same(program)


def test_a_deep_copy_is_a_clone() -> None:
    same(lambda torch: run(torch, "Wrapper", lambda torch, x: copy.deepcopy(x)))


def test_a_mode_is_given_the_classes_too() -> None:
    def program(torch: Any) -> Any:
        log: list[str] = []

        class Mode(importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                log.append(f"mode {func} {[one.__name__ for one in types]}")
                return func(*args, **(kwargs or {}))

        kind = kinds(torch, log)["Wrapper"]
        with Mode():
            made = kind(data(torch)) + 1
        return [shown(torch, made), log]

    same(program)


def test_who_answers_first_and_when_nobody_does() -> None:
    def program(torch: Any) -> Any:
        base = kinds(torch, [])["Wrapper"]

        class Derived(base):
            pass

        class Silent(base):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        silent = Silent(data(torch))
        return [type(base(data(torch)) + Derived(data(torch))).__name__, type(silent + base(data(torch))).__name__,
                outcome(lambda: torch.add(silent, 1)), outcome(lambda: silent + 1)]

    same(program)


def test_what_cannot_be_made() -> None:
    def program(torch: Any) -> Any:
        class Plain(torch.Tensor):
            pass

        return [outcome(lambda: torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))),
                outcome(lambda: torch.Tensor._make_wrapper_subclass(Plain, (2,)))]

    same(program)


def test_text() -> None:
    def program(torch: Any) -> Any:
        kind = kinds(torch, [])["Noting"]
        return [repr(kind(data(torch))), repr(kind(data(torch), True)), repr(kind(data(torch), True) * 1)]

    same(program)


def test_ops_do_not_ask_when_no_instance_lives() -> None:
    gc.collect()  # what failed tests keep alive
    x = kinds(ours, [])["Wrapper"](data(ours))
    assert HOOK["TAP"] is not None
    del x
    assert HOOK["TAP"] is None
    assert not HOOK["OBSERVING"]


INNER = re.compile("resolve_conj|as_strided|fill_")


@pytest.mark.parametrize("number", range(4))
def test_rows(number: int) -> None:
    def program(torch: Any) -> Any:
        kind = kinds(torch, [])["Wrapper"]
        x, w = kind(data(torch)), kind(data(torch), True)
        run = [lambda: x + x, lambda: torch.nn.functional.linear(x, x), lambda: x.add_(x),
               lambda: (w * 2).sum().backward()][number]
        return rows(torch, run, lambda name: not INNER.search(name))

    found = same(program)
    assert any("PythonSubclass" in str(row) for row in found)


@pytest.mark.parametrize("number", range(4))
def test_rows_of_modes(number: int) -> None:
    def program(torch: Any) -> Any:
        class Mode(importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        x, w = data(torch), data(torch).requires_grad_()
        run = [lambda: x + x, lambda: torch.nn.functional.linear(x, w), lambda: x.add_(x),
               lambda: torch.ones(2)][number]

        def inside() -> None:
            with Mode(), Mode():
                run()

        return rows(torch, inside, lambda name: not INNER.search(name))

    found = same(program)
    assert any("PythonDispatchMode" in str(row) for row in found)
