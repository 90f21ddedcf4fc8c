"""`torch.testing._internal.common_subclass`: classes of tensors that tests go through."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..._dispatch.namespace import aten
from ..._dispatch.overriding import DisableTorchFunction
from ..._tensor import Tensor
from ...overrides import redispatch_function
from ...utils._python_dispatch import return_and_correct_aliasing
from ...utils._pytree import tree_leaves, tree_map
from .logging_tensor import LoggingTensor

__all__ = ["DiagTensorBelow", "NonWrapperTensor", "RedispatchTensor", "SparseTensor", "SubclassInfo", "WrapperTensor",
           "WrapperTensorWithCustomSizes", "WrapperTensorWithCustomStrides", "subclass_db"]


class WrapperTensor(Tensor):
    """A tensor around others. A derived class says in `get_wrapper_properties` what it looks like from outside."""

    @staticmethod
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        like, facts = cls.get_wrapper_properties(*args, **kwargs)
        facts = {"size": like.size(), "dtype": like.dtype, "layout": like.layout, "device": like.device,
                 "requires_grad": like.requires_grad, **facts}
        return Tensor._make_wrapper_subclass(cls, facts.pop("size"), **facts)  # type: ignore[attr-defined]

    @classmethod
    def get_wrapper_properties(cls, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """A tensor to look like, and what is different."""
        raise NotImplementedError("You need to implement get_wrapper_properties")

    def _validate_methods(self) -> None:
        raise NotImplementedError("You need to implement _validate_methods")


class _Around(WrapperTensor):
    """A tensor around one other, which answers every op and says how it is laid out."""

    t: Any
    policy = ""

    @classmethod
    def get_wrapper_properties(cls, t: Any, requires_grad: bool = False) -> tuple[Any, dict[str, Any]]:
        """The same geometry, which the class is asked about."""
        return t, {"requires_grad": requires_grad, "dispatch_sizes_strides_policy": cls.policy}

    def __init__(self, t: Any, requires_grad: bool = False) -> None:
        self.t = t

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"{type(self).__name__}({self.t!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """On the tensor inside."""
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        bare = tree_map(lambda x: x.t if isinstance(x, cls) else x, (args, kwargs or {}))
        made = tree_map(lambda x: cls(x) if isinstance(x, Tensor) else x, func(*bare[0], **bare[1]))
        return return_and_correct_aliasing(func, args, kwargs or {}, made) if hasattr(func, "_schema") else made


class WrapperTensorWithCustomSizes(_Around):
    """One that says what its sizes are."""

    policy = "sizes"


class WrapperTensorWithCustomStrides(_Around):
    """One that says what its strides are."""

    policy = "strides"


class SparseTensor(WrapperTensor):
    """A tensor of which only the elements that are not 0 are kept; ops see all."""

    values: Any
    indices: Any

    @classmethod
    def get_wrapper_properties(cls, size: Any, values: Any, indices: Any, requires_grad: bool = False
                               ) -> tuple[Any, dict[str, Any]]:
        """Elements of the values' type, in another shape."""
        if values.device != indices.device:
            raise AssertionError(f"Expected values.device == indices.device, got {values.device} != {indices.device}")
        return values, {"size": size, "requires_grad": requires_grad}

    def __init__(self, size: Any, values: Any, indices: Any, requires_grad: bool = False) -> None:
        self.values, self.indices = values, indices

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"SparseTensor(values={self.values}, indices={self.indices})"

    def sparse_to_dense(self) -> Any:
        """All elements."""
        made = aten.zeros(self.size(), dtype=self.values.dtype)
        made[self.indices.unbind(1)] = self.values
        return made

    @staticmethod
    def from_dense(t: Any) -> SparseTensor:
        """One of all elements."""
        indices = t.nonzero()
        return SparseTensor(t.size(), t[indices.unbind(1)], indices)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """On all elements."""
        bare = tree_map(lambda x: x.sparse_to_dense() if isinstance(x, cls) else x, (args, kwargs or {}))
        return tree_map(lambda x: cls.from_dense(x) if isinstance(x, Tensor) else x, func(*bare[0], **bare[1]))


class DiagTensorBelow(WrapperTensor):
    """A diagonal matrix of which only the diagonal is kept; ops see the whole matrix."""

    diag: Any

    @classmethod
    def get_wrapper_properties(cls, diag: Any, requires_grad: bool = False) -> tuple[Any, dict[str, Any]]:
        """A square matrix."""
        if diag.ndim != 1:
            raise AssertionError(f"expected 1-dimensional diagonal, got {diag.ndim} dimensions")
        return diag, {"size": diag.size() + diag.size(), "requires_grad": requires_grad}

    def __init__(self, diag: Any, requires_grad: bool = False) -> None:
        self.diag = diag

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"DiagTensorBelow({self.diag!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """On the diagonal for ops that keep it, else on the matrix."""
        if func.overloadpacket._qualified_op_name in ("aten::mul", "aten::detach", "aten::clone", "aten::alias"):
            bare = tree_map(lambda x: x.diag if isinstance(x, cls) else x, (args, kwargs or {}))
            made = func(*bare[0], **bare[1])
            return cls(made) if isinstance(made, Tensor) and made.dim() == 1 else made
        bare = tree_map(lambda x: aten.diag(x.diag) if isinstance(x, cls) else x, (args, kwargs or {}))
        return func(*bare[0], **bare[1])


class NonWrapperTensor(Tensor):
    """A plain derived class with an attribute."""

    extra_state: Any

    @staticmethod
    def __new__(cls: Any, data: Any) -> Any:
        made = Tensor._make_subclass(cls, data.detach(), data.requires_grad)  # type: ignore[attr-defined]
        made.extra_state = {"last_func_called": None}
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Remember which function was called last."""
        made = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(made, cls):
            made.extra_state = {"last_func_called": func.__name__}
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self)(self.detach().clone())
        made.requires_grad_(self.requires_grad)
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made


class RedispatchTensor(Tensor):
    """A derived class that notes the functions that are called, those inside others too."""

    __slots__ = ("call_log",)
    call_log: list[Any]

    def __new__(cls, data: Any, call_log: list[Any] | None = None) -> Any:
        made = Tensor._make_subclass(cls, data, data.requires_grad)  # type: ignore[attr-defined]
        made.call_log = [] if call_log is None else call_log
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        with DisableTorchFunction():
            return super().__repr__()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the function, and let those inside it ask again."""
        log = next((x.call_log for x in tree_leaves((args, kwargs)) if isinstance(x, RedispatchTensor)), None)
        if log is not None:
            log.append((func.__qualname__, types))
        made = redispatch_function(func, types, args, kwargs)
        return tree_map(lambda x: cls(x, log) if isinstance(x, Tensor) and not isinstance(x, RedispatchTensor) else x,
                        made)


class SubclassInfo:
    """A class and how to make one of it, of a shape."""

    __slots__ = ["closed_under_ops", "create_fn", "name"]

    def __init__(self, name: str, create_fn: Any, closed_under_ops: bool = True) -> None:
        self.name, self.create_fn, self.closed_under_ops = name, create_fn, closed_under_ops


def _asked_once(cls: Any, shape: Any) -> Any:
    """An instance that has been asked for its sizes and strides."""
    made = cls(aten.randn(shape))
    made.size()
    made.stride()
    return made


subclass_db = {
    Tensor: SubclassInfo("base_tensor", create_fn=aten.randn),
    NonWrapperTensor: SubclassInfo("non_wrapper_tensor", create_fn=lambda shape: NonWrapperTensor(aten.randn(shape))),
    LoggingTensor: SubclassInfo("logging_tensor", create_fn=lambda shape: LoggingTensor(aten.randn(shape))),
    DiagTensorBelow: SubclassInfo("diag_tensor_below", create_fn=lambda shape: DiagTensorBelow(aten.randn(shape)),
                                  closed_under_ops=False),
    SparseTensor: SubclassInfo("sparse_tensor",
                               create_fn=lambda shape: SparseTensor.from_dense(aten.relu(aten.randn(shape)))),
    WrapperTensorWithCustomSizes: SubclassInfo(
        "wrapper_with_custom_sizes", create_fn=lambda shape: _asked_once(WrapperTensorWithCustomSizes, shape),
        closed_under_ops=False),
    WrapperTensorWithCustomStrides: SubclassInfo(
        "wrapper_with_custom_strides", create_fn=lambda shape: _asked_once(WrapperTensorWithCustomStrides, shape),
        closed_under_ops=False),
    RedispatchTensor: SubclassInfo("redispatch_tensor", create_fn=lambda shape: RedispatchTensor(aten.randn(shape))),
}
