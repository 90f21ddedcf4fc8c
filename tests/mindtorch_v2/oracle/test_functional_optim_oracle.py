"""The steps of optimizers as functions, beside PyTorch's."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest
import torch as oracle
import torch.optim._functional as oracle_functional

import mindtorch_v2 as torch
from mindtorch_v2.optim import _functional

OPTIONS: dict[str, Any] = {
    "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.01, "eps": 1e-6, "maximize": True, "amsgrad": True,
    "momentum": 0.9, "dampening": 0.1, "nesterov": False, "rho": 0.9, "lr_decay": 0.1, "lambd": 1e-3, "t0": 1.0,
    "alpha": 0.8, "momentum_decay": 4e-3, "centered": True, "step_size_min": 1e-6, "step_size_max": 50.0,
    "etaminus": 0.5, "etaplus": 1.2, "d": 1.0, "beta2_decay": -0.8, "eps1": 1e-6, "eps2": 1e-3, "capturable": False,
    "differentiable": False, "has_complex": False, "has_sparse_grad": False, "decoupled_weight_decay": True,
}
WAYS = [(key, name) for key, form in _functional.FORMS.items()
        for name in (key, *(f"_{way}_{key}" for way in form.ways))
        if hasattr(importlib.import_module(f"torch.optim.{form.module}"), name)]
SHAPES = ((3, 2), (4,))


def _lists(library: Any, form: _functional.Form) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    lists: dict[str, list[Any]] = {name: [library.tensor(rng.standard_normal(shape).astype(np.float32))
                                          for shape in SHAPES] for name in ("params", "grads")}
    for name, key in form.lists.items():
        if key in ("step", "mu_product", "mu", "eta"):
            lists[name] = [library.tensor(0.0 if key == "step" else 1.0) for _ in SHAPES]
        elif key in ("row_var", "col_var", "variance"):
            shape = {"row_var": (3, 1), "col_var": (1, 2), "variance": (4,)}[key]
            value = library.zeros(shape)
            lists[name] = [None, value] if key == "variance" else [value, None]
        elif key == "momentum_buffer" and form.module == "sgd":
            lists[name] = [None, None]
        else:
            lists[name] = [library.full(shape, 0.1) for shape in SHAPES]
    return lists


@pytest.mark.parametrize(("key", "name"), WAYS)
def test_a_step_as_a_function_equals_pytorch_s(key: str, name: str) -> None:
    form = _functional.FORMS[key]
    seen = []
    for library, package in ((oracle, "torch"), (torch, "mindtorch_v2")):
        function = getattr(importlib.import_module(f"{package}.optim.{form.module}"), name)
        lists = _lists(library, form)
        taken = inspect.signature(function).parameters
        first, second, *rest = lists.values()
        scaling = [None, None] if name.startswith("_") and "grad_scale" in taken else []
        named = {n: OPTIONS[n] for n, p in taken.items() if p.kind is p.KEYWORD_ONLY}
        for _ in range(3):
            function(first, second, *rest, *scaling, **named)
        seen.append({n: [None if t is None else t.cpu().numpy() for t in held] for n, held in lists.items()})
    for n, expected in seen[0].items():
        for one, other in zip(expected, seen[1][n], strict=True):
            assert (one is None) == (other is None), n
            if one is not None:
                np.testing.assert_allclose(other, one, rtol=2e-5, atol=1e-6, err_msg=n)


@pytest.mark.parametrize(("key", "name"), WAYS)
def test_the_functions_take_the_same_arguments(key: str, name: str) -> None:
    form = _functional.FORMS[key]
    ours, theirs = (inspect.signature(getattr(importlib.import_module(f"{package}.optim.{form.module}"), name))
                    for package in ("mindtorch_v2", "torch"))
    assert {n: (p.kind, p.default) for n, p in ours.parameters.items()} == \
        {n: (p.kind, p.default) for n, p in theirs.parameters.items()}
    positional = [[n for n, p in s.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD] for s in (ours, theirs)]
    assert positional[0] == positional[1]


def test_counts_are_tensors() -> None:
    for library, functional in ((oracle, oracle_functional), (torch, _functional)):
        one = [library.ones(2)]
        with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
            functional.radam(one, one, one, one, [1], beta1=0.9, beta2=0.9, lr=0.1, weight_decay=0, eps=1e-8)


@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_sparse_adam_as_a_function() -> None:
    seen = []
    for library, functional in ((oracle, oracle_functional), (torch, _functional)):
        grad = library.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
        parameter, mean, square = library.ones(3, 2), library.zeros(3, 2), library.zeros(3, 2)
        for count in (1, 2):
            functional.sparse_adam([parameter], [grad], [mean], [square], [count], eps=1e-8, beta1=0.9, beta2=0.99,
                                   lr=0.1, maximize=False)
        seen.append(np.stack([one.cpu().numpy() for one in (parameter, mean, square)]))
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-5)


def test_classes_that_are_treated_as_lists_are_named() -> None:
    for library in (oracle, torch):
        module = importlib.import_module(f"{library.__name__}.optim.optimizer")
        # PyTorch appends DTensor when that is imported, which other tests may have caused.
        assert module._foreach_supported_types[:2] == [library.Tensor, library.nn.Parameter]
