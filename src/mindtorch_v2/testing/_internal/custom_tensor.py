"""`torch.testing._internal.custom_tensor`: a tensor class that only forwards its ops."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ...utils._pytree import tree_map_only

__all__ = ["CustomTensorPlainOut"]


class CustomTensorPlainOut(Tensor):
    """Holds two tensors; ops run on both, and their sum is a plain tensor."""

    elem1: Any
    elem2: Any

    @staticmethod
    def __new__(cls, elem1: Any, elem2: Any) -> Any:
        """A tensor without memory of its own."""
        return Tensor._make_wrapper_subclass(cls, elem1.shape, dtype=elem1.dtype, device=elem1.device,  # type: ignore[attr-defined]
                                             requires_grad=elem1.requires_grad)

    def __init__(self, elem1: Any, elem2: Any) -> None:
        self.elem1, self.elem2 = elem1, elem2

    def get_elem(self) -> Any:
        """The first."""
        return self.elem1

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The sum of what the op gives for the one and for the other."""
        kwargs = kwargs or {}
        first = func(*tree_map_only(cls, lambda one: one.elem1, args), **kwargs)
        second = func(*tree_map_only(cls, lambda one: one.elem2, args), **kwargs)
        return first + second
