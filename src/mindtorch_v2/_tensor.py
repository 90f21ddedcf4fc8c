"""`Tensor`: an array with autograd state. It holds no op code; `_methods` hangs the methods on it.

Six slots, because creating a tensor is on every op's path:
- `_a`     the array: `numpy.ndarray` on the CPU, another class per device; shape, strides and dtype live there
- `_rg`    whether gradients flow to it
- `_edge`  `(node, output number)` in the autograd graph, None for leaves
- `_ag`    rarely needed autograd extras (`Extras`): grad, hooks, accumulator
- `_st`    what it shares with its views (`Shared`), made on demand
- `_of`    `(base tensor, version at which _edge was made, how it was made)` if it is a view (`VIEW_KINDS`)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._backends.sparse import COO, CSC, CSR, SparseArray
from ._device import CPU, DeviceLike, as_device, device
from ._dispatch.observer import HOOK
from ._dispatch.state import THREAD
from ._dtype import COMPLEX, FLOAT, FROM_NUMPY, DefaultDtype, dtype, dtype_of_array
from ._shape import Size
from ._storage import BorrowedShared, InferenceShared, Shared, Storage

new = object.__new__
_as_size = tuple.__new__  # what an array's shape holds needs no check


class Extras:
    """Autograd state that few tensors have."""

    grad_dtype: dtype | None
    __slots__ = ("accumulator", "grad", "grad_dtype", "hooks", "name", "post_hooks", "retains_grad")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.accumulator: tuple[Any, int] | None = None
        self.hooks: dict[int, Any] | None = None
        self.post_hooks: dict[int, Any] | None = None
        self.retains_grad = False
        self.name: str | None = None

    def grad_dtype_for(self, tensor: Tensor) -> dtype | None:
        """What `grad_dtype` was set to, else the tensor's dtype: the slot is empty before."""
        return getattr(self, "grad_dtype", tensor.dtype)


def DISABLED(func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_function__` of classes that do not take functions over, such as Parameter."""
    return func(*args, **(kwargs or {}))


def DISABLED_DISPATCH(func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_dispatch__` of Tensor: the op itself, on what memory the tensors have."""
    return OVERRIDING[0].dispatched_to_nobody(func, args, kwargs or {})


class TensorMeta(type):
    """Keeps the set of tensor classes, so that `type(x) in TENSOR_TYPES` can stand for isinstance on the hot path."""

    _overrides: bool  # whether instances take functions over
    __torch_function__: Any
    __torch_dispatch__: Any

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> None:
        super().__init__(name, bases, space)
        if TENSOR_TYPES and "__torch_dispatch__" in space and vars(cls).get("__torch_function__") is None and (
                getattr(cls.__torch_function__, "__func__", None) is vars(Tensor)["__torch_function__"].__func__):
            cls.__torch_function__ = staticmethod(DISABLED)  # it sees every op; the functions around them stay
        cls._overrides = bool(TENSOR_TYPES) and cls.__torch_function__ is not DISABLED
        if TENSOR_TYPES and cls.__torch_dispatch__ is not DISABLED_DISPATCH:
            DISPATCHING.add(cls)
        TENSOR_TYPES.add(cls)


TENSOR_TYPES: set[type] = set()
DISPATCHING: set[type] = set()  # those whose instances take ops over


class Tensor(metaclass=TensorMeta):
    """A multi-dimensional array that can record how it was computed.

    >>> import mindtorch_v2 as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__dict__", "__weakref__", "_a", "_ag", "_edge", "_of", "_rg", "_st")
    _a: Any
    _rg: bool
    _edge: tuple[Any, int] | None
    _ag: Extras | None
    _st: Shared | None
    _of: tuple[Tensor, int, int] | None

    if TYPE_CHECKING:
        # Ops are hung on the class by `_methods`; type checkers are told that they exist.
        # (For checkers only: a real __getattr__ would slow down every attribute of every tensor.)
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __bool__(self) -> bool: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __index__(self) -> int: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]

    # NumPy must leave `array + tensor` to Tensor.__radd__ rather than loop over elements.
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return construct_legacy(cls, *args, **kwargs)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """What happens to functions of instances of a subclass; by default results are of the subclass too."""
        return OVERRIDING[0].default_override(cls, func, types, args, kwargs)

    __torch_dispatch__ = staticmethod(DISABLED_DISPATCH)

    # -- facts about the array ---------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The extents of all dimensions."""
        return _as_size(Size, self._a.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._a.shape)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return FROM_NUMPY[self._a.dtype]

    @property
    def device(self) -> device:
        """Where the memory is."""
        array = self._a
        return CPU if type(array) is np.ndarray else array.device

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._a.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._a.nbytes

    @property
    def is_cpu(self) -> bool:
        """Whether the memory is the host's."""
        return type(self._a) is np.ndarray or self._a.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """Whether there is a shape but no memory."""
        return self.device.type == "meta"

    @property
    def is_npu(self) -> bool:
        """Whether the memory is an Ascend NPU's."""
        return self.device.type == "npu"

    @property
    def layout(self) -> Any:
        """`torch.strided`, or that of a sparse tensor."""
        return LAYOUTS[self._a.layout] if type(self._a) is SparseArray else strided

    @property
    def is_sparse(self) -> bool:
        """Whether only some elements are held, with their positions."""
        return type(self._a) is SparseArray and self._a.layout == COO

    @property
    def is_sparse_csr(self) -> bool:
        """Whether it is sparse, by its rows."""
        return type(self._a) is SparseArray and self._a.layout == CSR

    is_cuda = is_mps = is_xpu = is_quantized = is_mkldnn = is_nested = False

    # -- autograd state ----------------------------------------------------------------------------------------

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op produced it."""
        return self.grad_fn is None

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it."""
        return self._rg or (self._of is not None and self._of[0]._rg and type(self._st) is not InferenceShared)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if self.grad_fn is not None:
            if not value:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                    "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return
        if value and self.dtype.category < FLOAT:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if value and type(self._st) is InferenceShared and not THREAD.state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._rg = value

    @property
    def grad_fn(self) -> Any:
        """The node that computes this tensor's gradient, None for leaves."""
        edge = self._edge if self._of is None else VIEW_EDGE[0](self)
        return None if edge is None else edge[0]

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this is."""
        return 0 if self._edge is None else self._edge[1]

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient."""
        extras = self._ag
        found = None if extras is None else extras.grad
        if found is None and self._edge is not None and not (extras is not None and extras.retains_grad):
            warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: backward() "
                          "fills it only after retain_grad() was called on this tensor. Perhaps a leaf's was meant.",
                          UserWarning, stacklevel=2)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            check_assigned_grad(self, value)
        self.extras().grad = value

    @grad.deleter
    def grad(self) -> None:
        self.extras().grad = None

    _grad = grad

    @property
    def retains_grad(self) -> bool:
        """Whether `.grad` is kept although this is not a leaf."""
        return self._ag is not None and self._ag.retains_grad

    @property
    def name(self) -> str | None:
        """PyTorch's `name`, always None unless set by a tool."""
        return None if self._ag is None else self._ag.name

    def extras(self) -> Extras:
        """The `Extras` of this tensor, made when first needed."""
        if self._ag is None:
            self._ag = Extras()
        return self._ag

    # -- memory ------------------------------------------------------------------------------------------------

    def shared(self) -> Shared:
        """What this tensor has in common with its views."""
        if self._st is None:
            self._st = Shared()
        return self._st

    @property
    def _version(self) -> int:
        shared = self._st
        if type(shared) is InferenceShared:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if shared is None else shared.version

    @property
    def _cdata(self) -> int:
        """A number that no other tensor has while this one lives; a profile's trees call it `impl_ptr`."""
        return id(self)

    @property
    def _base(self) -> Tensor | None:
        """The tensor whose memory this one views, None if it is no view."""
        return self._of[0] if self._of is not None and type(self._st) is not InferenceShared else None

    def _is_view(self) -> bool:
        """Whether this is a view that autograd knows of."""
        return self._of is not None and type(self._st) is not InferenceShared

    def is_inference(self) -> bool:
        """Whether its memory was made in `inference_mode`."""
        return type(self._st) is InferenceShared

    def untyped_storage(self) -> Storage:
        """The storage, shared by all views."""
        shared = self.shared()
        if shared.storage is None:
            shared.storage = Storage(self._a, self.device)
            if type(shared) is BorrowedShared:
                shared.storage.borrowed = True
        return shared.storage

    def data_ptr(self) -> int:
        """Address of the first element."""
        array = self._a
        if not array.size:
            return 0
        return array.__array_interface__["data"][0] if type(array) is np.ndarray else array.data_ptr

    def storage_offset(self) -> int:
        """Elements between the start of the storage and the first element."""
        if not self._a.size:
            return 0
        return (self.data_ptr() - self.untyped_storage().data_ptr()) // self._a.dtype.itemsize

    @property
    def data(self) -> Tensor:
        """The same memory without autograd history and with a version counter of its own."""
        if type(self) in DISPATCHING:
            return self.detach()
        plain = wrap_known(LEVELS[-1].another(self._a) if LEVELS else self._a)
        plain._st = (Shared if type(self._st) is not InferenceShared else InferenceShared)(self.untyped_storage())
        return plain

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._rg and value.dtype.category < FLOAT:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if not SAME_KIND[0](self, value):
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                               "incompatible tensor type.")
        if value._a is self._a:
            return
        move(self, value._a)
        self._st = Shared(value.untyped_storage(), 0 if self.is_inference() else self._version)
        if self._ag is not None and self._ag.accumulator is not None:
            # From now on gradients must match the new memory.
            kind = self._ag.grad_dtype_for(self)
            self._ag.accumulator[0].meta = ((self._a.shape, None if kind is None else kind.np),)


def wrap(array: Any) -> Tensor:
    """A plain tensor around a new array."""
    if HOOK["ALLOCATED"] is not None:
        HOOK["ALLOCATED"](array)
    # `wrap_known` in place: nearly every op comes by here, so a call is saved.
    tensor = new(Tensor)
    tensor._a = array
    tensor._rg = False
    tensor._edge = tensor._ag = tensor._st = tensor._of = None
    if HOOK["INFERENCE"] and THREAD.state.inference:
        tensor._st = InferenceShared()
    return tensor


def move(tensor: Tensor, array: Any) -> None:
    """Give a tensor another array in place of its own."""
    if HOOK["MOVED"] is not None:
        HOOK["MOVED"](tensor, array)
    tensor._a = array


def wrap_known(array: Any) -> Tensor:
    """A plain tensor around memory that another tensor has already accounted for."""
    tensor = new(Tensor)
    tensor._a = array
    tensor._rg = False
    tensor._edge = tensor._ag = tensor._st = tensor._of = None
    return tensor


def alias(tensor: Tensor) -> Tensor:
    """A plain tensor on the same memory and version counter, without history: what `detach` returns."""
    twin = wrap_known(tensor._a)
    twin._st = tensor.shared()
    return twin


def wrap_as(cls: type, array: Any) -> Any:
    """A tensor of a subclass around an array."""
    if cls._overrides:  # type: ignore[attr-defined]
        OVERRIDING[0].first_instance(cls)
    tensor: Any = new(cls)
    tensor._a = array
    tensor._rg = False
    tensor._edge = tensor._ag = tensor._st = tensor._of = None
    if cls in DISPATCHING:
        OVERRIDING[0].watch_ops(tensor)
    return tensor


# How PyTorch's messages about gradients call dtypes.
C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
           "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "int64": "long"}


def check_assigned_grad(tensor: Tensor, value: Any) -> None:
    """PyTorch's conditions on `x.grad = value`."""
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    kind = tensor.dtype if tensor._ag is None else tensor._ag.grad_dtype_for(tensor)
    if kind is not None and kind is not value.dtype:
        given, wanted = (C_NAMES.get(one.name, one.name) for one in (value.dtype, kind))
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{given}' to a tensor with grad_dtype '{wanted}'. The "
            "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype); None allows any."
        )
    if value.device.type != tensor.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device}' to a tensor with device type "
            f"'{tensor.device}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if value._a.shape != tensor._a.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._a.shape)}' to a tensor of size "
            f"'{list(tensor._a.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )


def check_options(where: str, device: DeviceLike, unknown: dict[str, Any], name: str = "new") -> None:
    """Refuse what the old constructors of a device do not take."""
    if unknown:
        raise TypeError(f"{name}() received an invalid combination of arguments: some of the keywords were incorrect: "
                        f"{', '.join(unknown)}")
    if device is not None and as_device(device).type != where:
        raise RuntimeError(f"legacy constructor expects device type: {where} but device type: "
                           f"{as_device(device).type} was passed")


def construct_legacy(cls: type, *args: Any, device: DeviceLike = None, **unknown: Any) -> Tensor:
    """`torch.Tensor(2, 3)` and `torch.Tensor([1, 2])`: the old constructor, in the default dtype."""
    check_options("cpu", device, unknown)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].as_subclass(cls)
    made: Tensor = LEGACY[0](DefaultDtype.value, args)
    return made if cls is Tensor else wrap_as(cls, made._a)


# Set by the module of that name: who takes functions over.
OVERRIDING: list[Any] = []
# Set by the op table: whether a tensor can take over another's memory.
SAME_KIND: list[Any] = []
# Set by the functions that make tensors of data: what the old constructors make of their arguments.
LEGACY: list[Any] = []


class Layout:
    """How the elements lie in memory; tensors are strided or in coordinate form, other layouts can only be named."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name.rpartition(".")[2]  # pickled by name: there is one of each


strided = Layout("torch.strided")
LAYOUTS = {name: Layout(f"torch.{name}") for name in (COO, CSR, CSC)}
sparse_coo, sparse_csr, sparse_csc = LAYOUTS.values()
# Set by the autograd graph: finds the edge of a view, whose history follows its base's in-place changes.
VIEW_EDGE: list[Any] = []
# Filled by forward mode: the levels that are open, which know the tangents of tensors.
LEVELS: list[Any] = []


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_differentiable_dtype(array_dtype: np.dtype) -> bool:
    """Whether tensors of this NumPy dtype can carry gradients."""
    return dtype_of_array(array_dtype).category in (FLOAT, COMPLEX)
