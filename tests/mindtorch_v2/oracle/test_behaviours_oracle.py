"""Small programs, good and bad, from `behaviours.txt`: results, warnings and the beginning of errors as PyTorch's."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from both import ours, theirs

import mindtorch_v2._faces as faces
import mindtorch_v2.nn.utils.stateless
import mindtorch_v2.overrides
import mindtorch_v2.utils._python_dispatch  # noqa: F401  (programs take these from the module)

TEXT = (Path(__file__).parent / "behaviours.txt").read_text()
BLOCKS = [block for block in re.split(r"\n\n(?=\S)", TEXT) if not block.startswith("#")]
NAMES = [found.group(1) for block in BLOCKS if (found := re.match(r"def (\w+)\(\):", block))]
HELPERS = "\n".join(block for block in BLOCKS if not re.match(r"def \w+\(\):", block))
PROGRAMS = {found.group(1): block for block in BLOCKS if (found := re.match(r"def (\w+)\(\):", block))}


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """Other tests run without functions that ask."""
    yield
    faces.FACES.for_good = False
    faces.FACES.disarm()


def space_of(torch: Any) -> dict[str, Any]:
    """What the programs know."""
    def counting(*shape: int) -> Any:
        return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape).requires_grad_()

    space = {"torch": torch, "A": torch.autograd, "F": torch.nn.functional, "Function": torch.autograd.Function,
             "R": counting, "copy": copy, "pickle": pickle, "__name__": "behaviours"}
    exec(HELPERS, space)
    return space


SPACES = {"ours": space_of(ours), "theirs": space_of(theirs)}


def shown(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        node = value.grad_fn
        return (type(value).__name__, tuple(value.shape), str(value.dtype),
                [round(one, 3) for one in value.detach().flatten().tolist()], value.requires_grad,
                None if node is None else node.name())
    if isinstance(value, dict):
        return {key: shown(torch, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(torch, one) for one in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def outcome(torch: Any, space: dict[str, Any], name: str) -> Any:
    exec(PROGRAMS[name], space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(torch, space[name]())
        except Exception as error:
            return type(error).__name__, str(error)[:50]


def test_every_program_has_a_name_of_its_own() -> None:
    assert len(NAMES) == len(set(NAMES)) > 370


@pytest.mark.parametrize("name", NAMES)
def test_behaviour(name: str) -> None:
    assert outcome(ours, SPACES["ours"], name) == outcome(theirs, SPACES["theirs"], name)
