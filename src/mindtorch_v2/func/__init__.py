"""`torch.func`: functions that make functions, on top of the ordinary autograd.

`grad`, `vjp`, `jacrev` and `hessian` nest and compose with `requires_grad` as PyTorch's do. What needs forward mode or
batching of arbitrary code (`jvp`, `jacfwd`, `vmap`, ...) is refused.
"""

from __future__ import annotations

from .._absent import refusing
from .gradients import grad, grad_and_value, hessian, jacrev, vjp
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]

_FORWARD = "torch.func.{0}: this runtime has no forward-mode differentiation; {1}"
_BATCHING = "torch.func.{0}: this runtime cannot batch a function automatically; {1}"
vmap = refusing("vmap", NotImplementedError, _BATCHING.format("vmap", "give the function a batch dimension, or loop"))
jvp = refusing("jvp", NotImplementedError, _FORWARD.format(
    "jvp", "torch.autograd.functional.jvp computes the same by differentiating twice"))
jacfwd = refusing("jacfwd", NotImplementedError, _FORWARD.format("jacfwd", "jacrev gives the same Jacobian"))
linearize = refusing("linearize", NotImplementedError, _FORWARD.format("linearize", "use vjp for the transposed map"))
functionalize = refusing("functionalize", NotImplementedError,
                         "torch.func.functionalize: this runtime does not trace programs")
debug_unwrap = refusing("debug_unwrap", NotImplementedError,
                        "torch.func.debug_unwrap: tensors are not wrapped by the transforms of this runtime")
rearrange = refusing("rearrange", NotImplementedError,
                     "torch.func.rearrange: use permute, reshape or the package einops")
