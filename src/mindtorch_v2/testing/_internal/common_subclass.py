"""`torch.testing._internal.common_subclass`: classes of tensors that tests go through."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ...overrides import redispatch_function
from ...utils._pytree import tree_leaves, tree_map
from .logging_tensor import LoggingTensor

__all__ = ["DiagTensorBelow", "NonWrapperTensor", "RedispatchTensor", "SparseTensor", "SubclassInfo", "WrapperTensor",
           "subclass_db"]


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


class SparseTensor(WrapperTensor):
    """The elements that are not zero, and where they are; ops compute with the dense tensor."""

    values: Any  # type: ignore[assignment]
    indices: Any  # type: ignore[assignment]

    @classmethod
    def get_wrapper_properties(cls, size: Any, values: Any, indices: Any,
                               requires_grad: bool = False) -> tuple[Any, dict[str, Any]]:
        """Like the values, of the full size."""
        return values, {"size": size, "requires_grad": requires_grad}

    def __init__(self, size: Any, values: Any, indices: Any, requires_grad: bool = False) -> None:
        self.values, self.indices = values, indices

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"SparseTensor(values={self.values!r}, indices={self.indices!r})"

    def sparse_to_dense(self) -> Any:
        """All elements."""
        dense = aten.zeros(self.size(), dtype=self.values.dtype)
        dense[self.indices.unbind(1)] = self.values
        return dense

    @classmethod
    def from_dense(cls, dense: Any) -> Any:
        """Of a plain tensor."""
        indices = dense.nonzero()
        return cls(dense.size(), dense[indices.unbind(1)], indices)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """On dense tensors, and back."""
        bare = tree_map(lambda x: x.sparse_to_dense() if isinstance(x, cls) else x, (args, kwargs or {}))
        return tree_map(lambda x: cls.from_dense(x) if isinstance(x, Tensor) else x, func(*bare[0], **bare[1]))


class RedispatchTensor(Tensor):
    """A derived class that notes each function that is offered to it, and lets it run."""

    call_log: list[Any]

    @staticmethod
    def __new__(cls: Any, data: Any, call_log: Any = None) -> Any:
        made = Tensor._make_subclass(cls, data, require_grad=data.requires_grad)  # type: ignore[attr-defined]
        made.call_log = [] if call_log is None else call_log
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the call; its results share the list of notes."""
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, cls)]
        log = given[0].call_log if given else None
        if log is not None:
            log.append((func.__qualname__, types))

        def noted(x: Any) -> Any:
            return cls(x, log) if isinstance(x, Tensor) and not isinstance(x, cls) else x

        return tree_map(noted, redispatch_function(func, types, args, kwargs))


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
        made = type(self)(self.clone())
        made.extra_state = deepcopy(self.extra_state, memo)
        return made


class SubclassInfo:
    """A class and how to make one of it, of a shape."""

    __slots__ = ["closed_under_ops", "create_fn", "name"]

    def __init__(self, name: str, create_fn: Any, closed_under_ops: bool = True) -> None:
        self.name, self.create_fn, self.closed_under_ops = name, create_fn, closed_under_ops


subclass_db = {
    Tensor: SubclassInfo("base_tensor", create_fn=aten.randn),
    NonWrapperTensor: SubclassInfo("non_wrapper_tensor", create_fn=lambda shape: NonWrapperTensor(aten.randn(shape))),
    LoggingTensor: SubclassInfo("logging_tensor", create_fn=lambda shape: LoggingTensor(aten.randn(shape))),
    SparseTensor: SubclassInfo("sparse_tensor",
                               create_fn=lambda shape: SparseTensor.from_dense(aten.relu(aten.randn(shape)))),
    DiagTensorBelow: SubclassInfo("diag_tensor_below", create_fn=lambda shape: DiagTensorBelow(aten.randn(shape)),
                                  closed_under_ops=False),
    RedispatchTensor: SubclassInfo("redispatch_tensor", create_fn=lambda shape: RedispatchTensor(aten.randn(shape))),
}
