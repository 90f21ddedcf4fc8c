"""`torch.testing._internal.two_tensor`: a tensor made of two; ops run on both."""

from __future__ import annotations

import operator
from typing import Any

from ..._tensor import Tensor
from ...utils import _pytree as pytree
from ...utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

__all__ = ["TwoTensor", "TwoTensorMode"]


class TwoTensor(Tensor):
    """Two tensors of one shape in one.

    >>> import mindtorch_v2 as torch
    >>> pair = TwoTensor(torch.ones(2), torch.zeros(2)) + 1
    >>> pair.a, pair.b
    (tensor([2., 2.]), tensor([1., 1.]))
    """

    a: Any
    b: Any

    @staticmethod
    def __new__(cls: Any, a: Any, b: Any, outer_size: Any = None, outer_stride: Any = None, *,
                requires_grad: Any = None) -> Any:
        if a.device != b.device or a.dtype != b.dtype or a.shape != b.shape or a.stride() != b.stride():
            raise AssertionError("both tensors must have the same device, dtype, shape and strides")
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, a.size() if outer_size is None else outer_size,
            strides=a.stride() if outer_stride is None else outer_stride, dtype=a.dtype, device=a.device,
            requires_grad=a.requires_grad or b.requires_grad if requires_grad is None else requires_grad)
        made.a, made.b = a, b
        return made

    def __init__(self, a: Any, b: Any, *args: Any, **kwargs: Any) -> None:
        pass

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"TwoTensor({self.a!r}, {self.b!r})"

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Any], meta: Any, outer_size: Any, outer_stride: Any) -> Any:
        return TwoTensor(inner_tensors["a"], inner_tensors["b"], outer_size, outer_stride)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op on the first parts, then on the second, and pair the results."""
        kwargs = kwargs or {}
        calls = [pytree.tree_map_only(TwoTensor, operator.attrgetter(part), (args, kwargs)) for part in ("a", "b")]
        of_a, of_b = (func(*positional, **named) for positional, named in calls)
        made = pytree.tree_map(lambda x, y: TwoTensor(x, y) if isinstance(x, Tensor) else x, of_a, of_b)
        return return_and_correct_aliasing(func, args, kwargs, made)

    def get_elem_a(self) -> Any:
        """The first."""
        return self.a


class TwoTensorMode(TorchDispatchMode):
    """What is made inside is a `TwoTensor` of two of it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op; new tensors are made twice."""
        made = func(*args, **(kwargs or {}))
        if any(isinstance(one, Tensor) for one in pytree.tree_leaves((args, kwargs))):
            return made
        return TwoTensor(made, made.clone()) if isinstance(made, Tensor) else made
