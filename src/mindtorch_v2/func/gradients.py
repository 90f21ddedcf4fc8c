"""`grad`, `vjp`, `jacrev`, `hessian`: derivatives of functions as functions.

The arguments that are differentiated are replaced by aliases, so that their gradient can be asked for even if they are
in the middle of a graph; that is what makes the transforms nest. A result keeps its graph only if something is in it
that somebody can still differentiate by: an argument of an outer transform, or a tensor that requires grad. Aliases of
transforms that have returned are neither; they are known by a mark.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from .._autograd.api import grad as differentiate
from .._autograd.forward import without_history
from .._autograd.grad_mode import enable_grad, is_grad_enabled
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._dtype import FLOAT
from .._tensor import Tensor
from ..autograd.graph import disable_saved_tensors_hooks
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten

Argnums = int | tuple[int, ...]
NO_HOOKS = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks."
FORWARD = "jvp(f, primals, tangents)"  # a call for the transforms that are forward mode in PyTorch
LEAF = "torch::autograd::AccumulateGrad"


def _alias(value: Any) -> Any:
    """The same contents, as something to differentiate by."""
    if not isinstance(value, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    if value.requires_grad:
        return aten.view_as(value, value)
    if value.dtype.category < FLOAT:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    made: Any = without_history(value)
    made.requires_grad = made._func_alias = True
    return made


class _Active(threading.local):
    """Aliases of the transforms that are running in this thread."""

    def __init__(self) -> None:
        self.numbers: Counter[int] = Counter()


ACTIVE = _Active()


def _is_outside(leaf: Any, own: set[int]) -> bool:
    """Whether somebody else than this transform may differentiate by a leaf."""
    if id(leaf) in own:
        return False
    return not leaf.__dict__.get("_func_alias") or ACTIVE.numbers[id(leaf)] > 0


def _depends_on_others(outputs: list[Any], own: list[Any]) -> bool:
    """Whether the graph of the outputs leads to leaves that somebody else may differentiate by."""
    mine = {id(tensor) for tensor in own}
    seen: set[Any] = set()
    waiting = []
    for tensor in outputs:
        if isinstance(tensor, Tensor) and tensor.requires_grad:
            if tensor.is_leaf and _is_outside(tensor, mine):
                return True
            waiting.append(tensor.grad_fn)
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == LEAF and _is_outside(node.variable, mine):
            return True
        waiting += [following for following, _ in node.next_functions]
    return False


def _released(tree: Any, keep: bool) -> Any:
    """Results without their graph, unless something outside depends on it."""
    if keep and is_grad_enabled():
        return tree
    return tree_map(lambda leaf: without_history(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def _chosen(argnums: Argnums, args: tuple[Any, ...]) -> tuple[int, ...]:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    made = tuple(number % len(args) for number in numbers)
    if len(set(made)) != len(made):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return made


class _Call:
    """One evaluation of a function with aliased arguments."""

    def __init__(self, func: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any],
                 has_aux: bool, name: str, may_be_empty: bool = False) -> None:
        numbers = () if may_be_empty and not args else _chosen(argnums, args)
        self.name = name
        self.single = isinstance(argnums, int)
        self.trees = [tree_flatten(args[number]) for number in numbers]
        self.aliases = [[_alias(leaf) for leaf in leaves] for leaves, _ in self.trees]
        changed = list(args)
        for number, aliases, (_, spec) in zip(numbers, self.aliases, self.trees, strict=True):
            changed[number] = tree_unflatten(aliases, spec)
        self.flat = [alias for aliases in self.aliases for alias in aliases]
        numbers_of = [id(alias) for alias in self.flat]
        ACTIVE.numbers.update(numbers_of)
        THREAD.state.transforms += 1
        try:
            with disable_saved_tensors_hooks(NO_HOOKS) if name != FORWARD else nullcontext():
                result = func(*changed, **kwargs)
        finally:
            THREAD.state.transforms -= 1
            ACTIVE.numbers.subtract(numbers_of)
        self.aux: Any = None
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
            result, self.aux = result
            for leaf in tree_flatten(self.aux)[0]:
                if not isinstance(leaf, Tensor):
                    raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
        self.output = result

    def keeps_graph(self, outputs: list[Any]) -> bool:
        """Whether results belong to an outer graph."""
        return _depends_on_others(outputs, self.flat)

    def gradients(self, outputs: list[Any], grads: Any, create_graph: bool, retain_graph: bool | None = None) -> Any:
        """Gradients in the structure of the arguments; zeros where an argument was not used."""
        pairs = [(output, grad) for output, grad in zip(outputs, grads, strict=True) if output.requires_grad]
        if pairs:
            found: Any = differentiate([output for output, _ in pairs], self.flat, [grad for _, grad in pairs],
                                       create_graph=create_graph, retain_graph=retain_graph, allow_unused=True)
        else:
            found = [None] * len(self.flat)
        filled = iter(aten.zeros_like(alias) if one is None else one
                      for one, alias in zip(found, self.flat, strict=True))
        trees = [tree_unflatten([next(filled) for _ in leaves], spec) for leaves, spec in self.trees]
        return trees[0] if self.single else tuple(trees)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, whose output is one number, and the output."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            call = _Call(func, argnums, args, kwargs, has_aux, "grad_and_value(f)(*args)")
            output = call.output
            if not isinstance(output, Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                                   f"{type(output)}")
            if output.dim() != 0:
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                                   f"tensor with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs "
                                   "instead?")
            keep = call.keeps_graph([output])
            gradient = call.gradients([output], [None], create_graph=keep)
        output, gradient, aux = (_released(tree, keep) for tree in (output, gradient, call.aux))
        return (gradient, (output, aux)) if has_aux else (gradient, output)

    return wrapper


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, whose output is one number.

    >>> import mindtorch_v2 as torch
    >>> torch.func.grad(torch.func.grad(lambda x: x**3))(torch.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output of `func`, and a function from output gradients to input gradients."""
    return pulled_back(func, primals, has_aux, "vjp(f, *primals)")


def pulled_back(func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, name: str = FORWARD) -> Any:
    """What `vjp` returns."""
    with enable_grad():
        call = _Call(func, tuple(range(len(primals))), primals, {}, has_aux, name, may_be_empty=True)
    outputs, spec = tree_flatten(call.output)
    if outputs in ([], [None]):
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for output in outputs:
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                               f"{type(output)}")
    _refuse_integers(outputs)
    keep = call.keeps_graph(outputs)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        grads, given = tree_flatten(cotangents)
        if given != spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               f"to the function. cotangents: {given}, primal output: {spec}")
        for one in grads:
            if one is not None and not isinstance(one, Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(one).__name__}")
        graph = create_graph
        if graph is None:
            graph = keep or any(one is not None and one.requires_grad for one in grads)
        with enable_grad():
            found = call.gradients(outputs, grads, create_graph=graph, retain_graph=retain_graph)
        return _released(found, graph)

    value = tree_unflatten([_released(output, keep) for output in outputs], spec)
    return (value, pull, _released(call.aux, keep)) if has_aux else (value, pull)


def _refuse_integers(outputs: list[Any]) -> None:
    for output in outputs:
        if output.dtype.category < FLOAT:
            raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor "
                               f"with dtype {output.dtype}")


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, a row (one backward pass) for each number of the output."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return jacobian(func, argnums, has_aux, "jacrev")


def jacobian(func: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str) -> Callable[..., Any]:
    """The function that `jacrev` and `jacfwd` return."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            call = _Call(func, argnums, args, kwargs, has_aux, FORWARD if name == "jacfwd" else "vjp(f, *primals)")
            for number, one in enumerate(call.flat):
                if one.is_complex():
                    raise RuntimeError(f"{name}: Expected all inputs to be real but received complex tensor at "
                                       f"flattened input idx: {number}")
            outputs, spec = tree_flatten(call.output)
            for output in outputs:
                if not isinstance(output, Tensor):
                    raise RuntimeError(f"{call.name}: expected f(*primals) to return only tensors, got unsupported "
                                       f"type {type(output)}")
                if output.is_complex():
                    raise RuntimeError(f"{name}: Expected all outputs to be real but received complex tensor at "
                                       f"flattened input idx: {outputs.index(output)}")
            if name == "jacrev":
                _refuse_integers(outputs)
            keep = call.keeps_graph(outputs)
            made = [_rows(call, output, keep) for output in outputs]
        result = tree_unflatten(made, spec) if outputs else call.output
        result = _released(result, keep)
        return (result, _released(call.aux, keep)) if has_aux else result

    return wrapper


def _rows(call: _Call, output: Any, keep: bool) -> Any:
    """The Jacobian of one output: for each argument, output dimensions followed by the argument's."""
    count = output.numel()
    basis = aten.eye(count, dtype=output.dtype, device=output.device)
    rows = [call.gradients([output], [basis[i].reshape(output.shape)], create_graph=keep, retain_graph=True)
            for i in range(count)]
    if not rows:
        template = call.gradients([], [], create_graph=False)
        return tree_map(lambda leaf: leaf.new_zeros((*output.shape, *leaf.shape)), template)
    flat = [tree_flatten(row) for row in rows]
    stacked = [aten.stack(list(column)).reshape((*output.shape, *column[0].shape))
               for column in zip(*[leaves for leaves, _ in flat], strict=True)]
    return tree_unflatten(stacked, flat[0][1])


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func`: the Jacobian of the Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)
