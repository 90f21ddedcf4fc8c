"""Keeping gradients small."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.namespace import aten, find
from ..._tensor import Tensor

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grouped(tensors: list[Tensor]) -> list[list[Tensor]]:
    """The tensors by device and dtype: what one foreach op can take."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((str(tensor.device), tensor.dtype), []).append(tensor)
    return list(groups.values())


def _norms(tensors: list[Tensor], norm_type: float, foreach: bool | None) -> list[Tensor]:
    together = find("_foreach_norm") if foreach is not False else None
    if together is not None:
        return list(together(tensors, norm_type))
    return [aten.linalg_vector_norm(tensor, norm_type) for tensor in tensors]


def get_total_norm(tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The norm of all tensors taken as one vector."""
    found = _listed(tensors)
    norm_type = float(norm_type)
    with no_grad():
        if not found:
            return aten.full((), 0.0)
        norms = [norm for group in _grouped(found) for norm in _norms(group, norm_type, foreach)]
        first = found[0].device
        total = aten.linalg_vector_norm(aten.stack([aten.to(norm, first) for norm in norms]), norm_type)
        if error_if_nonfinite and bool(aten.logical_or(aten.isnan(total), aten.isinf(total))):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
                "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                "`error_if_nonfinite=False`"
            )
        return total


def clip_grads_with_norm_(parameters: Tensors, max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """Scale gradients by `max_norm / total_norm` if that makes them smaller."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    if not grads:
        return
    with no_grad():
        factor = aten.mul(aten.reciprocal(aten.add(total_norm, 1e-6)), float(max_norm))
        factor = aten.clamp(factor, max=1.0)
        together = find("_foreach_mul_") if foreach is not False else None
        for group in _grouped(grads):
            scale = aten.to(factor, group[0].device)
            if together is not None:
                together(group, scale)
            else:
                for grad in group:
                    aten.mul_(grad, scale)


def clip_grad_norm_(parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`; returns the norm they had.

    >>> import mindtorch_v2 as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_([p], 1.0)
    tensor(5.)
    """
    owners = _listed(parameters)
    if isinstance(parameters, types.GeneratorType) and not owners:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [p.grad for p in owners if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(owners, max_norm, total, foreach)
    return total


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of every gradient to `[-clip_value, clip_value]`."""
    clip_value = float(clip_value)
    low, high = (find("_foreach_clamp_min_"), find("_foreach_clamp_max_")) if foreach is not False else (None, None)
    with no_grad():
        for group in _grouped([p.grad for p in _listed(parameters) if p.grad is not None]):
            if low is not None and high is not None:
                low(group, -clip_value)
                high(group, clip_value)
            else:
                for grad in group:
                    aten.clamp_(grad, -clip_value, clip_value)


def clip_grad_norm(parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
                  FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
