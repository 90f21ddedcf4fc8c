"""`jvp`, `linearize`, `jacfwd`: directional derivatives.

There is no forward mode: a gradient is linear in what is put in at the outputs, so differentiating it by that gives the
other direction. The values are forward mode's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.api import grad as differentiate
from .._autograd.grad_mode import enable_grad
from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from .gradients import Argnums, _released, jacrev, vjp


class _Linear:
    """A function's linear approximation at a point."""

    def __init__(self, func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, name: str) -> None:
        self.name = name
        self.leaves, self.spec = tree_flatten(primals)
        found = vjp(func, *primals, has_aux=has_aux)
        self.output, pull = found[0], found[1]
        self.aux = found[2] if has_aux else None
        outputs, self.out_spec = tree_flatten(self.output)
        self.keep = any(one.requires_grad for one in outputs)
        with enable_grad():
            self.probes = [aten.zeros_like(aten.detach(one)).requires_grad_(True) for one in outputs]
            pulled, _ = tree_flatten(pull(tree_unflatten(self.probes, self.out_spec), create_graph=True))
        self.pulled = pulled

    def __call__(self, *tangents: Any) -> Any:
        """The change of the output with the arguments' changes."""
        given, spec = tree_flatten(tangents)
        if spec != self.spec:
            raise RuntimeError(f"{self.name}: Expected primals and tangents to have the same python structure. For "
                               f"example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
                               f"structure {self.spec} and tangents with structure {spec}")
        for primal, tangent in zip(self.leaves, given, strict=True):
            if not isinstance(tangent, Tensor) or primal.shape != tangent.shape:
                raise RuntimeError(f"{self.name}: tangents must be tensors of the primals' shapes")
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
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple):
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {name} to be a tuple. E.g. it should be valid to "
                               "call f(*primals).")
    linear = _Linear(func, primals, has_aux, "jvp(f, primals, tangents)")
    change = linear(*tangents)
    return (linear.output, change, linear.aux) if has_aux else (linear.output, change)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of `func`, and the function from changes of the arguments to the change of the output."""
    linear = _Linear(func, primals, False, "linearize")
    return linear.output, linear


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None,
           randomness: str = "error") -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, computed as `jacrev` does."""
    return jacrev(func, argnums, has_aux=has_aux, chunk_size=chunk_size)
