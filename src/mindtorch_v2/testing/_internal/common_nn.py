"""`torch.testing._internal.common_nn`: what tests of modules share."""

# ruff: noqa: PT009 - these are helpers for unittest: its methods are what they call

from __future__ import annotations

import copy
from typing import Any

from ... import nn
from ..._dispatch.namespace import aten
from ..._dtype import ALL_DTYPES
from ..._dtype import float32 as _float32
from ..._dtype import float64 as _float64
from ..._tensor import Tensor
from .loss_references import (
    cosineembeddingloss_reference,
    cross_entropy_loss_reference,
    ctcloss_reference,
    get_reduction,
    get_weight,
    hingeembeddingloss_reference,
    huberloss_reference,
    kldivloss_reference,
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
from .test_case import TestCase

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
                one.grad.zero_()  # type: ignore[attr-defined]

    def _forward(self, module: Any, input: Any) -> Any:
        return module(*input) if isinstance(input, tuple) else module(input)

    def _backward(self, module: Any, input: Any, output: Any, grad_output: Any, create_graph: bool = False) -> Any:
        output.backward(grad_output, retain_graph=True, create_graph=create_graph)
        return tuple(one.grad for one in input) if isinstance(input, tuple) else input.grad

    def _flatten_tensors(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            dense: Any = x.to_dense() if x.is_sparse else x  # type: ignore[attr-defined]
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


def single_batch_reference_fn(input: Any, parameters: Any, module: nn.Module) -> Any:
    """What a module gives for one sample: that of a batch with it alone."""
    one = input.unsqueeze(0) if isinstance(input, Tensor) else tuple(part.unsqueeze(0) for part in input)
    return module(*one).squeeze(0) if isinstance(one, tuple) else module(one).squeeze(0)  # type: ignore[union-attr]


class NewModuleTest:
    """A module with an input: it is called twice alike, saved and restored, and its gradients are checked."""

    should_test_cuda = should_test_pickle = False

    def __init__(self, constructor: Any = None, module_name: str = "", *, desc: str = "", fullname: str | None = None,
                 constructor_args: tuple[Any, ...] = (), input_size: Any = None, input_fn: Any = None,
                 check_gradgrad: bool = True, default_dtype: Any = None, reference_fn: Any = None, **more: Any) -> None:
        self.constructor = getattr(nn, module_name) if constructor is None else constructor
        self.constructor_args, self.input_size, self.input_fn = constructor_args, input_size, input_fn
        self.fullname, self.module_name, self.desc = fullname, module_name, desc
        self.check_gradgrad, self.default_dtype, self.reference_fn = check_gradgrad, default_dtype, reference_fn
        self.test_cuda = False
        self.with_tf32 = False

    def get_name(self) -> str:
        """The test's name."""
        if self.fullname is not None:
            return f"test_{self.fullname}"
        return f"test_{self.module_name}{'_' * bool(self.desc)}{self.desc.replace(' ', '_')}"

    def __call__(self, test_case: Any) -> None:
        """Run it."""
        from .common_utils import gradcheck, gradgradcheck, set_default_dtype

        with set_default_dtype(self.default_dtype or _float32):
            module = self.constructor(*self.constructor_args).double()
            given = self.input_fn() if self.input_fn is not None else aten.randn(self.input_size)
        inputs = tuple(aten.to(one, _float64).requires_grad_() if one.dtype.is_floating_point else one
                       for one in (given if isinstance(given, tuple) else (given,)))
        first = module(*inputs)
        test_case.assertEqual(first, module(*inputs))
        test_case.assertEqual(first, copy.deepcopy(module)(*inputs))
        if self.reference_fn is not None:
            test_case.assertEqual(first, self.reference_fn(given, list(module.parameters()), module))
        test_case.assertTrue(gradcheck(module, inputs))
        if self.check_gradgrad:
            test_case.assertTrue(gradgradcheck(module, inputs))


class CriterionTest(NewModuleTest):
    """A loss with an input and a target."""

    def __init__(self, *args: Any, target_size: Any = None, target_fn: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        made = self.input_fn or (lambda: aten.randn(self.input_size))
        wanted = target_fn or (lambda: aten.randn(target_size))
        self.input_fn = lambda: (made(), wanted())


ModuleTest = TestBase = NewModuleTest

# PyTorch's lists of modules and losses to test this way. Those of this runtime are in `common_modules`.
module_tests: list[dict[str, Any]] = []
criterion_tests: list[dict[str, Any]] = []


def get_new_module_tests() -> list[dict[str, Any]]:
    """More such rows: none."""
    return []
