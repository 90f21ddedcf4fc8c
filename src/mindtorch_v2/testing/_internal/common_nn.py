"""`torch.testing._internal.common_nn`: what tests of modules share."""

# ruff: noqa: PT009 - these are helpers for unittest: its methods are what they call

from __future__ import annotations

import copy
import io
import itertools
import unittest
from typing import Any

from ... import nn
from ..._autograd.gradcheck import analytical_jacobian, numerical_jacobian
from ..._dispatch.namespace import aten
from ..._dtype import ALL_DTYPES, get_default_dtype
from ..._dtype import float32 as _float32
from ..._dtype import float64 as _float64
from ..._tensor import Tensor
from ...serialization import load, save
from .._utils import freeze_rng_state
from .loss_references import (
    cosineembeddingloss_reference,
    cross_entropy_loss_reference,
    ctcloss_reference,
    get_reduction,
    get_weight,
    hingeembeddingloss_reference,
    huberloss_reference,
    kldivloss_reference,
    linear_cross_entropy_loss_reference,
    loss_reference_fns,
    marginrankingloss_reference,
    multilabelmarginloss_reference,
    multimarginloss_reference,
    nllloss_reference,
    nlllossNd_reference,
    smoothl1loss_reference,
    softmarginloss_reference,
    tripletmarginloss_reference,
)
from .nn_rows import first_rows, further_rows, loss_rows, single_batch_reference_fn, wrap_functional
from .tensor_helpers import gradcheck, gradgradcheck
from .test_case import TestCase
from .test_conditions import set_default_dtype_to as set_default_dtype

__all__ = [
    "CriterionTest",
    "ModuleTest",
    "NNTestCase",
    "NewModuleTest",
    "TestBase",
    "cosineembeddingloss_reference",
    "criterion_tests",
    "cross_entropy_loss_reference",
    "ctcloss_reference",
    "get_new_module_tests",
    "get_reduction",
    "get_weight",
    "hingeembeddingloss_reference",
    "huberloss_reference",
    "kldivloss_reference",
    "linear_cross_entropy_loss_reference",
    "loss_reference_fns",
    "marginrankingloss_reference",
    "module_tests",
    "multilabelmarginloss_reference",
    "multimarginloss_reference",
    "nlllossNd_reference",
    "nllloss_reference",
    "single_batch_reference_fn",
    "smoothl1loss_reference",
    "softmarginloss_reference",
    "tripletmarginloss_reference",
    "wrap_functional",
]

_bfloat16 = next(kind for kind in ALL_DTYPES if kind.name == "bfloat16")


class NNTestCase(TestCase):
    """Tests of modules: parameters, and a pass forward and back."""

    def _get_parameters(self, module: nn.Module) -> tuple[list[Any], list[Any]]:
        params = list(module.parameters())
        return params, [one.grad for one in params]

    def _zero_grad_parameters(self, module: nn.Module) -> None:
        for one in module.parameters():
            if one.grad is not None:
                one.grad.zero_()

    def _forward(self, module: Any, input: Any) -> Any:
        return module(*input) if isinstance(input, tuple) else module(input)

    def _backward(self, module: Any, input: Any, output: Any, grad_output: Any, create_graph: bool = False) -> Any:
        output.backward(grad_output, retain_graph=True, create_graph=create_graph)
        return tuple(one.grad for one in input) if isinstance(input, tuple) else input.grad

    def _forward_criterion(self, criterion: Any, input: Any, target: Any, extra_args: Any = None) -> Any:
        return criterion(*(input if isinstance(input, tuple) else (input,)), target, *(extra_args or ()))

    def _zero_grad_input(self, input: Any) -> None:
        for one in input if isinstance(input, (tuple, list)) else (input,):
            if one.requires_grad and one.grad is not None:
                one.grad.zero_()
                one.grad.detach_()

    def check_jacobian(self, module: Any, input: Any, jacobian_input: bool = True) -> None:
        """The gradients of a module's parameters, which may be sparse, and of its input agree with differences."""
        given = input if isinstance(input, tuple) else (input,)
        wanted = [*(given if jacobian_input else ()), *self._get_parameters(module)[0]]
        found = analytical_jacobian(self._forward(module, input), wanted)
        expected = numerical_jacobian(lambda *values: self._forward(module, values), given, target=wanted, eps=1e-6)
        for matrix, (measured, *_) in zip(found, expected):
            self.assertEqual(matrix, measured, atol=1e-5, rtol=0)

    def _flatten_tensors(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            dense: Any = x.to_dense() if x.is_sparse else x
            return dense.reshape(-1)
        return [self._flatten_tensors(one) for one in x]


class _Layer(nn.Module):
    """A parameter and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer_dummy_param = nn.Parameter(aten.zeros((3, 5)))
        self.register_buffer("layer_dummy_buf", aten.zeros((1, 3, 3, 7)))


class _Net(nn.Module):
    """A layer, and a parameter and a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.l1 = _Layer()
        self.dummy_param = nn.Parameter(aten.zeros((3, 5)))
        self.register_buffer("dummy_buf", aten.zeros((7, 3, 3, 1)))


def _create_basic_net() -> tuple[nn.Module, nn.Module, nn.Module]:
    """A layer, a net with one, and a sequence that has a net twice."""
    net = _Net()
    return _Layer(), net, nn.Sequential(net, net)


def _test_module_empty_input(test_case: Any, module: nn.Module, inp: Any, check_size: bool = True,
                             inference: bool = False) -> None:
    """A module takes a batch without samples, and its gradients are zeros."""
    if not inference:
        inp.requires_grad_(True)
    out = module(inp)
    if check_size:
        test_case.assertEqual(out.size(), inp.size())
    if inference:
        return
    out.backward(aten.rand_like(out))
    for one in module.parameters():
        if one.requires_grad:
            test_case.assertEqual(one.grad, aten.zeros_like(one))
    test_case.assertEqual(inp.grad, aten.zeros_like(inp))


def _test_bfloat16_ops(test_case: Any, op: Any, device: Any, inp_dims: tuple[int, ...] = (), prec: float = 1e-2,
                       scale_factor: Any = None) -> None:
    """An op gives in bfloat16 about what it gives in float32, forward and back."""
    source = aten.randn(inp_dims, device=device)
    wide, narrow = source.requires_grad_(), aten.to(source.detach(), _bfloat16).requires_grad_()
    out, narrow_out = op(wide), op(narrow)
    grad = aten.randn(out.shape, device=device)
    out.backward(grad)
    narrow_out.backward(aten.to(grad, _bfloat16))
    test_case.assertEqual(out, narrow_out, atol=prec, rtol=prec, exact_dtype=False)
    test_case.assertEqual(wide.grad, narrow.grad, atol=prec, rtol=prec, exact_dtype=False)


class TestBase:
    """A row as a test: what it is made of is drawn once, when it is first asked for."""

    needed: tuple[str, ...] = ("input",)

    def __init__(self, constructor: Any, desc: str = "", reference_fn: Any = None, fullname: str | None = None,
                 **facts: Any) -> None:
        self.constructor, self.desc, self.reference_fn, self.fullname = constructor, desc, reference_fn, fullname
        self._facts, self._drawn = facts, dict[str, Any]()
        for name in self.needed:
            if not {name, f"{name}_fn", f"{name}_size"} & facts.keys():
                raise ValueError(f"{self.get_name()}: Specify {name} by a value, a function to generate it, or it's "
                                 "size!")
        self.test_cpu = facts.get("test_cpu", True)
        self.should_test_cuda = facts.get("test_cuda", True)
        self.should_test_pickle = facts.get("pickle", True)
        self.check_forward_only = facts.get("check_forward_only", False)
        self.check_gradgrad = facts.get("check_gradgrad", True)
        self.check_batched_grad = facts.get("check_batched_grad", True)
        self.with_tf32 = facts.get("with_tf32", False)
        self.tf32_precision = facts.get("tf32_precision", 0.001)
        self.default_dtype = facts.get("default_dtype") or get_default_dtype()

    def get_name(self) -> str:
        """The test's name."""
        if self.fullname is not None:
            return f"test_{self.fullname}"
        return f"test_{self.constructor.__name__}{'_' * bool(self.desc)}{self.desc}"

    def _get_arg(self, name: str) -> Any:
        """What a row gives under a name: a value, what a function makes, or random numbers of a size."""
        if name not in self._drawn:
            if name in self._facts:
                made = self._facts[name]
            elif f"{name}_fn" in self._facts:
                made = self._facts[f"{name}_fn"]()
            else:
                made = _random(self._facts[f"{name}_size"]) if f"{name}_size" in self._facts else ()
            self._drawn[name] = made
        return self._drawn[name]

    @property
    def constructor_args(self) -> Any:
        """What the module is made with."""
        return self._get_arg("constructor_args")

    @property
    def extra_args(self) -> Any:
        """What a loss is called with after its target."""
        return self._get_arg("extra_args")

    def _get_input(self) -> Any:
        """The input, whose gradient is asked for if it can have one."""
        return _asking(self._get_arg("input"))

    def _get_target(self) -> Any:
        return self._get_arg("target")


def _random(size: Any) -> Any:
    if isinstance(size, list):
        return [_random(one) for one in size]
    return size.double() if isinstance(size, Tensor) else aten.randn(size)


def _asking(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.requires_grad_() if value.dtype.is_floating_point or value.dtype.is_complex else value
    return type(value)(_asking(one) for one in value)


def _spaced(value: Any) -> Any:
    """The same numbers in memory with gaps."""
    if not isinstance(value, Tensor):
        return type(value)(_spaced(one) for one in value)
    dim = next((number + 1 for number, size in enumerate(value.shape) if size > 1), value.ndim)
    made = aten.detach(aten.select(aten.stack([aten.empty_like(value), value], dim), dim, 1))
    return made.requires_grad_(value.requires_grad)


class ModuleTest(TestBase):
    """A module gives what its reference does, the same from memory with gaps, and the same when it was saved."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.jacobian_input = kwargs.get("jacobian_input", True)
        self.precision = kwargs.get("precision", 2e-4)

    def __call__(self, test_case: Any) -> None:
        """Run it."""
        with set_default_dtype(self.default_dtype):
            module, input = self.constructor(*self.constructor_args), self._get_input()
            if self.reference_fn is not None:
                out = test_case._forward(module, input)
                expected = self.reference_fn(copy.deepcopy(input), test_case._get_parameters(module)[0],
                                             copy.deepcopy(module))
                test_case.assertEqual(out, expected, exact_dtype=False)
            if self.check_forward_only:
                return
            self.test_noncontig(test_case, module, input)
            if self.should_test_pickle:
                self._test_saved(test_case, module, input)
            self._do_test(test_case, module, input)

    def _test_saved(self, test_case: Any, module: Any, input: Any) -> None:
        file = io.BytesIO()
        test_case._forward(module, input)
        save(module, file)
        file.seek(0)
        restored = load(file, weights_only=False)
        test_case.assertEqual(test_case._forward(module, input), test_case._forward(restored, input))

    def noncontiguize(self, obj: Any) -> Any:
        """The same numbers in memory with gaps."""
        return _spaced(obj)

    def test_noncontig(self, test_case: Any, module: Any, input: Any) -> None:
        """Gaps in the memory of the input and of the gradient that comes change nothing."""
        if any(one.ndim == 0 for one in (input if isinstance(input, (tuple, list)) else (input,))):
            return
        grad_output = None
        found = []
        for given, coming in itertools.product((input, self.noncontiguize(input)), (lambda one: one, _spaced)):
            test_case._zero_grad_parameters(module)
            test_case._zero_grad_input(given)
            with freeze_rng_state():
                out = test_case._forward(module, given)
                out = out[0] if getattr(module, "return_indices", False) else out
                if grad_output is None:
                    grad_output = aten.randn_like(out)
                # A module may give the gradient on as it is: what is added to it later must not change it here.
                d_input = test_case._backward(module, given, out, copy.deepcopy(coming(grad_output)))
            found.append(copy.deepcopy((aten.detach(out), d_input, test_case._get_parameters(module)[1])))
        for one in found[1:]:
            for mine, first in zip(one, found[0]):
                test_case.assertEqual(mine, first, atol=1e-4, rtol=0)

    def _do_test(self, test_case: Any, module: Any, input: Any) -> Any:
        raise NotImplementedError("ModuleTest._do_test: a subclass says what else is tested")

    def test_cuda(self, test_case: Any) -> None:
        """The same on CUDA, which is not here."""
        raise unittest.SkipTest("Excluded from CUDA tests")


class NewModuleTest(ModuleTest):
    """A module whose gradients agree with differences, and which follows `float()` and `double()`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cudnn = kwargs.get("cudnn", False)
        self.check_inplace = kwargs.get("check_inplace", False)
        self.skip_double, self.skip_half = kwargs.get("skip_double", False), kwargs.get("skip_half", False)
        self.has_sparse_gradients = kwargs.get("has_sparse_gradients", False)
        self.gradcheck_fast_mode = kwargs.get("gradcheck_fast_mode")
        self.supports_forward_ad = kwargs.get("supports_forward_ad", False)
        self.supports_fwgrad_bwgrad = kwargs.get("supports_fwgrad_bwgrad", False)

    def _check_gradients(self, test_case: Any, module: Any, inputs: tuple[Any, ...]) -> None:
        given = inputs + tuple(module.parameters())

        def function(*values: Any) -> Any:
            return test_case._forward(module, values[:len(inputs)])

        if self.has_sparse_gradients:
            test_case.check_jacobian(module, inputs[0], inputs[0].dtype.is_floating_point)
        else:
            test_case.assertTrue(gradcheck(function, given, check_batched_grad=self.check_batched_grad,
                                           fast_mode=self.gradcheck_fast_mode,
                                           check_forward_ad=self.supports_forward_ad))
        if self.check_gradgrad:
            test_case.assertTrue(gradgradcheck(function, given, check_batched_grad=self.check_batched_grad,
                                               fast_mode=self.gradcheck_fast_mode,
                                               check_fwd_over_rev=self.supports_fwgrad_bwgrad))

    def _do_test(self, test_case: Any, module: Any, input: Any) -> None:
        inputs = input if isinstance(input, tuple) else (input,)
        self._check_gradients(test_case, module, inputs)
        repr(module)
        if self.check_inplace:
            self._test_inplace(test_case, module, *inputs)
        for kind, name in ((_float32, "float"), (_float64, "double")):
            getattr(module, name)()
            module(*[aten.to(one, kind) if one.dtype.is_floating_point else one for one in inputs])
            for one in module.parameters():
                test_case.assertEqual(one.dtype, kind)

    def _test_inplace(self, test_case: Any, module: Any, input: Any) -> None:
        """The module that writes into its input gives the same."""
        other = self.constructor(*self.constructor_args, inplace=True)
        before = input._version
        with freeze_rng_state():
            out = module(input)
        test_case.assertEqual(input._version, before)
        second = aten.detach(input).requires_grad_()
        written = aten.clone(second)
        with freeze_rng_state():
            out_inplace = other(written)
        test_case.assertNotEqual(written._version, before)
        test_case.assertEqual(out, out_inplace)
        grad = aten.randn_like(aten.detach(out))
        input.grad = None
        out.backward(grad)
        out_inplace.backward(grad)
        test_case.assertEqual(input.grad, second.grad)


class CriterionTest(TestBase):
    """A loss gives what its reference does, and its gradients agree with differences."""

    needed = ("input", "target")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.check_half = kwargs.get("check_half", True)
        self.check_bfloat16 = kwargs.get("check_bfloat16", False)
        self.check_complex = kwargs.get("check_complex", False)
        self.with_tf32 = kwargs.get("with_tf32", True)

    def __call__(self, test_case: Any) -> None:
        """Run it."""
        with set_default_dtype(self.default_dtype):
            module, input, target = self.constructor(*self.constructor_args), self._get_input(), self._get_target()
            repr(module)
            if self.reference_fn is not None:
                out = test_case._forward_criterion(module, input, target, extra_args=self.extra_args)
                test_case.assertEqual(out, self.reference_fn(copy.deepcopy(input), copy.deepcopy(target),
                                                             *self.extra_args, module))
            if self.check_forward_only:
                return
            inputs = input if isinstance(input, tuple) else (input,)
            count = len(inputs)
            given = (*inputs, *module.parameters(), target)

            def function(*values: Any) -> Any:
                return module(*values[:count], values[-1])

            test_case.assertTrue(gradcheck(function, given, check_batched_grad=self.check_batched_grad))
            if self.check_gradgrad:
                test_case.assertTrue(gradgradcheck(function, given, check_batched_grad=self.check_batched_grad))

    def test_cuda(self, test_case: Any, dtype: Any, extra_args: Any = None) -> None:
        """The same on CUDA, which is not here."""
        raise unittest.SkipTest("Excluded from CUDA tests")


# The rows, which are this runtime's own. Tests change them.
module_tests: list[dict[str, Any]] = first_rows()
criterion_tests: list[dict[str, Any]] = loss_rows()


def get_new_module_tests() -> list[dict[str, Any]]:
    """More rows of modules, new ones at each call."""
    return further_rows()
