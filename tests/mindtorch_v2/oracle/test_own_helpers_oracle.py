"""PyTorch's own test helpers, as pip installed them, on top of this runtime.

A suite may bring its own copies of `torch.testing._internal`. Here the installed PyTorch's files are such copies: they
are imported while `torch` means this package, and a few tests are made and run with them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

HELPERS = Path(torch.__file__).parent / "testing" / "_internal"
BEGIN = """
import importlib.util, sys, types, unittest
from pathlib import Path

from mindtorch_v2 import torch_alias

torch_alias.enable(force=True)
HELPERS = Path({helpers!r})


class Copies:
    def find_spec(self, name, path=None, target=None):
        if not (name + ".").startswith("torch.testing._internal."):
            return None
        place = HELPERS.joinpath(*name.split(".")[3:])
        if place.is_dir():
            return importlib.util.spec_from_file_location(name, place / "__init__.py",
                                                          submodule_search_locations=[str(place)])
        return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))


sys.meta_path.insert(0, Copies())
if importlib.util.find_spec("expecttest") is None:  # only its base class is needed
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase
import torch
assert torch.__file__.endswith("mindtorch_v2/__init__.py"), torch.__file__
"""
IMPORTS = """
import importlib
for name in ("common_utils", "common_device_type", "common_dtype", "common_cuda", "common_nn", "common_modules",
             "common_optimizers", "common_methods_invocations", "opinfo.core", "opinfo.definitions.linalg",
             "common_subclass", "two_tensor", "composite_compliance", "autograd_function_db", "custom_op_db"):
    module = importlib.import_module("torch.testing._internal." + name)
    assert str(HELPERS) in module.__file__
from torch.testing._internal.common_methods_invocations import op_db, python_ref_db
print(len(op_db) > 600, len(python_ref_db) > 300)
"""
TESTS = """
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import (
    OpDTypes, dtypes, instantiate_device_type_tests, ops, skipCPUIfNoLapack)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, parametrize, run_tests

CHOSEN = [op for op in op_db if op.name in ("add", "sum", "index_select", "linalg.inv", "cat", "masked.sum", "sort")]


class TestHelpers(TestCase):
    exact_dtype = True

    @dtypes(torch.float32, torch.complex64, torch.bool)
    def test_made(self, device, dtype):
        x = make_tensor((3, 4), device=device, dtype=dtype)
        self.assertEqual(x, x.clone())

    @ops(CHOSEN, dtypes=OpDTypes.any_one)
    def test_samples(self, device, dtype, op):
        for one in op.sample_inputs(device, dtype):
            op(one.input, *one.args, **one.kwargs)

    @ops([op for op in CHOSEN if op.error_inputs_func is not None], dtypes=OpDTypes.none)
    def test_mistakes(self, device, op):
        for mistake in op.error_inputs(device):
            one = mistake.sample_input
            with self.assertRaisesRegex(mistake.error_type, mistake.error_regex):
                op(one.input, *one.args, **one.kwargs)

    @skipCPUIfNoLapack
    @parametrize("size", [1, 3])
    def test_inverse(self, device, size):
        x = torch.eye(size) + 1
        self.assertEqual(x @ torch.linalg.inv(x), torch.eye(size))


instantiate_device_type_tests(TestHelpers, globals(), only_for=("cpu",))
run_tests()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """A program that begins with PyTorch's helpers on this runtime; with CI in the environment these need xmlrunner."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run([sys.executable, "-c", BEGIN.format(helpers=str(HELPERS)) + program], capture_output=True,
                          text=True, check=False, env=environment)


def test_helpers_import() -> None:
    done = run(IMPORTS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["True", "True"]


def test_tests_run() -> None:
    done = run(TESTS)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "OK" in done.stderr
