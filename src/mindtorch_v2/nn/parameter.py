"""Tensors that a module owns: `Parameter` is trained, `Buffer` is only kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.hollow import UnmadeArray, use_of_unmade
from .._device import DeviceLike
from .._dispatch.namespace import aten
from .._dispatch.observer import as_one
from .._dispatch.overriding import offer, overrides
from .._dtype import FLOAT, DefaultDtype, DType
from .._shape import Size
from .._tensor import DISABLED, DISPATCHING, InferenceShared, Tensor, TensorMeta, wrap, wrap_as


class _ParameterMeta(TensorMeta):
    """`isinstance(x, Parameter)` also holds for tensors that stay of their own class and have a mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and instance.__dict__.get("_is_param", False))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes part of a module when it is assigned to one of its attributes.

    It shares memory with `data` and requires grad unless told otherwise.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __torch_function__ = staticmethod(DISABLED)  # type: ignore[assignment]

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = wrap(np.empty(0, DefaultDtype.value.np))
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data should be a torch.Tensor, but got {type(data).__name__}")
        if requires_grad and data.dtype.category < FLOAT:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        if overrides(type(data)):
            kept = offer(Tensor.detach, [data], (data,), {})  # type: ignore[attr-defined]
            return marked(kept, data, requires_grad)
        if type(data) in DISPATCHING:
            return marked(aten.detach(data), data, requires_grad)
        with as_one():
            kept = aten.detach(data)
        made = wrap_as(cls, kept._a)
        made._st = kept.shared()
        made._rg = bool(requires_grad)
        if made._rg and type(made._st) is InferenceShared:
            made.requires_grad = True  # which is refused outside inference mode
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # Like PyTorch: neither the gradient nor attributes set by the user are copied along.
        if id(self) not in memo:
            memo[id(self)] = type(self)(aten.clone(self.data), self._rg)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any = None) -> Any:
        return Tensor.__reduce_ex__(self, protocol)  # type: ignore[return-value]


def marked(kept: Tensor, data: Tensor, requires_grad: bool) -> Tensor:
    """A parameter that stays of its own class, which takes ops over."""
    if type(kept) is not type(data):
        raise RuntimeError(f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
                           "detach() returns an instance of the same type, but return type "
                           f"{type(kept).__name__} was found instead. To use the type as a Parameter, please correct "
                           "the detach() semantics defined by its __torch_dispatch__() implementation.")
    kept._rg = bool(requires_grad)
    kept._is_param = True  # type: ignore[attr-defined]
    return kept


class BufferMeta(TensorMeta):
    """`isinstance(x, Buffer)` asks for a mark: buffers are plain tensors otherwise."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.__dict__.get("_is_buffer", False)


class Buffer(Tensor, metaclass=BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to; `persistent` says whether it is saved."""

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = wrap(np.empty(0, DefaultDtype.value.np))
        made = aten.detach(data)
        made._rg = data.requires_grad
        made.persistent = persistent
        made._is_buffer = True
        return made


# Methods that need no shape.
_USABLE = frozenset({"get_device", "is_complex", "is_floating_point"})


class UninitializedTensorMixin:
    """What parameters and buffers without a shape have in common."""

    cls_to_become: type = Tensor
    __torch_function__ = staticmethod(DISABLED)

    def materialize(self, shape: Any, device: DeviceLike = None, dtype: DType | None = None) -> None:
        """Give it a shape, undefined contents, and from now on the behaviour of an ordinary tensor."""
        me: Any = self
        made = aten.empty(shape if isinstance(shape, int) else tuple(shape), dtype=me.dtype if dtype is None else dtype,
                          device=me.device if device is None else device)
        me._a = made._a
        me._st = made.shared()
        me.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Not known yet."""
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
                           "in `load_state_dict` when trying to load an uninitialized parameter into an initialized "
                           "one. Call `forward` to initialize the parameters before accessing their attributes.")

    ndim = 1

    @property
    def data(self) -> Tensor:
        """A tensor without elements."""
        me: Any = self
        return aten.empty(0, dtype=me.dtype, device=me.device)

    def size(self, dim: int | None = None) -> Any:
        """Nothing, in one dimension."""
        return Size([0]) if dim is None else 0

    def share_memory_(self) -> Any:
        """There is no memory to share yet."""
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize "
                           "the parameters before calling `module.share_memory()`.")

    def __getattribute__(self, name: str) -> Any:
        # Methods need a shape, except those that are defined here.
        if name[0] != "_" and name not in _USABLE and name not in vars(UninitializedTensorMixin) and callable(
                getattr(Tensor, name, None)):
            return _refuse_use(name)
        return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        me: Any = self
        return type(self), (me.requires_grad, None, me.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            me: Any = self
            memo[id(self)] = type(self)(me.requires_grad, None, me.dtype)  # type: ignore[call-arg]
        return memo[id(self)]


def _refuse_use(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise use_of_unmade(f"Tensor.{name}")

    return refuse


def _conversion(name: str) -> Any:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.data, name)(*args, **kwargs)

    convert.__name__ = name
    convert.__doc__ = f"A tensor without elements that has the dtype and device that `Tensor.{name}` gives."
    return convert


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul", "pow", "neg",
              "getitem", "setitem", "lt", "le", "gt", "ge", "len", "bool"):
    setattr(UninitializedTensorMixin, f"__{_name}__", _refuse_use(f"__{_name}__"))
for _name in ("half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to"):
    setattr(UninitializedTensorMixin, _name, _conversion(_name))


def _without_shape(cls: type, requires_grad: bool, device: DeviceLike, dtype: DType | None) -> Any:
    like = aten.empty(0, dtype=dtype, device=device)  # knows about defaults
    made = wrap_as(cls, UnmadeArray(like._a.dtype, like.device))
    made._rg = requires_grad
    return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc,override]
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: DeviceLike = None, dtype: DType | None = None) -> Any:
        return _without_shape(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[override]
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: DeviceLike = None, dtype: DType | None = None,
                persistent: bool = True) -> Any:
        made = _without_shape(cls, requires_grad, device, dtype)
        made.persistent, made._is_buffer = persistent, True
        return made


def is_lazy(parameter: Any) -> bool:
    """Whether a parameter or buffer still waits for its shape."""
    return isinstance(parameter, UninitializedTensorMixin)


__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin",
           "is_lazy"]
