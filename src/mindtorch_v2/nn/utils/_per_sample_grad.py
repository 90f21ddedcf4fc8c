"""Gradients of each sample of a batch: `call_for_per_sample_grads`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._autograd.function import Function
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ...func.batching import vmap
from ...func.modules import functional_call
from ...utils._pytree import tree_leaves, tree_map
from ..modules.module import Module


class _PerSample(Function):
    """A parameter once for each sample; its gradient goes to `grad_sample`, and none to the parameter itself."""

    @staticmethod
    def forward(ctx: Any, parameter: Any, count: int, scale: int) -> Any:
        """The parameter, repeated."""
        ctx.parameter, ctx.scale = parameter, scale
        return aten.expand(parameter, (count, *parameter.shape)).clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Keep the gradients, which add up as `grad` does."""
        made = grad * ctx.scale
        before = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = made if before is None else before + made
        return None, None, None


def _batch_size(given: list[Tensor], dim: int) -> int:
    sizes = [one.shape[dim] for one in given]
    if not sizes:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs: specify batch_size explicitly")
    for size in sizes[1:]:
        if size != sizes[0]:
            raise RuntimeError("When computing batch size, found at least one input with batch size "
                               f"{sizes[0]} and one with batch size {size}: specify it explicitly, as batch_size of "
                               "call_for_per_sample_grads")
    return sizes[0]


def call_for_per_sample_grads(module: Any, *, batch_size: int | None = None, loss_reduction: str = "sum",
                              batch_first: bool = True) -> Callable[..., Any]:
    """A module to call once, whose parameters then get a `grad_sample` by backward: a gradient for each sample.

    With the mean as `loss_reduction` the gradients are multiplied with the count of samples, by which the mean divides.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError("Current Expanded Weights accumulates the gradients, which will be incorrect for "
                               "multiple calls without clearing gradients. Please clear out the grad_sample parameter "
                               f"of {parameter}")
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        count = _batch_size(tensors, dim) if batch_size is None else batch_size
        scale = count if loss_reduction == "mean" else 1
        own = dict(module.named_parameters())
        repeated = {name: _PerSample.apply(one, count, scale) for name, one in own.items() if one.requires_grad}
        plain = {name: one for name, one in own.items() if name not in repeated}

        def one_sample(weights: Any, inputs: Any) -> Any:
            # The sample is a batch of one, because modules may treat a single sample differently.
            given, named = tree_map(lambda one: one.unsqueeze(dim) if isinstance(one, Tensor) else one, inputs)
            return functional_call(module, {**plain, **weights}, given, named)

        made = vmap(one_sample, in_dims=(0, tree_map(lambda one: dim if isinstance(one, Tensor) else None,
                                                     (args, kwargs))),
                    out_dims=dim, randomness="different")(repeated, (args, kwargs))
        return tree_map(lambda one: one.squeeze(dim + 1), made)

    return wrapper
