"""`torch.func`: functions that make functions, on top of the ordinary autograd.

`grad`, `vjp`, `jacrev` and `hessian` nest and compose with `requires_grad` as PyTorch's do. `vmap` calls its function
for each example, and `jvp` differentiates twice: there is neither batching of arbitrary code nor forward mode.
"""

from __future__ import annotations

import importlib
from typing import Any

from .._absent import refusing
from .batching import vmap
from .forward import jacfwd, jvp, linearize
from .functionalizing import functionalize
from .gradients import grad, grad_and_value, hessian, jacrev, vjp
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]

# What the package `functorch` has besides: its module here is this one.
_FUNCTORCH = {"chunk_vmap": ".experimental", **dict.fromkeys(
    ("combine_state_for_ensemble", "make_functional", "make_functional_with_buffers"), ".._functorch.make_functional"),
    "make_fx": "..fx.experimental.proxy_tensor"}


def __getattr__(name: str) -> Any:
    if name in _FUNCTORCH:
        return getattr(importlib.import_module(_FUNCTORCH[name], __package__), name)
    raise AttributeError(f"module 'torch.func' has no attribute '{name}'")


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor itself: the transforms of this runtime wrap none."""
    return tensor


rearrange = refusing("rearrange", NotImplementedError,
                     "torch.func.rearrange: use permute, reshape or the package einops")
