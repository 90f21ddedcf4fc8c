"""`torch.autograd.functional`: Jacobians, Hessians and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.api import grad
from .._autograd.grad_mode import enable_grad
from .._dispatch.namespace import aten
from .._tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Any, ...]


def _as_tuple(given: Any, name: str, function: str) -> tuple[bool, Tensors]:
    """Whether it was a tuple, and the tuple."""
    is_tuple = isinstance(given, tuple)
    made = given if is_tuple else (given,)
    for number, value in enumerate(made):
        if not isinstance(value, Tensor):
            if is_tuple:
                raise TypeError(f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the "
                                f"value at index {number} has type {type(value)}.")
            raise TypeError(f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the "
                            f"given {name} has type {type(value)}.")
    return is_tuple, made


def _leaves(inputs: Tensors, create_graph: bool) -> Tensors:
    """Aliases to differentiate by: in the graph of the inputs if a graph is to be made, else on their own."""
    return tuple(aten.view_as(x, x) if create_graph and x.requires_grad else aten.detach(x).requires_grad_(True)
                 for x in inputs)


def _same_shapes(v: Tensors, others: Tensors, is_tuple: bool, wants_tuple: bool) -> None:
    if len(v) != len(others):
        raise RuntimeError("v is a tuple of invalid length: should be "
                           f"{len(others)} but got {len(v)}." if wants_tuple else
                           "The given v should contain a single Tensor.")
    for number, (one, other) in enumerate(zip(v, others, strict=True)):
        if one.size() != other.size():
            where = f"Entry {number} in v" if is_tuple else "v"
            raise RuntimeError(f"{where} has invalid size: should be {other.size()} but got {one.size()}.")


def _vector(v: Any, others: Tensors, wants_tuple: bool, name: str, what: str) -> Tensors:
    """The given vector, which must have the shapes of the others; without one, a 1 for a single number."""
    if v is not None:
        is_tuple, vector = _as_tuple(v, "v", name)
        _same_shapes(vector, others, is_tuple, wants_tuple)
        return vector
    if len(others) == 1 and others[0].nelement() == 1:
        return (aten.ones_like(others[0]),)
    raise RuntimeError(f"The vector v can only be None if the {what} a single Tensor with a single element.")


def _checked(strict: bool, values: Tensors, label: str) -> None:
    """With `strict`, everything must depend on the inputs."""
    if not strict:
        return
    for number, value in enumerate(values):
        if not value.requires_grad:
            raise RuntimeError(f"Output {number} of the user-provided function {label}. The outputs must be computed "
                               "in a differentiable manner from the input when running in strict mode.")


INDEPENDENT = {
    "plain": "The output of the user-provided function is independent of input {0}.",
    "row": "Output 0 of the user-provided function is independent of input {0}.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                "input {0} is independent of the input.",
}


def _refuse_constants(found: Any) -> None:
    """With `strict` and a graph, the derivative must depend on the inputs too."""
    for number, one in enumerate(found):
        if not one.requires_grad:
            raise RuntimeError(f"The jacobian of the user-provided function is independent of input {number}. This is "
                               "not allowed in strict mode when create_graph=True.")


def _gradients(outputs: Tensors, inputs: Tensors, grads: Tensors, create_graph: bool, strict: bool,
               stage: str) -> Tensors:
    """Gradients, zeros where there is none; `strict` refuses those."""
    pairs = [(output, one) for output, one in zip(outputs, grads, strict=True)
             if output.requires_grad and one is not None]
    found: Any = [None] * len(inputs)
    if pairs:
        found = grad([output for output, _ in pairs], inputs, [one for _, one in pairs], create_graph=create_graph,
                     retain_graph=True, allow_unused=True)
    if strict and any(one is None for one in found):
        number = [one is None for one in found].index(True)
        raise RuntimeError(INDEPENDENT[stage].format(number) + " This is not allowed in strict mode.")
    if strict and stage in ("plain", "row") and create_graph:
        _refuse_constants(found)
    return tuple(aten.zeros_like(x) if one is None else one for one, x in zip(found, inputs, strict=True))


def _finished(values: Any, create_graph: bool) -> Any:
    if isinstance(values, tuple):
        return tuple(_finished(value, create_graph) for value in values)
    return values if create_graph else aten.detach(values)


def _single(values: Tensors, is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of `func`, and the product of `v` with its Jacobian."""
    with enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "vjp")
        leaves = _leaves(given, create_graph)
        many, outputs = _as_tuple(func(*leaves), "outputs of the user-provided function", "vjp")
        _checked(strict, outputs, "does not require gradients")
        vector = _vector(v, outputs, many, "vjp", "user-provided function returns")
        found = _gradients(outputs, leaves, vector, create_graph, strict, "plain")
    return (_single(_finished(outputs, create_graph), many), _single(_finished(found, create_graph), is_tuple))


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of `func`, and the product of its Jacobian with `v`, by differentiating twice."""
    with enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "jvp")
        leaves = _leaves(given, create_graph)
        vector = _vector(v, given, is_tuple, "jvp", "input to the user-provided function is")
        many, outputs = _as_tuple(func(*leaves), "outputs of the user-provided function", "jvp")
        _checked(strict, outputs, "does not require gradients")
        # The gradient is linear in the output gradients: its derivative by them is the transposed Jacobian.
        probes = tuple(aten.zeros_like(output).requires_grad_(True) for output in outputs)
        pulled = _gradients(outputs, leaves, probes, True, False, "plain")
        if strict:
            _gradients(outputs, leaves, tuple(aten.ones_like(o) for o in outputs), create_graph, True, "plain")
        found = _gradients(pulled, probes, vector, create_graph, False, "plain")
    return _single(_finished(outputs, create_graph), many), _single(_finished(found, create_graph), many)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """The Jacobian of `func`: for each output and input, output dimensions followed by input dimensions.

    `vectorize` and `strategy` change nothing here: there is one backward pass for each number of the output.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
                             'function has more outputs than inputs, "forward-mode" tends to be more performant. '
                             'Otherwise, prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        _check_forward_mode(create_graph, strict, vectorize)
    with enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "jacobian")
        leaves = _leaves(given, create_graph)
        many, outputs = _as_tuple(func(*leaves), "outputs of the user-provided function", "jacobian")
        _checked(strict, outputs, "does not require gradients")
        if strict and vectorize:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                               "supported together. Set one of them to False.")
        made = tuple(_rows(output, leaves, create_graph, strict) for output in outputs)
    made = _finished(made, create_graph)
    rows = tuple(_single(row, is_tuple) for row in made)
    return _single(rows, many)


def _check_forward_mode(create_graph: bool, strict: bool, vectorize: bool) -> None:
    """Refuse what PyTorch does not do in forward mode."""
    for asked, name in ((create_graph, "create_graph"), (strict, "strict")):
        if asked:
            raise (NotImplementedError if name == "create_graph" else RuntimeError)(
                f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` are not supported '
                f'together (yet). Please either set `{name}=False` or `strategy="reverse-mode"`.')
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
                                  "implemented for `vectorize=True`.")


def _rows(output: Any, leaves: Tensors, create_graph: bool, strict: bool) -> Tensors:
    count = output.nelement()
    basis = aten.eye(count, dtype=output.dtype, device=output.device)
    rows = [_gradients((output,), leaves, (basis[i].reshape(output.shape),), create_graph, strict, "row")
            for i in range(count)]
    if not rows:
        return tuple(aten.zeros((*output.shape, *leaf.shape), dtype=leaf.dtype, device=leaf.device) for leaf in leaves)
    return tuple(aten.stack(list(column)).reshape((*output.shape, *leaf.shape))
                 for column, leaf in zip(zip(*rows, strict=True), leaves, strict=True))


def _number(func: Callable[..., Any], function: str, strict: bool = False) -> Callable[..., Any]:
    """`func`, refused unless its output is a single number."""

    def checked(*args: Any) -> Any:
        output = func(*args)
        _, outputs = _as_tuple(output, "outputs of the user-provided function", function)
        _checked(strict, outputs, "does not require gradients")
        if isinstance(output, tuple):
            raise RuntimeError(f"The function given to {function} should return a single Tensor")
        if outputs[0].nelement() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single "
                               "element")
        return outputs[0].reshape(())

    return checked


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The second derivatives of a function with one number as its output."""
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    is_tuple, given = _as_tuple(inputs, "inputs", "hessian")
    checked = _number(func, "hessian", strict)

    def first(*args: Any) -> Any:
        found = jacobian(checked, args, create_graph=True)
        if strict:
            _strict_hessian(checked(*args), found)
        return found if is_tuple else found[0]

    return jacobian(first, inputs if is_tuple else given[0], create_graph=create_graph, strict=strict,
                    vectorize=vectorize, strategy=outer_jacobian_strategy)


def _strict_hessian(output: Any, found: Tensors) -> None:
    """Refuse a function, or a gradient, that does not depend on the inputs."""
    _checked(True, (output,), "does not require gradients")
    for number, one in enumerate(found):
        if not one.requires_grad:
            raise RuntimeError(INDEPENDENT["jacobian"].format(number) + " This is not allowed in strict mode.")


def _second(func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str) -> Any:
    """Output, leaves and gradient of a function with one number as its output, and the vector."""
    is_tuple, given = _as_tuple(inputs, "inputs", name)
    leaves = _leaves(given, create_graph)
    vector = _vector(v, given, is_tuple, name, "input to the user-provided function is")
    output = func(*leaves)
    _number(lambda: output, name, strict)()
    first = _gradients((output,), leaves, (aten.ones_like(output),), True, False, "plain")
    if strict:
        _gradients((output,), leaves, (aten.ones_like(output),), False, True, "plain")
        _strict_hessian(output, first)
    return is_tuple, leaves, vector, output, first


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of `func`, one number, and the product of `v` with its Hessian."""
    with enable_grad():
        is_tuple, leaves, vector, output, first = _second(func, inputs, v, create_graph, strict, "vhp")
        found = _gradients(first, leaves, vector, create_graph, strict, "jacobian")
    return _finished(output, create_graph), _single(_finished(found, create_graph), is_tuple)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of `func`, one number, and the product of its Hessian with `v`: a Hessian is symmetric."""
    with enable_grad():
        is_tuple, leaves, vector, output, first = _second(func, inputs, v, create_graph, strict, "hvp")
        found = _gradients(first, leaves, vector, create_graph, strict, "jacobian")
    return _finished(output, create_graph), _single(_finished(found, create_graph), is_tuple)


def _construct_standard_basis_for(tensors: Tensors, tensor_numels: tuple[int, ...]) -> Tensors:
    """The unit vectors of all numbers of some tensors, as one matrix per tensor."""
    total, made, start = sum(tensor_numels), [], 0
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        part = aten.zeros((total, count), dtype=tensor.dtype, device=tensor.device)
        aten.fill_(aten.diagonal(part, -start), 1)
        made.append(part)
        start += count
    return tuple(made)
