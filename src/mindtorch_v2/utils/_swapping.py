"""`torch.utils.swap_tensors`: two tensors trade places under the references that programs hold."""

from __future__ import annotations

import weakref

from .._tensor import Tensor

# All that a tensor is, besides its class and the attributes that a program gave it.
PARTS = ("_a", "_ag", "_edge", "_of", "_rg", "_st")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let each tensor be what the other was: memory, class, gradient and attributes.

    >>> import mindtorch_v2 as torch
    >>> a, b = torch.zeros(1), torch.ones(2)
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        # Whoever refers to a tensor weakly, a graph that ends in it among others, means what it was.
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    first, second = ([getattr(tensor, part) for part in PARTS] for tensor in (t1, t2))
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for tensor, parts in ((t1, second), (t2, first)):
        for part, value in zip(PARTS, parts, strict=True):
            setattr(tensor, part, value)
