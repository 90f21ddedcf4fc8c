"""`torch.testing._internal.common_nn`: what tests of modules share."""

# ruff: noqa: PT009 - these are helpers for unittest: its methods are what they call

from __future__ import annotations

from typing import Any

from ... import nn
from ..._dispatch.namespace import aten
from ..._dtype import ALL_DTYPES
from ..._tensor import Tensor
from .test_case import TestCase

__all__ = ["NNTestCase"]

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
