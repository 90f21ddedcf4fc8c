"""`torch.func`: functions that make functions, on top of the ordinary autograd.

`grad`, `vjp`, `jacrev` and `hessian` nest and compose with `requires_grad` as PyTorch's do. `vmap` calls its function
for each example, and `jvp` differentiates twice: there is neither batching of arbitrary code nor forward mode.
"""

from __future__ import annotations

from .._absent import refusing
from .batching import vmap
from .forward import jacfwd, jvp, linearize
from .gradients import grad, grad_and_value, hessian, jacrev, vjp
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]

functionalize = refusing("functionalize", NotImplementedError,
                         "torch.func.functionalize: this runtime does not trace programs")
debug_unwrap = refusing("debug_unwrap", NotImplementedError,
                        "torch.func.debug_unwrap: tensors are not wrapped by the transforms of this runtime")
rearrange = refusing("rearrange", NotImplementedError,
                     "torch.func.rearrange: use permute, reshape or the package einops")
