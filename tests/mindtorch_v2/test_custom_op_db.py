"""The ops that tests of custom ops go through, and tests that check the ops another test calls."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.testing._internal import optests
from mindtorch_v2.testing._internal.custom_op_db import custom_op_db, numpy_nms


@pytest.mark.parametrize("info", custom_op_db, ids=[info.name for info in custom_op_db])
def test_ops_of_numpy(info: Any) -> None:
    """They pass `opcheck`, and their gradients are right."""
    checks = ["test_schema", "test_autograd_registration"]
    if info.supports_autograd:
        checks.append("test_faketensor")
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=info.supports_autograd):
        torch.library.opcheck(info.op, (sample.input, *sample.args), sample.kwargs, test_utils=checks)
        if not info.supports_autograd:
            continue
        alone = isinstance(sample.input, torch.Tensor)

        def run(*given: Any, alone: bool = alone, sample: Any = sample) -> Any:
            made = info.op(given[0] if alone else list(given), *sample.args, **sample.kwargs)
            flat = torch.utils._pytree.tree_leaves(made)
            return tuple(one for one in flat if isinstance(one, torch.Tensor) and one.requires_grad)

        assert torch.autograd.gradcheck(run, [sample.input] if alone else sample.input)


def test_boxes() -> None:
    boxes = torch.tensor([[0.0, 0, 9, 9], [0, 0, 9, 8], [20, 20, 29, 29]])
    assert numpy_nms(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5).tolist() == [1, 2]


def test_tests_made_of_tests(tmp_path: Path) -> None:
    with torch.library._scoped_library("made_of_tests", "FRAGMENT") as library:
        library.define("good(Tensor x) -> Tensor")
        library.impl("good", lambda x: x.sin(), "CompositeImplicitAutograd")
        library.define("bad(Tensor x) -> Tensor")
        library.impl("bad", lambda x: x.add_(1).clone(), "CompositeExplicitAutograd")
        ops = torch.ops.made_of_tests

        def case() -> Any:
            class Case(unittest.TestCase):
                def test_good(self) -> None:
                    ops.good(torch.ones(2))

                def test_bad(self) -> None:
                    ops.bad(torch.ones(2))

                @optests.dontGenerateOpCheckTests("asks where it is")
                def test_alone(self) -> None:
                    assert not optests.is_inside_opcheck_mode()

            return Case

        def failures(known: dict[str, Any]) -> list[str]:
            path = tmp_path / "known.json"
            path.write_text(json.dumps({"data": known}))
            made = case()
            optests.generate_opcheck_tests(made, ["made_of_tests"], str(path), test_utils=["test_schema"])
            found = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(made).run(found)
            assert found.testsRun == 5
            return sorted(test.id().rpartition(".")[2] for test, _ in found.errors)

        expected = {"status": "xfail"}
        assert failures({}) == ["test_schema__test_bad"]
        assert failures({"made_of_tests::bad": {"Case.test_schema__test_bad": expected}}) == []
        known = {f"made_of_tests::{name}": {f"Case.test_schema__test_{name}": expected} for name in ("bad", "good")}
        assert failures(known) == ["test_schema__test_good"]
