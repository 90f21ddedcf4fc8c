"""`torch._functorch.apis`: the transforms of `torch.func` under another address."""

from ..func import grad, grad_and_value, vmap
from ..func.experimental import chunk_vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
