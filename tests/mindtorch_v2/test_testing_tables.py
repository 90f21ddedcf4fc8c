"""The tables of `torch.testing._internal`: every optimizer and module in them does what its row says."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.testing import make_tensor
from mindtorch_v2.testing._internal import common_nn
from mindtorch_v2.testing._internal.common_device_type import instantiate_device_type_tests
from mindtorch_v2.testing._internal.common_methods_invocations import reduction_ops
from mindtorch_v2.testing._internal.common_modules import (
    ModuleErrorEnum,
    TrainEvalMode,
    module_db,
    module_inputs_torch_nn_Linear,
    modules,
)
from mindtorch_v2.testing._internal.common_optimizers import (
    OptimizerInfo,
    TensorTracker,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
    optim_inputs_func_adam,
    optims,
)
from mindtorch_v2.testing._internal.common_utils import TestCase, freeze_rng_state


def loss_after(info: OptimizerInfo, kwargs: dict[str, Any], steps: int) -> float:
    torch.manual_seed(1)
    weight, x = nn.Parameter(torch.randn(4, 3)), torch.randn(3)
    optimizer = info.optim_cls([weight], **kwargs)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (weight @ x).pow(2).sum()
        loss.backward()
        if info.only_supports_sparse_grads:
            weight.grad = weight.grad.to_sparse()
        return loss

    for _ in range(steps):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return float(closure())


@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.name)
def test_optimizers_move_as_their_options_say(info: OptimizerInfo) -> None:
    before = loss_after(info, {}, 0)
    for given in _get_optim_inputs_including_global_cliquey_kwargs("cpu", torch.float32, info,
                                                                   skip=("differentiable",)):
        after = loss_after(info, given.kwargs, 3)
        assert (after > before) if given.kwargs.get("maximize") else (after < before), given


@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.name)
def test_optimizers_refuse_what_their_row_lists(info: OptimizerInfo) -> None:
    for wrong in info.optim_error_inputs_func("cpu", torch.float32):
        given = wrong.optimizer_error_input
        params = [nn.Parameter(torch.ones(2, 2))] if given.params is None else given.params
        catch = pytest.warns if issubclass(wrong.error_type, Warning) else pytest.raises
        with catch(wrong.error_type, match=wrong.error_regex):
            info.optim_cls(params, **given.kwargs)


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_modules_take_their_inputs(info: Any) -> None:
    torch.manual_seed(0)
    for case in info.module_inputs_func(info, "cpu", torch.float32, False, True):
        args, kwargs = case.forward_input.args, case.forward_input.kwargs
        with warnings.catch_warnings(), freeze_rng_state():
            warnings.simplefilter("ignore")
            module = info.module_cls(*case.constructor_input.args, **case.constructor_input.kwargs)
            made = module(*args, **kwargs)
        if case.reference_fn is not None:
            torch.testing.assert_close(made, case.reference_fn(module, *args, **kwargs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("info", [info for info in module_db if info.module_error_inputs_func],
                         ids=lambda info: info.name)
def test_modules_refuse_what_their_row_lists(info: Any) -> None:
    for wrong in info.module_error_inputs_func(info, "cpu", torch.float32, False, True):
        case = wrong.module_error_input
        construct = lambda case=case: info.module_cls(
            *case.constructor_input.args, **case.constructor_input.kwargs)
        if wrong.error_on is ModuleErrorEnum.CONSTRUCTION_ERROR:
            with pytest.raises(wrong.error_type, match=wrong.error_regex):
                construct()
        else:
            module = construct()
            with pytest.raises(wrong.error_type, match=wrong.error_regex):
                module(*case.forward_input.args, **case.forward_input.kwargs)


def test_marks_make_one_test_for_each_row() -> None:
    seen = []

    class TestRows(TestCase):
        @optims([info for info in optim_db if info.name in ("SGD", "Adam")], dtypes=[torch.float32, torch.float64])
        def test_optimizer(self, device: str, dtype: Any, optim_info: Any) -> None:
            seen.append((optim_info.name, dtype))

        @modules([info for info in module_db if info.name in ("nn.Linear", "nn.Dropout")],
                 allowed_dtypes=[torch.float32], train_eval_mode=TrainEvalMode.train_and_eval)
        def test_module(self, device: str, dtype: Any, module_info: Any, training: bool) -> None:
            seen.append((module_info.name, training))

    scope: dict[str, Any] = {"TestRows": TestRows}
    instantiate_device_type_tests(TestRows, scope)
    names = sorted(name for name in vars(scope["TestRowsCPU"]) if name.startswith("test"))
    assert names == ["test_module_nn_Dropout_eval_mode_cpu_float32", "test_module_nn_Dropout_train_mode_cpu_float32",
                     "test_module_nn_Linear_cpu_float32", "test_optimizer_Adam_cpu_float32",
                     "test_optimizer_Adam_cpu_float64", "test_optimizer_SGD_cpu_float32",
                     "test_optimizer_SGD_cpu_float64"]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(scope["TestRowsCPU"]).run(result)
    assert result.wasSuccessful()
    assert len(seen) == 7


def test_parts_of_the_tables_have_names() -> None:
    assert [one.kwargs for one in optim_inputs_func_adam("cpu")][:1] == [{}]
    info = next(info for info in module_db if info.name == "nn.Linear")
    assert len(module_inputs_torch_nn_Linear(info, "cpu", torch.float32, False, True)) == 3


def test_tracker_compares_and_takes_over() -> None:
    tracker, case = TensorTracker(), TestCase()
    tracker.add(torch.ones(2))
    with pytest.raises(AssertionError):
        tracker.pop_check_set(torch.zeros(2), case)
    tracker.add(torch.ones(2))
    other = torch.ones(2) + 1e-7
    tracker.pop_check_set(other, case)
    assert other.tolist() == [1.0, 1.0]
    assert tracker.all_popped()


class RowCase(common_nn.NNTestCase):
    """What a test of `common_nn`'s rows is given."""

    def runTest(self) -> None:
        """Nothing by itself."""


def row_tests() -> dict[str, Any]:
    """The rows' tests by name, as a suite makes them: losses also with the sum."""
    made: dict[str, Any] = {}
    modules_of = [*common_nn.module_tests, *common_nn.get_new_module_tests()]
    for rows, kind in ((modules_of, common_nn.NewModuleTest), (common_nn.criterion_tests, common_nn.CriterionTest)):
        for row in rows:
            given = {"constructor": getattr(nn, row["module_name"])} if "constructor" not in row else {}
            test = kind(**{key: value for key, value in row.items() if key != "module_name"}, **given)
            assert test.get_name() not in made
            made[test.get_name()] = test
    return made


ROW_TESTS = row_tests()


@pytest.mark.parametrize("name", ROW_TESTS)
def test_rows_of_modules_and_losses_hold(name: str) -> None:
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ROW_TESTS[name](RowCase())


def test_a_row_tells_of_a_wrong_module() -> None:
    def failing(kind: Any, constructor: Any, **facts: Any) -> None:
        with pytest.raises(AssertionError):
            kind(constructor, input_size=(3, 4), default_dtype=torch.float64, **facts)(RowCase())

    failing(common_nn.NewModuleTest, nn.Tanh, reference_fn=lambda x, parameters, module: x)
    failing(common_nn.CriterionTest, nn.L1Loss, target_size=(3, 4), reference_fn=lambda x, target, module: x.sum())

    class FromTheFirst(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * (2 if x.is_contiguous() else 3)

    failing(common_nn.NewModuleTest, FromTheFirst, pickle=False)
    with pytest.raises(ValueError, match="Specify input"):
        common_nn.NewModuleTest(nn.Tanh)
    with pytest.raises(unittest.SkipTest):
        ROW_TESTS["test_Linear"].test_cuda(RowCase())


def test_reductions_know_what_they_cannot_do() -> None:
    rows = {row.name: row for row in reduction_ops}
    x = torch.arange(6.0).reshape(2, 3)
    for name, test, wrong in (("sum", "test_dim_default_keepdim", {"keepdim": True}),
                              ("prod", "test_dim_none", {"dim": None})):
        assert rows[name].get_decorators("TestReductions", test, "cpu", torch.float32, {})
        with pytest.raises(TypeError):
            rows[name](x, **wrong)
    assert not rows["amax"].get_decorators("TestReductions", "test_dim_default_keepdim", "cpu", torch.float32, {})


@pytest.mark.parametrize("row", reduction_ops, ids=lambda row: row.name)
def test_reductions_equal_their_references(row: Any) -> None:
    for kind in row.dtypes:
        if kind in (torch.bfloat16, torch.float16):
            continue
        x = make_tensor((5, 3), dtype=kind, device="cpu", low=-2, high=3)
        want = torch.as_tensor(row.ref(x.numpy(), axis=0))
        torch.testing.assert_close(row(x, dim=0), want, check_dtype=False, msg=f"{row.name} {kind}")
