"""PyTorch's test helpers, as its tests use them: in a file that imports `torch` and runs under its own command."""

# ruff: noqa: PT009 - these assertions are what is tested

from __future__ import annotations

import gc
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as mt
from mindtorch_v2.testing._internal import common_device_type, common_nn, common_utils

SUITE = '''
import json
import torch
from torch._C._profiler import _ExperimentalConfig, _ExtraFields_PyCall
from torch.autograd.profiler import KinetoStepTracker, profile as _profile
from torch.autograd.profiler_legacy import profile as _profile_legacy
from torch.profiler import DeviceType, kineto_available, profile, ProfilerAction, ProfilerActivity, record_function
from torch.profiler import supported_activities, _utils
from torch.profiler._pattern_matcher import NamePattern, Pattern, report_all_anti_patterns
from torch.testing._internal.common_utils import ALLOW_XPU_PROFILING_TEST, DEVICE_LIST_SUPPORT_PROFILING_TEST
from torch.testing._internal.common_cuda import TEST_MULTIGPU
from torch.testing._internal.common_device_type import skipCUDAVersionIn, instantiate_device_type_tests
from torch.testing._internal.common_utils import (
    instantiate_parametrized_tests, IS_ARM64, IS_JETSON, IS_LINUX, IS_WINDOWS, parametrize, run_tests, serialTest,
    skipIfTorchDynamo, TemporaryDirectoryName, TemporaryFileName, TEST_CUDA, TEST_WITH_CROSSREF, TEST_WITH_ROCM,
    TEST_XPU, TestCase)
from torch.utils._triton import has_triton


@instantiate_parametrized_tests
class TestProfiler(TestCase):
    @parametrize("with_stack", [True, False])
    @serialTest()
    def test_file(self, with_stack):
        with profile(activities=[ProfilerActivity.CPU], with_stack=with_stack) as prof, record_function("mine"):
            x = torch.ones(3) + 1
        self.assertEqual(x, torch.full((3,), 2.0))
        with TemporaryFileName(mode="w+") as name:
            prof.export_chrome_trace(name)
            with open(name) as file:
                names = {event.get("name") for event in json.load(file)["traceEvents"]}
        self.assertTrue({"mine", "aten::add"} <= names)

    @skipIfTorchDynamo("no compiler")
    def test_tree(self):
        with _profile() as prof:
            torch.ones(1)
        names = [event.name for event in _utils.traverse_dfs(prof.kineto_results.experimental_event_tree())]
        self.assertExpectedInline("\\n".join(names), "aten::ones\\naten::empty\\naten::fill_")


class TestDevices(TestCase):
    def test_ones(self, device):
        self.assertEqual(torch.ones(2, device=device).sum().item(), 2)


instantiate_device_type_tests(TestDevices, globals())

if __name__ == "__main__":
    run_tests()
'''


@pytest.mark.parametrize("how", [["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"], []])
def test_a_test_file_of_pytorchs_kind_runs(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(mt.__file__))}
    done = subprocess.run([sys.executable, "-m", "mindtorch_v2", *how, "test_suite.py"], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout if how else "Ran 4 tests" in done.stderr


class Case(common_utils.TestCase):
    def runTest(self) -> None:
        """Nothing: only the assertions are wanted."""


def test_equal() -> None:
    case = Case()
    one = mt.tensor([1.0, 2.0])
    case.assertEqual(one, mt.tensor([1.0, 2.0 + 1e-7]))
    case.assertEqual([one, {"a": one}], [one, {"a": one}])
    case.assertEqual(1.0, 1.0 + 1e-9)
    case.assertEqual("text", "text")
    case.assertEqual({1, 2}, {2, 1})
    case.assertEqual(one, one + 0.4, atol=0.5, rtol=0)
    case.assertEqual(mt.tensor(3), 3)
    case.assertEqual((), ())
    wrong: list[tuple[Any, Any]] = [
        (one, one + 1), (one, one.double()), (one, mt.ones(3)), (1, 2), ("a", "b"), ([1], [1, 2]), ({1}, {2}), (1, "1"),
        ((), (1,)), (None, 0)]
    for left, right in wrong:
        with pytest.raises(AssertionError):
            case.assertEqual(left, right)
        case.assertNotEqual(left, right)
    with pytest.raises(AssertionError, match="what I meant"):
        case.assertEqual(one, one + 1, "what I meant")


def test_parameters_multiply() -> None:
    seen = []

    class Test(unittest.TestCase):
        @common_utils.parametrize("a, b", [(1, 2), common_utils.subtest((3, 4), name="named")])
        @common_utils.parametrize("flag", [True, False])
        def test_it(self, a: int, b: int, flag: bool) -> None:
            seen.append((a, b, flag))

    common_utils.instantiate_parametrized_tests(Test)
    names = sorted(name for name in vars(Test) if name.startswith("test"))
    assert len(names) == 4
    assert sum("named" in name for name in names) == 2
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Test).run(result)
    assert result.wasSuccessful()
    assert sorted(seen) == [(1, 2, False), (1, 2, True), (3, 4, False), (3, 4, True)]


def test_swap_runs_a_test_both_ways() -> None:
    seen = []

    class Both(common_utils.TestCase):
        @common_utils.swap([True, False])
        @common_utils.parametrize("size", [1, 2])
        def test_it(self, size: int) -> None:
            seen.append((size, mt.__future__.get_swap_module_params_on_conversion()))

    common_utils.instantiate_parametrized_tests(Both)
    names = unittest.TestLoader().getTestCaseNames(Both)
    assert sorted(names) == [f"test_it_swap_{way}_size_{size}" for way in (False, True) for size in (1, 2)]
    assert unittest.TestSuite(map(Both, names)).run(unittest.TestResult()) is not None
    assert sorted(seen) == [(1, False), (1, True), (2, False), (2, True)]
    assert not mt.__future__.get_swap_module_params_on_conversion()


def test_devices_and_dtypes() -> None:
    seen = []

    class TestThing(unittest.TestCase):
        helper = 5

        @common_device_type.dtypes(mt.float32, mt.int64)
        def test_types(self, device: str, dtype: Any) -> None:
            seen.append((device, dtype, self.helper))

        @common_device_type.onlyCUDA
        def test_elsewhere(self, device: str) -> None:
            raise AssertionError("not on this device")

    scope: dict[str, Any] = {"TestThing": TestThing}
    common_device_type.instantiate_device_type_tests(TestThing, scope)
    assert list(scope) == ["TestThingCPU"]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(scope["TestThingCPU"]).run(result)
    assert result.wasSuccessful()
    assert len(result.skipped) == 1
    assert seen == [("cpu", mt.float32, 5), ("cpu", mt.int64, 5)]
    common_device_type.instantiate_device_type_tests(TestThing, scope, only_for=("cuda",))
    assert list(scope) == ["TestThingCPU"]


def test_importing_the_package_loads_none_of_this() -> None:
    program = ("import sys, mindtorch_v2; "
               "print([name for name in sys.modules if '_C' in name.split('.') or '_internal' in name.split('.')[1:2]"
               " or '.testing._internal' in name or 'event_tree' in name])")
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(mt.__file__))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60,
                          check=True)
    assert done.stdout.strip() == "[]"


def test_a_device_is_given_to_tests_that_name_one() -> None:
    class TestSome(common_utils.TestCase):
        def test_with(self, device: str) -> None:
            self.assertEqual(device, "cpu")

        def test_without(self) -> None:
            self.assertEqual(self.device_type, "cpu")  # type: ignore[attr-defined]

        @common_device_type.onlyOn(["cuda", "xpu"])
        def test_elsewhere(self, device: str) -> None:
            raise AssertionError

    scope: dict[str, Any] = {"TestSome": TestSome}
    common_device_type.instantiate_device_type_tests(TestSome, scope)
    found = unittest.defaultTestLoader.loadTestsFromTestCase(scope["TestSomeCPU"])
    result = unittest.TestResult()
    found.run(result)
    assert (len(result.skipped), result.failures, result.errors) == (1, [], [])
    assert result.testsRun >= 2  # some versions of Python count skipped tests as run


def test_marks_for_what_is_not_here() -> None:
    def test() -> None:
        """Nothing."""

    assert common_utils.skipIfTorchInductor("reason")(test) is test
    assert common_utils.markDynamoStrictTest(test) is test
    assert common_device_type.skipCUDAIfRocm(test) is test
    assert common_device_type.expectedFailureCUDA(test) is test
    assert common_device_type.deviceCountAtLeast(1)(test) is test


def test_retry_and_surroundings() -> None:
    calls: list[int] = []

    @common_utils.retry(ValueError, tries=2, delay=0)
    def fails_once() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError
        return len(calls)

    assert fails_once() == 2
    with common_utils.set_default_dtype(mt.float64):
        assert mt.ones(1).dtype == mt.float64
    assert mt.ones(1).dtype == mt.float32
    with common_utils.disable_gc():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_names_of_variants_are_pytorchs() -> None:
    class Test(common_utils.TestCase):
        @common_device_type.dtypes(mt.float32, mt.complex64)
        @common_utils.parametrize("k", [1, None])
        @common_utils.parametrize("text", ["a", "b.c"])
        def test_a(self, device: str, dtype: Any, k: Any, text: str) -> None:
            self.assertEqual(mt.ones(2, dtype=dtype, device=device), [1, 1])

        @common_device_type.dtypes((mt.float32, mt.float64))
        def test_pair(self, device: str, dtypes: Any) -> None:
            self.assertEqual(dtypes, (mt.float32, mt.float64))

        @common_utils.parametrize("kind", [mt.int8])
        @common_utils.decorateIf(unittest.expectedFailure, lambda given: given["x"] == 2)
        @common_utils.parametrize("x", [1, 2])
        def test_b(self, device: str, kind: Any, x: int) -> None:
            self.assertEqual(x, 1)

        @common_device_type.toleranceOverride({mt.float16: common_device_type.tol(atol=0.5, rtol=0)})
        @common_device_type.dtypes(mt.float16)
        def test_wide(self, device: str, dtype: Any) -> None:
            self.assertEqual(mt.tensor(1.0, dtype=dtype), mt.tensor(1.4, dtype=dtype))

        @common_device_type.deviceCountAtLeast(2)
        def test_two(self, devices: list[str]) -> None:
            raise AssertionError

    scope: dict[str, Any] = {"Test": Test}
    common_device_type.instantiate_device_type_tests(Test, scope)
    made = scope["TestCPU"]
    assert sorted(name for name in vars(made) if name.startswith("test")) == [
        "test_a_k1_text_a_cpu_complex64", "test_a_k1_text_a_cpu_float32", "test_a_k1_text_b_c_cpu_complex64",
        "test_a_k1_text_b_c_cpu_float32", "test_a_k_1_text_a_cpu_complex64", "test_a_k_1_text_a_cpu_float32",
        "test_a_k_1_text_b_c_cpu_complex64", "test_a_k_1_text_b_c_cpu_float32", "test_b_int8_x_1_cpu",
        "test_b_int8_x_2_cpu", "test_pair_cpu_float32_float64", "test_two_cpu", "test_wide_cpu_float16"]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(made).run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    assert len(result.skipped) == 1
    assert len(result.expectedFailures) == 1


def test_matrices_have_what_they_promise() -> None:
    whole = common_utils.random_hermitian_pd_matrix(3, 2, dtype=mt.complex128, device="cpu")
    assert bool((mt.linalg.eigvalsh(whole) > 0).all())
    assert int(mt.linalg.matrix_rank(common_utils.random_square_matrix_of_rank(5, 3))) == 3
    values = mt.linalg.svdvals(common_utils.make_fullrank_matrices_with_distinct_singular_values(
        4, 4, device="cpu", dtype=mt.float64))
    assert len(set(values.tolist())) == 4
    spread = common_utils.noncontiguous_like(mt.arange(6.0).view(2, 3))
    assert not spread.is_contiguous()
    assert spread.tolist() == [[0, 1, 2], [3, 4, 5]]
    state = mt.get_rng_state()
    with common_utils.freeze_rng_state():
        mt.rand(1)
    assert bool((state == mt.get_rng_state()).all())


def test_marks_for_what_is_absent() -> None:
    assert common_utils.TEST_SOMETHING_NEW is False
    assert common_device_type.skipCUDAIfSomethingNew(len) is len
    with pytest.raises(unittest.SkipTest):
        common_utils.skipIfNoSuchPackage(lambda self: None)(None)
    with pytest.raises(AttributeError):
        _ = common_utils.nothing_of_the_kind


def test_helpers_for_modules() -> None:
    case = Case()
    common_nn._test_module_empty_input(case, mt.nn.BatchNorm2d(3), mt.randn(0, 3, 2, 2))
    common_nn._test_module_empty_input(case, mt.nn.Conv2d(3, 4, 1), mt.randn(0, 3, 2, 2), check_size=False)
    common_nn._test_bfloat16_ops(case, mt.nn.Softmax(dim=1), "cpu", (2, 3), prec=1e-1)
    with pytest.raises(AssertionError):
        common_nn._test_module_empty_input(case, mt.nn.Flatten(), mt.randn(0, 3, 2, 2))
    names = [name for name, _ in common_nn._create_basic_net()[2].named_parameters()]
    assert names == ["0.dummy_param", "0.l1.layer_dummy_param"]


def test_wrappers_of_gradcheck_keep_the_form_of_matrices():
    from mindtorch_v2.testing._internal.common_methods_invocations import wrapper_set_seed
    from mindtorch_v2.testing._internal.opinfo.core import (
        gradcheck_wrapper_hermitian_input,
        gradcheck_wrapper_triangular_input_real_positive_diagonal,
    )

    x = mt.randn(3, 3, dtype=mt.complex128)
    assert gradcheck_wrapper_hermitian_input(lambda m: mt.equal(m, m.mH), x)
    kept = gradcheck_wrapper_triangular_input_real_positive_diagonal(lambda m, upper: m, x)
    assert mt.equal(kept, kept.tril())
    assert bool((kept.diagonal().real > 0).all())
    assert mt.equal(wrapper_set_seed(mt.rand, 3), wrapper_set_seed(mt.rand, 3))
