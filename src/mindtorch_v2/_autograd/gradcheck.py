"""Numerical checks of derivatives: `gradcheck` and `gradgradcheck`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._dtype import float64
from .._tensor import Tensor, wrap
from .api import grad


class GradcheckError(RuntimeError):
    """Numerical and analytical gradients differ."""


def _outputs(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    found = function(*inputs)
    listed = found if isinstance(found, (tuple, list)) else (found,)
    return [o for o in listed if isinstance(o, Tensor) and (o.dtype.is_floating_point or o.dtype.is_complex)]


def _numerical(function: Callable[..., Any], inputs: tuple[Any, ...], which: Tensor, eps: float) -> list[np.ndarray]:
    """Central differences: one matrix (input elements × output elements) per output."""
    rows: list[list[np.ndarray]] = []
    for i in range(which._a.size):
        place = np.unravel_index(i, which._a.shape)
        kept = which._a[place]
        which._a[place] = kept + eps
        above = [o._a.reshape(-1).copy() for o in _outputs(function, inputs)]
        which._a[place] = kept - eps
        below = [o._a.reshape(-1).copy() for o in _outputs(function, inputs)]
        which._a[place] = kept
        rows.append([(a - b) / (2 * eps) for a, b in zip(above, below)])
    count = len(_outputs(function, inputs))
    return [np.stack([r[k] for r in rows]) if rows else np.zeros((0, 0)) for k in range(count)]


def _analytical(output: Tensor, inputs: list[Tensor]) -> list[np.ndarray]:
    """One matrix (input elements × output elements) per input."""
    matrices = [np.zeros((t._a.size, output._a.size), t._a.dtype) for t in inputs]
    for j in range(output._a.size):
        seed = np.zeros(output._a.shape, output._a.dtype)
        seed[np.unravel_index(j, output._a.shape)] = 1
        found = grad(output, inputs, wrap(seed), retain_graph=True, allow_unused=True)
        for matrix, one in zip(matrices, found):
            if one is not None:
                matrix[:, j] = one._a.reshape(-1)
    return matrices


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare a function's gradients with central differences; True, or an error that shows both.

    >>> import mindtorch_v2 as torch
    >>> torch.autograd.gradcheck(torch.sigmoid, torch.rand(3, dtype=torch.float64, requires_grad=True))
    True
    """
    if check_forward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: forward-mode and batched gradients are not available in this runtime")
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them has "
                         "requires_grad=True.")
    if any(t.dtype not in (float64,) and not t.dtype.is_complex for t in wanted):
        warnings.warn("Input to gradcheck requires gradient but is not double precision; the check will likely fail.",
                      UserWarning, stacklevel=2)
    try:
        _compare(func, given, wanted, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor], eps: float, atol: float,
             rtol: float) -> None:
    outputs = [o for o in _outputs(func, given) if o.requires_grad]
    if not outputs:
        return
    analytical = [_analytical(o, wanted) for o in outputs]
    for i, tensor in enumerate(wanted):
        numerical = _numerical(func, given, tensor, eps)
        for j in range(len(outputs)):
            if not np.allclose(analytical[j][i], numerical[j], rtol, atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {j} with respect to input {i},\nnumerical:{numerical[j]}\n"
                    f"analytical:{analytical[j][i]}\n"
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """`gradcheck` of the gradient."""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = _outputs(func, given)
    if grad_outputs is None:
        seeds = [aten.randn(o.shape, dtype=o.dtype).requires_grad_() for o in outputs if o.requires_grad]
    else:
        seeds = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    count = len(given)

    def first(*both: Any) -> Any:
        results = [o for o in _outputs(func, both[:count]) if o.requires_grad]
        wanted = [t for t in both[:count] if isinstance(t, Tensor) and t.requires_grad]
        return tuple(g for g in grad(results, wanted, both[count:], create_graph=True, allow_unused=True)
                     if g is not None)

    return gradcheck(first, (*given, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
