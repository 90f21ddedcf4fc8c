"""`backward` and `grad`: the public functions that run the engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK, hush
from .._dispatch.state import THREAD
from .._dtype import FLOAT, FROM_NUMPY
from .._memory_format import preserve_format
from .._shape import Size
from .._tensor import Tensor
from .._warn import warn_once
from .engine import run_backward
from .graph import AccumulateGrad, Edge, GradientEdge, edge


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def _inputs(given: Any, function: str) -> tuple[Any, ...]:
    """The inputs to differentiate by: one, several, or the values of a dictionary."""
    if isinstance(given, Mapping):
        if type(given) is not dict:
            raise TypeError(f"`inputs` argument to `{function}()` must be a dict, not {type(given).__name__}. Other "
                            "Mapping types are not supported.")
        given = given.values()
    wanted = _as_tuple(given)
    if not wanted:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    return wanted


def _beginning(tensors: Sequence[Tensor], grads: Any) -> tuple[list[Edge], list[Any]]:
    """The edges to start from, and the first gradients."""
    given = (None,) * len(tensors) if grads is None else _as_tuple(grads)
    if len(given) < len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(given)} gradients")
    quiet = hush() if HOOK["CALLS"] else None
    try:
        return _roots(tensors, _initial_grads(tensors, given))
    finally:
        if quiet is not None:
            quiet.resume()


def _initial_grads(tensors: Sequence[Tensor], grads: Sequence[Any]) -> list[Any]:
    made: list[Any] = []
    for tensor, grad in zip(tensors, grads):
        if isinstance(tensor, GradientEdge):
            shape, kind = tensor.node.meta[tensor.output_nr]
            if isinstance(grad, Tensor) and grad._a.shape != shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{len(made)}] has a shape of {grad.shape} and "
                                   f"output[{len(made)}] has a shape of {Size(shape)}.")
            if grad is None:
                if math.prod(shape) != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                grad = aten.ones(shape, dtype=FROM_NUMPY[kind])
        elif grad is None:
            if tensor.requires_grad:
                if tensor._a.size != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if FROM_NUMPY[tensor._a.dtype].category != FLOAT:
                    raise RuntimeError(
                        "grad can be implicitly created only for real scalar outputs but got "
                        f"{tensor.dtype}"
                    )
                # Not by a context: if a signal handler raises as it is left, it would stay on.
                state = THREAD.state
                enabled, state.grad = state.grad, False
                try:
                    grad = aten.ones_like(tensor, memory_format=preserve_format)
                finally:
                    state.grad = enabled
        elif not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        elif grad._a.shape != tensor._a.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{len(made)}] has a shape of {grad.shape} and output[{len(made)}] has "
                f"a shape of {tensor.shape}."
            )
        elif FROM_NUMPY[grad._a.dtype].is_complex != FROM_NUMPY[tensor._a.dtype].is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. "
                f"Mismatch in dtype: grad_output[{len(made)}] has a dtype of {grad.dtype} and output[{len(made)}] has "
                f"a dtype of {tensor.dtype}."
            )
        elif grad._a.dtype != tensor._a.dtype:
            grad = aten.to(grad, tensor.dtype)
        made.append(grad)
    return made


def _roots(tensors: Sequence[Tensor], grads: Sequence[Any]) -> tuple[list[Edge], list[Any]]:
    roots: list[Edge] = []
    values: list[Any] = []
    for i, (tensor, grad) in enumerate(zip(tensors, grads)):
        found = tensor[:2] if isinstance(tensor, GradientEdge) else edge(tensor)
        if found is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        roots.append(found)
        values.append(grad)
    return roots, values


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` into the leaves (or only into `inputs`).

    >>> import mindtorch_v2 as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    if THREAD.state.transforms:
        raise RuntimeError("backward() called inside a functorch transform. This is not supported, please use "
                           "torch.func.grad or torch.func.vjp instead, or call backward() outside of transforms.")
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    wanted = () if inputs is None else _inputs(inputs, "backward")
    keep = create_graph if retain_graph is None else retain_graph
    roots, values = _beginning(_as_tuple(tensors), grad_tensors)
    if create_graph:
        warn_once("Using backward() with create_graph=True makes a parameter and its gradient refer to each other, "
                  "which keeps their memory until the garbage collector comes. Use autograd.grad, or set .grad to None "
                  "after use.")
    if inputs is None:
        run_backward(roots, values, keep, create_graph)
        return
    for tensor in wanted:
        if isinstance(tensor, Tensor) and not tensor.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    targets = [_target(t, i) for i, t in enumerate(wanted)]
    for tensor, (node, _) in zip(wanted, targets):
        if not isinstance(tensor, GradientEdge) and not isinstance(node, AccumulateGrad):
            tensor.retain_grad()
    run_backward(roots, values, keep, create_graph, targets)


def _target(tensor: Any, position: int) -> Edge:
    if isinstance(tensor, GradientEdge):
        return (tensor.node, tensor.output_nr)
    if not isinstance(tensor, Tensor):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__} as input "
                           f"{position}")
    found = edge(tensor)
    if found is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return found


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    >>> import mindtorch_v2 as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    wanted = _inputs(inputs, "grad")
    if type(inputs) is dict:
        found = grad(outputs, wanted, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                     is_grads_batched, materialize_grads)
        return dict(zip(inputs, found))
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
                      "gradient for other parts of the graph, please use torch.autograd.backward.", FutureWarning,
                      stacklevel=2)
    if is_grads_batched:
        return _grad_of_each(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused,
                             materialize_grads)
    keep = create_graph if retain_graph is None else retain_graph
    roots, values = _beginning(_as_tuple(outputs), grad_outputs)
    found = run_backward(roots, values, keep, create_graph, [_target(t, i) for i, t in enumerate(wanted)],
                         accumulate=False)
    if materialize_grads:
        if any(g is None and isinstance(t, GradientEdge) for g, t in zip(found, wanted)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        return tuple(aten.zeros_like(t, requires_grad=create_graph) if g is None else g for g, t in zip(found, wanted))
    if not allow_unused and any(g is None for g in found):
        at = next(i for i, g in enumerate(found) if g is None)
        raise RuntimeError(f"The differentiated Tensor at index {at} appears to not have been used in the graph. Set "
                           "allow_unused=True if this is the desired behavior.")
    return tuple(found)


def _grad_of_each(outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, create_graph: bool,
                  allow_unused: bool | None, materialize_grads: bool) -> tuple[Any, ...]:
    """`grad` for each slice of the gradients along their first dimension, stacked along a first dimension."""
    batches = (None,) if grad_outputs is None else _as_tuple(grad_outputs)
    sizes = {len(batch) for batch in batches if isinstance(batch, Tensor)}
    if len(sizes) != 1:
        raise ValueError("is_grads_batched=True needs grad_outputs of one size in their first dimension, but got "
                         f"{sorted(sizes) if sizes else 'none'}")
    size = sizes.pop()
    for i, (output, batch) in enumerate(zip(_as_tuple(outputs), batches)):
        if isinstance(batch, Tensor) and isinstance(output, Tensor) and batch._a.shape[1:] != output._a.shape:
            raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                               "as the batch dimension. The others are to match the shape of the corresponding "
                               f"output, but there is a mismatch: grad_output[{i}] has {list(batch._a.shape[1:])} and "
                               f"output[{i}] has a shape of {output.shape}. With vmap only some can be batched.")
    if size == 0:
        raise ValueError("is_grads_batched=True needs at least one gradient, but the first dimension of grad_outputs "
                         "has size 0")
    keep = create_graph if retain_graph is None else retain_graph
    slices = [grad(outputs, inputs, [None if batch is None else batch[i] for batch in batches],
                   keep or i < size - 1, create_graph, True, allow_unused, False, materialize_grads)
              for i in range(size)]
    return tuple(None if parts[0] is None else aten.stack(list(parts)) for parts in zip(*slices))
