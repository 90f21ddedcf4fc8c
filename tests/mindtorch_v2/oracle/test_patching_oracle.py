"""A program's function that replaces one of ours stays, and the parts written in Python call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from both import same

import mindtorch_v2._faces as faces

CASES: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("Tensor", "uniform_", lambda torch: torch.empty(2).uniform_()),
    ("Tensor", "add", lambda torch: torch.ones(1).add(1)),
    ("Tensor", "__add__", lambda torch: torch.ones(1) + 1),
    ("Tensor", "__matmul__", lambda torch: torch.ones(1) @ torch.ones(1)),
    ("Tensor", "sum", lambda torch: torch.ones(2).sum()),
    ("Tensor", "detach", lambda torch: torch.ones(2).detach()),
    ("Tensor", "backward", lambda torch: torch.ones(1, requires_grad=True).backward()),
    ("", "add", lambda torch: torch.add(torch.ones(1), 1)),
    ("", "randn", lambda torch: torch.randn(2)),
    ("nn.functional", "relu", lambda torch: torch.nn.ReLU()(torch.ones(1))),
    ("nn.functional", "linear", lambda torch: torch.nn.Linear(2, 2)(torch.ones(2))),
    ("nn.functional", "dropout", lambda torch: torch.nn.Dropout()(torch.ones(3))),
    ("Tensor", "uniform_", lambda torch: torch.nn.init.uniform_(torch.empty(2))),
    ("Tensor", "uniform_", lambda torch: torch.nn.Linear(2, 2)),
    ("Tensor", "normal_", lambda torch: torch.nn.init.normal_(torch.empty(2))),
    ("Tensor", "normal_", lambda torch: torch.nn.init.kaiming_normal_(torch.empty(2, 2))),
    ("Tensor", "normal_", lambda torch: torch.nn.Embedding(2, 2)),
    ("Tensor", "uniform_", lambda torch: torch.nn.init.xavier_uniform_(torch.empty(2, 2))),
    ("Tensor", "zero_", lambda torch: torch.nn.init.zeros_(torch.empty(2, 2))),
    ("Tensor", "fill_", lambda torch: torch.nn.init.constant_(torch.empty(2, 2), 1.0)),
    ("Tensor", "normal_", lambda torch: torch.nn.init.orthogonal_(torch.empty(2, 2))),
    ("Tensor", "normal_", lambda torch: torch.nn.init.sparse_(torch.empty(2, 2), 0.5)),
    ("", "eye", lambda torch: torch.nn.init.eye_(torch.empty(2, 2))),
    ("", "multinomial", lambda torch: torch.distributions.Categorical(torch.ones(3)).sample()),
    ("", "normal", lambda torch: torch.distributions.Normal(torch.zeros(3), 1.0).sample()),
    ("distributions.normal", "_standard_normal", lambda torch: torch.distributions.Normal(0.0, 1.0).rsample()),
    ("", "bernoulli", lambda torch: torch.distributions.Bernoulli(torch.ones(3) / 2).sample()),
    ("", "rand", lambda torch: torch.distributions.Uniform(torch.zeros(3), 1.0).sample()),
    ("", "poisson", lambda torch: torch.distributions.Poisson(torch.ones(3)).sample()),
    ("Tensor", "exponential_", lambda torch: torch.distributions.Exponential(torch.ones(3)).sample()),
    ("Tensor", "cauchy_", lambda torch: torch.distributions.Cauchy(torch.zeros(3), 1.0).sample()),
    ("", "randperm", lambda torch: list(torch.utils.data.DataLoader([1, 2, 3], shuffle=True))),
    ("Tensor", "random_", lambda torch: list(torch.utils.data.DataLoader([1, 2, 3], shuffle=True))),
    ("", "multinomial", lambda torch: list(torch.utils.data.WeightedRandomSampler([1.0, 2.0], 3))),
]


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """Other tests run without functions that ask."""
    yield
    faces.FACES.for_good = False
    faces.FACES.disarm()


def calls(torch: Any, number: int) -> Any:
    """How often a program's function is called in three runs, whether it stays, whether it is gone when taken away."""
    place, name, run = CASES[number]
    owner = torch
    for part in filter(None, place.split(".")):
        owner = getattr(owner, part)
    seen: list[int] = []
    before = getattr(owner, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        return before(*args, **kwargs)

    setattr(owner, name, patched)
    try:
        for _ in range(3):
            run(torch)
        stays = getattr(owner, name) is patched
    finally:
        setattr(owner, name, before)
    found = [len(seen), stays]
    run(torch)
    return [*found, len(seen) == found[0]]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_patch_stays_and_is_called(number: int) -> None:
    assert same(lambda torch: calls(torch, number))[1] != 0


@pytest.mark.parametrize("number", range(6))
def test_a_patch_stays_while_functions_ask(number: int) -> None:
    """Patched before a mode is entered, inside it and before it is left."""
    def program(torch: Any) -> Any:
        class Quiet(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        def double(self: Any, *args: Any) -> Any:
            return "patched"

        name = ("exp", "sin", "cos", "tan", "neg", "abs")[number]
        before = getattr(torch.Tensor, name)
        found = []
        if number % 2:
            setattr(torch.Tensor, name, double)
        try:
            with Quiet():
                if not number % 2:
                    setattr(torch.Tensor, name, double)
                found.append(getattr(torch.ones(1), name)())
            found.append(getattr(torch.ones(1), name)())
            with Quiet():
                found.append(getattr(torch.ones(1), name)())
        finally:
            setattr(torch.Tensor, name, before)
        return [*found, getattr(torch.ones(1), name)()]

    same(program)
    assert not faces.FACES.armed
