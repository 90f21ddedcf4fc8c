"""`jvp`, `linearize`, `jacfwd`: directional derivatives.

`jvp` is forward mode. Its levels do not nest: inside one, and for `linearize`, a gradient is differentiated by what is
put in at the outputs, in which it is linear. The values are forward mode's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.api import grad as differentiate
from .._autograd.forward import dual_level, make_dual, unpack_dual, without_history
from .._autograd.grad_mode import enable_grad
from .._autograd.graph import as_leaf
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._random import StreamStates
from .._tensor import LEVELS, Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from .batching import check_not_drawn, check_randomness
from .gradients import Argnums, _released, jacobian, pulled_back

_STRUCTURE = ("{}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
              "of 3 tensors, tangents also must be. Got primals with structure {} and tangents with structure {}")


class _Linear:
    """A function's linear approximation at a point."""

    def __init__(self, func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, name: str) -> None:
        self.name = name
        self.leaves, self.spec = tree_flatten(primals)
        found = pulled_back(func, primals, has_aux)
        self.output, pull = found[0], found[1]
        self.aux = found[2] if has_aux else None
        outputs, self.out_spec = tree_flatten(self.output)
        self.keep = any(one.requires_grad for one in outputs)
        with enable_grad():
            self.probes = [as_leaf(aten.zeros_like(without_history(one))) for one in outputs]
            pulled, _ = tree_flatten(pull(tree_unflatten(self.probes, self.out_spec), create_graph=True))
        self.pulled = pulled

    def __call__(self, *tangents: Any) -> Any:
        """The change of the output with the arguments' changes."""
        given, spec = tree_flatten(tangents)
        if spec != self.spec:
            raise RuntimeError(_STRUCTURE.format(self.name, self.spec, spec))
        for number, (primal, tangent) in enumerate(zip(self.leaves, given, strict=True)):
            if not isinstance(tangent, Tensor) or primal.shape != tangent.shape:
                raise RuntimeError(f"tangent:{number} with shape {getattr(tangent, 'shape', type(tangent))} in "
                                   f"flattened pytree doesn't match the shape {primal.shape} of the corresponding "
                                   "primal.")
            if primal.dtype is not tangent.dtype:
                raise RuntimeError(f"tangent:{number} with dtype {tangent.dtype} in flattened pytree doesn't match the "
                                   f"dtype {primal.dtype} of the corresponding primal.")
        pairs = [(one, change) for one, change in zip(self.pulled, given, strict=True) if one.requires_grad]
        found: Any = [None] * len(self.probes)
        if pairs:
            found = differentiate([one for one, _ in pairs], self.probes, [change for _, change in pairs],
                                  create_graph=self.keep or any(change.requires_grad for change in given),
                                  retain_graph=True, allow_unused=True)
        made = [aten.zeros_like(probe) if one is None else one for one, probe in zip(found, self.probes, strict=True)]
        graph = self.keep or any(change.requires_grad for change in given)
        return _released(tree_unflatten(made, self.out_spec), graph)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The output of `func`, and its change when the arguments change by `tangents`.

    >>> import mindtorch_v2 as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to "
                           "call f(*primals).")
    if not LEVELS:
        return _pushed(func, primals, tangents, has_aux, strict)
    if not isinstance(tangents, tuple):
        raise RuntimeError(_STRUCTURE.format("jvp(f, primals, tangents)", tree_flatten(primals)[1],
                                             tree_flatten(tangents)[1]))
    linear = _Linear(func, primals, has_aux, "jvp(f, primals, tangents)")
    change = linear(*tangents)
    return (linear.output, change, linear.aux) if has_aux else (linear.output, change)


def _pushed(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], has_aux: bool,
            strict: bool = False) -> Any:
    """`jvp` with nothing around it."""
    given, spec = tree_flatten(primals)
    changes, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(_STRUCTURE.format("jvp(f, primals, tangents)", spec, other))
    if not given:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    for name, leaves in (("primals", given), ("tangents", changes)):
        for one in leaves:
            if not isinstance(one, Tensor):
                raise RuntimeError(f"jvp(f, primals, tangents): Expected {name} to only contain Tensors, got "
                                   f"{type(one)}")
    with dual_level():
        duals = [make_dual(one, change) for one, change in zip(given, changes, strict=True)]
        THREAD.state.transforms += 1
        try:
            made = func(*tree_unflatten(duals, spec))
        finally:
            THREAD.state.transforms -= 1
        aux: Any = None
        if has_aux:
            if not (isinstance(made, tuple) and len(made) == 2):
                raise RuntimeError("jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) "
                                   "if has_aux is True")
            made, aux = made
        results, out_spec = tree_flatten(made)
        for one in results:
            if not isinstance(one, Tensor):
                raise RuntimeError("jvp(f, primals, tangents): expected f(*primals) to return only tensors, got "
                                   f"unsupported type {type(one)}")
        pairs = [unpack_dual(one) for one in results]
        if strict and any(pair.tangent is None for pair in pairs):
            raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
                               "This is not allowed with strict=True.")
        output = tree_unflatten([pair.primal for pair in pairs], out_spec)
        change = tree_unflatten([aten.zeros_like(pair.primal) if pair.tangent is None else pair.tangent
                                 for pair in pairs], out_spec)
    return (output, change, aux) if has_aux else (output, change)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of `func`, and the function from changes of the arguments to the change of the output."""
    linear = _Linear(func, primals, False, "linearize")
    return linear.output, linear


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, computed as `jacrev` does."""
    check_randomness(randomness)
    compute = jacobian(func, argnums, has_aux, "jacfwd")

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        before = StreamStates()
        made = compute(*args, **kwargs)
        check_not_drawn(before, randomness)
        return made

    return wrapper
