"""`torch._functorch.functional_call`: calls of modules with other parameters, under another address."""

from ..func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
