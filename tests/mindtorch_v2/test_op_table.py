"""The op table: every declaration compiles, late families are complete, the printed table is current."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _docs, _ops
from mindtorch_v2._dispatch.dispatcher import compile_op
from mindtorch_v2._dispatch.namespace import aten, load_late
from mindtorch_v2._dispatch.registry import OPS, declare, public_names
from mindtorch_v2._ops import late_names

load_late()
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("key", sorted(OPS))
def test_every_op_compiles_in_all_its_forms(key):
    op = OPS[key]
    if op.cpu is None and op.composite is None:
        with pytest.raises(NotImplementedError, match="only in its in-place form"):
            compile_op(op, False)
    else:
        assert callable(compile_op(op, False))
    if op.inplace:
        assert compile_op(op, True).__name__ == op.name + "_"


def in_fresh_interpreter(code):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_names_of_late_families_are_current():
    found = in_fresh_interpreter("from mindtorch_v2._ops import find_late_names; print(find_late_names.text(), end='')")
    assert Path(_ops.__path__[0], "late_names.py").read_text(encoding="utf-8") == found, "run `make docs`"


def test_no_op_is_in_two_late_families():
    names = [name for names in late_names.NAMES.values() for name in names.split()]
    assert len(names) == len(set(names))


def test_only_the_family_that_is_asked_for_is_loaded():
    out = in_fresh_interpreter("""
import sys
import mindtorch_v2 as torch
from mindtorch_v2 import _ops
from mindtorch_v2._dispatch.namespace import aten
def loaded():
    return [family for family in _ops.LATE_FAMILIES if f"{_ops.__name__}.{family}" in sys.modules]
before = set(loaded())
x = torch.ones(2, 2)
for ask in (lambda: x.cumsum(0), lambda: aten.cumprod__default, lambda: x.transpose_(0, 1), lambda: torch.fft,
            lambda: hasattr(torch, "no_such_name"), lambda: torch.ops.aten.gather.default, lambda: dir(torch)):
    ask()
    print(*sorted(set(loaded()) - before))
    before = set(loaded())
""").splitlines()
    assert out[:-1] == ["scan", "", "view_forms", "", "", "gather scatter"]
    assert len(out[-1].split()) > 30


def test_one_declaration_gives_every_form():
    x = torch.tensor([1.0, 4.0])
    assert torch.sqrt(x).tolist() == x.sqrt().tolist() == torch.ops.aten.sqrt(x).tolist() == [1.0, 2.0]
    assert torch.sqrt(x, out=torch.empty(2)).tolist() == [1.0, 2.0]
    assert x.clone().sqrt_().tolist() == [1.0, 2.0]
    assert torch.ops.aten.add.Tensor(x, x).tolist() == [2.0, 8.0]
    assert torch.ops.aten.add.overloads() == ["Tensor", "Scalar"]
    with pytest.raises(AttributeError, match="no_such_op"):
        getattr(torch.ops.aten, "no_such_op")  # noqa: B009
    with pytest.raises(AttributeError, match="no_such_op"):
        getattr(aten, "no_such_op")  # noqa: B009


def test_an_op_is_declared_once():
    with pytest.raises(ValueError, match="declared twice"):
        declare("mul.Tensor(Tensor self, Tensor other) -> Tensor", cpu=lambda a, b: a)
    with pytest.raises(TypeError, match="unknown facts"):
        declare("fresh(Tensor self) -> Tensor", cpu=lambda a: a, colour="red")


def test_public_names_resolve():
    for name in public_names("f"):
        assert callable(getattr(torch, name)), name
    for name in public_names("m"):
        assert callable(getattr(torch.Tensor, name)), name


def test_printed_table_is_current():
    assert (ROOT / "docs" / "ops.md").read_text(encoding="utf-8") == _docs.ops_page(), "run `make docs`"
