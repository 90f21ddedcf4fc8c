"""The coverage page is current, only grows, and its refusals refuse."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _coverage, _refused

DOCS = Path(__file__).parents[2] / "docs"
NAMES = _coverage.read_names(DOCS)
FLOORS = {"torch.nn.functional": 85.0, "torch.Tensor": 80.0}


@pytest.fixture(scope="module")
def page():
    return _coverage.page(NAMES)


def test_the_page_is_current(page):
    assert (DOCS / "coverage.md").read_text(encoding="utf-8") == page, "run `make docs`"


def test_no_implemented_name_is_lost(page):
    assert _coverage.lost((DOCS / "coverage.md").read_text(encoding="utf-8"), page) == []


@pytest.mark.parametrize("namespace", FLOORS)
def test_share_of_implemented_names(namespace):
    states = _coverage.survey({namespace: NAMES[namespace]})[namespace]
    assert 100 * len(_coverage.in_state(states, _coverage.IMPLEMENTED)) / len(states) >= FLOORS[namespace]


@pytest.mark.parametrize("name", sorted(_refused.TORCH_NAMES))
def test_refused_functions_say_why(name):
    with pytest.raises((NotImplementedError, RuntimeError), match=rf"torch\.{name}\b"):
        getattr(torch, name)(1)
    assert _coverage.state(torch, name)[0] == _coverage.REFUSED
    assert name in dir(torch)


@pytest.mark.parametrize("name", sorted(_refused.refused_methods()))
def test_refused_methods_say_why(name):
    reason = re.escape(getattr(torch.Tensor, name).__refused__)
    with pytest.raises((NotImplementedError, RuntimeError, AssertionError), match=reason):
        getattr(torch.zeros(2), name)()
    assert _coverage.state(torch.Tensor, name)[0] == _coverage.REFUSED


def test_nothing_is_refused_that_is_also_implemented():
    listed = {name for namespace in ("torch", "torch.Tensor") for name in NAMES[namespace]}
    assert set(_refused.TORCH_NAMES) | set(_refused.refused_methods()) <= listed
    public = torch._public_names("f")
    assert not set(_refused.TORCH_NAMES) & set(public)


def only_raises(function):
    """Whether a function's body, apart from its docstring, is one raise statement."""
    if not inspect.isfunction(function):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return False  # generated, or a lambda inside an expression
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return False
    body = [step for step in definition.body
            if not (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


@pytest.mark.parametrize("namespace", NAMES)
def test_what_counts_as_implemented_does_more_than_raise(namespace):
    owner = _coverage.reach(namespace)
    found = []
    for name in _coverage.in_state(_coverage.survey({namespace: NAMES[namespace]})[namespace], _coverage.IMPLEMENTED):
        value = inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)
        parts = [value.__dict__.get(part) for part in ("__init__", "__new__", "forward")] if isinstance(
            value, type) else [value]
        if any(only_raises(part) for part in parts):
            found.append(name)
    # Subclasses define what a module does.
    assert found == (["Module"] if namespace == "torch.nn" else []), "make these with _absent.refusing"


def test_a_loss_is_noticed_and_not_written(tmp_path):
    (tmp_path / "pytorch_names.json").write_text('{"torch.fft": ["fft", "ifft", "no_such_transform"]}')
    written = _coverage.write(tmp_path).read_text(encoding="utf-8")
    assert "| `torch.fft` | 3 | 2 | 0 | 1 | 66.7 % |" in written
    assert _coverage.implemented_on(written) == {"torch.fft": {"fft", "ifft"}}
    richer = written.replace("`ifft`", "`ifft`, `no_such_transform`")
    (tmp_path / "coverage.md").write_text(richer, encoding="utf-8")
    assert _coverage.lost(richer, written) == ["torch.fft.no_such_transform"]
    with pytest.raises(RuntimeError, match="only grows"):
        _coverage.write(tmp_path)
    assert (tmp_path / "coverage.md").read_text(encoding="utf-8") == richer
