"""Methods of Tensor that ask about it, share its memory, or make tensors like it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from ._autograd.function import mark_underivable
from ._autograd.graph import edge, leaf_edge
from ._autograd.inplace import bump, check_inplace
from ._backends import flipped
from ._backends.array import phantom, seen_through
from ._backends.base import empty_array, resolved
from ._backends.cpu.view import as_strided as strided_view
from ._backends.geometry import row_major, span_bytes
from ._backends.hollow import hollow
from ._backends.sparse import COO, SparseArray
from ._construct import construct
from ._construct import tensor as make_tensor
from ._device import CPU, DeviceLike
from ._device import device as as_device
from ._dispatch import out_rules
from ._dispatch.namespace import aten
from ._dispatch.observer import as_one
from ._dispatch.state import THREAD
from ._dispatch.steps import step
from ._dlpack import DLDeviceType, exported
from ._dtype import DefaultDtype, DType, dtype, uint8
from ._legacy import typename
from ._library.fact_ops import let_answer
from ._memory_format import MemoryFormat
from ._moving import share
from ._shape import numel
from ._shared_memory import is_shared_memory
from ._storage import Shared, Storage
from ._storage_removal import warn
from ._tensor import DISPATCHING, Tensor, check_options, move, strided, wrap_as
from ._typed_storage import TypedStorage, storage_class, typed_as

# -- questions -------------------------------------------------------------------------------------------------------


def is_conj(self: Tensor) -> bool:
    """Whether this is a view that shows the conjugates of what is in memory."""
    return flipped.is_conj(self._a)


def is_neg(self: Tensor) -> bool:
    """Whether this is a view that shows the negatives of what is in memory."""
    return flipped.is_neg(self._a)


def is_distributed(self: Tensor) -> bool:
    """False: no tensor is spread over processes."""
    return False


def is_pinned(self: Tensor, device: DeviceLike = None) -> bool:
    """Whether its memory is host memory that a device copies from while the program goes on."""
    from ._backends.npu.host import is_pinned_array

    return type(self._a) is np.ndarray and is_pinned_array(self._a)


def is_shared(self: Tensor) -> bool:
    """Whether `share_memory_` moved it to memory that processes share."""
    return is_shared_memory(flipped.plain(self._a))


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both have the same memory and geometry."""
    return aten.is_set_to(self, tensor)


def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions: all, unless the tensor is sparse."""
    return len(self._a.shape) - sparse_dim(self)


def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions."""
    return len(self._a.indices) if isinstance(self._a, SparseArray) else 0


def dim_order(self: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost to the innermost in memory, if told so only where there is one such order."""
    steps, formats = self.stride(), ambiguity_check
    if not isinstance(formats, bool) and not (
            isinstance(formats, list) and all(isinstance(one, MemoryFormat) for one in formats)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    several = 1 in self._a.shape or any(one == other for one, other in pairwise(steps))
    fitting = [one for one in formats if self.is_contiguous(memory_format=one)] if isinstance(formats, list) else []
    if formats is not False and several and len(fitting) != 1:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory "
                           "formats.")
    return tuple(sorted(range(len(steps)), key=lambda d: (-steps[d], d)))


def to_dense(self: Tensor, dtype: DType | None = None, *, masked_grad: bool = True) -> Tensor:
    """This tensor with all its elements, in another dtype if asked for."""
    if isinstance(self._a, SparseArray):
        self = aten.to_dense__default(self)
    return self if dtype is None else aten.to(self, dtype)


# -- memory ----------------------------------------------------------------------------------------------------------


def storage(self: Tensor) -> TypedStorage:
    """The storage, read in this tensor's dtype."""
    warn()
    return _typed_storage(self)


def _typed_storage(self: Tensor) -> TypedStorage:
    """`storage` without the warning, for PyTorch's own parts."""
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def storage_type(self: Tensor) -> Any:
    """`torch.FloatStorage` and so on."""
    return storage_class(self.dtype)


def share_memory_(self: Tensor) -> Tensor:
    """Move the memory, with all tensors on it, to where processes share it: those that are forked, and those that this
    tensor is sent to."""
    from .multiprocessing.reductions import init_reductions

    if not self.is_cpu:
        return self  # memory of a device is shared by its own means
    init_reductions()
    share(self)
    return self


def _same_device(self: Tensor, other: as_device) -> None:
    if self.device != other:
        raise RuntimeError(f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on '
                           f'different device "{other}". The devices must match.')


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor a view of other memory."""
    recording = THREAD.state.grad and (self.requires_grad or (isinstance(source, Tensor) and source.requires_grad))
    if recording and self.requires_grad:
        check_inplace(self)
    if source is None:
        array, kept = _nothing(self._a) if self.is_cpu else empty_array((0,), self._a.dtype, self.device), None
    elif isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError("Could not set tensor of type {} to a tensor of type {}".format(
                *(out_rules.NAMES.get(one.dtype.name, one.dtype.name) for one in (source, self))))
        _same_device(self, source.device)
        array, kept = _other(self._a, flipped.plain(source._a)), source.untyped_storage()
        if size is not None:
            view = strided_view if self.is_cpu else view_on_device
            array = view(array, tuple(size), _steps(size, stride), storage_offset)
    else:
        kept = typed_as(self.dtype, source)
        if not isinstance(kept, Storage):
            raise TypeError(f"set_(): argument 'source' must be a Tensor or a storage, not {type(source).__name__}")
        _same_device(self, kept.device)
        if self.is_cpu:
            if size is not None and min(size, default=1) > 0:
                _grow(kept, self._a.itemsize, storage_offset, tuple(size), _steps(size, stride))
            array = (_whole(self._a, kept) if size is None else
                     _part(self._a, kept, storage_offset, tuple(size), _steps(size, stride)))
        else:
            count = kept.nbytes() // self._a.itemsize
            array = view_on_device(kept.array.over((count,), (self._a.itemsize,), 0, self._a.dtype),
                                   (count,) if size is None else tuple(size),
                                   (1,) if size is None else _steps(size, stride), storage_offset)
    move(self, array)
    self._st = Shared(kept, self._version)
    self._of = None
    if self._ag is not None and self._ag.accumulator is not None:
        # Graphs that were recorded lead to what this tensor was, as in PyTorch; hooks stay.
        hooks, self._ag.accumulator = self._ag.accumulator[0].hooks, None
        leaf_edge(self)[0].hooks = hooks
    bump(self)
    if recording:
        mark_underivable(self, "set_")
    return self


def _grow(storage: Storage, item: int, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> None:
    """Make a storage large enough for a window on it, with the tensors that are on it already."""
    if offset < 0 or min(stride, default=0) < 0:
        return  # a mistake that is found later
    needed = (offset + 1 + sum((count - 1) * step for count, step in zip(size, stride))) * item
    if needed > storage.nbytes() and storage.resizable():
        storage.resize_(needed)


def view_on_device(array: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """`strided_view` of memory that is not the host's."""
    return seen_through(array, strided_view(phantom(array), size, stride, offset))


@step("aten::set_")
def _nothing(own: Any) -> Any:
    """No elements, in the dtype of an array."""
    return np.empty(0, own.dtype)


@step("aten::set_", "source_Tensor")
def _other(own: Any, source: Any) -> Any:
    """The elements of another tensor."""
    return source


@step("aten::set_", "source_Storage", lambda own, source: (own, None))
def _whole(own: Any, source: Storage) -> Any:
    """All elements of a storage, in the dtype of an array."""
    raw = source.bytes()
    return raw[: len(raw) // own.itemsize * own.itemsize].view(own.dtype)


@step("aten::set_", "source_Storage_storage_offset",
      lambda own, source, offset, size, stride: (own, None, offset, size, stride))
def _part(own: Any, source: Storage, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """Elements of a storage, in the dtype of an array."""
    raw = source.bytes()
    return strided_view(raw[: len(raw) // own.itemsize * own.itemsize].view(own.dtype), size, stride, offset)


def copied(storage: Storage) -> Storage:
    """The same bytes in new memory."""
    if type(storage.array) is not np.ndarray:
        return storage.clone()
    made = Storage(np.empty(storage.nbytes(), np.uint8), storage.device)
    new, old = (set_(aten.empty(0, dtype=uint8, device=CPU), one) for one in (made, storage))
    aten.copy_(new, old)
    return made


def _steps(size: Any, stride: Any) -> tuple[int, ...]:
    if stride:
        return tuple(stride)
    return tuple(numel(tuple(size)[d + 1:]) for d in range(len(tuple(size))))


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Change the shape to another tensor's."""
    return aten.resize_as_(self, the_template, memory_format=memory_format)


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The same elements in another shape (an old name of `reshape`)."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if numel(shape) != self._a.size:
        wanted, present = ("x".join(map(str, extents)) for extents in (shape, self._a.shape))
        raise RuntimeError(f"requested resize to {wanted} ({numel(shape)} elements in total), but the given tensor has "
                           f"a size of {present} ({self._a.size} elements). autograd's resize can only change the "
                           "shape of a given tensor, while preserving the number of elements. ")
    return aten.reshape(self, shape)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The same elements in another tensor's shape."""
    return resize(self, tensor._a.shape)


def _check_subclass(cls: Any) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. "
                        "Make sure your class inherits from Tensor.")


def _is_taken(tensor: Tensor, cls: type) -> bool:
    """Whether an op's answer for a new tensor is an instance of the subclass already; it must not be of another."""
    if type(tensor) is Tensor:
        return False
    if not isinstance(tensor, cls):
        raise RuntimeError(f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already "
                           f"associated to a python object of type {type(tensor).__name__} which is not a subclass of "
                           "the requested type")
    return True


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same memory and history as an instance of a subclass."""
    _check_subclass(cls)
    view = aten.alias(self)
    if _is_taken(view, cls):
        return view
    made = wrap_as(cls, view._a)
    made._st, made._of, made._edge, made._rg = view._st, view._of, view._edge, view._rg
    return made


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False, **options: Any) -> Any:
    """The same memory, without history, as an instance of a subclass."""
    _check_subclass(cls)
    with nullcontext() if type(data) in DISPATCHING else as_one():  # a class is asked about the op
        kept = aten.detach(data)
    if _is_taken(kept, cls):
        kept.requires_grad = bool(require_grad)
        return kept
    made = wrap_as(cls, kept._a)
    made._st, made._rg = kept.shared(), bool(require_grad)
    return made


def _make_wrapper_subclass(cls: type, size: Any, strides: Any = None, storage_offset: Any = None,
                           memory_format: MemoryFormat | None = None, dtype: DType | None = None, layout: Any = strided,
                           device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False,
                           dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False,
                           dispatch_layout: bool = False, _extra_dispatch_keys: Any = None,
                           storage_size: int | None = None) -> Any:
    """An instance without memory of a subclass whose `__torch_dispatch__` answers every op."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if cls not in DISPATCHING:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    kind = (DefaultDtype.value if dtype is None else dtype).np
    shape = tuple(int(n) for n in size)
    steps = None if strides is None else tuple(int(s) * kind.itemsize for s in strides)
    if steps is None and memory_format is not None:
        steps = aten.empty(shape, dtype=dtype, device="meta", memory_format=memory_format)._a.strides
    offset = int(storage_offset or 0) * kind.itemsize
    nbytes = span_bytes(shape, row_major(shape, kind.itemsize) if steps is None else steps, kind.itemsize) + offset
    made = wrap_as(cls, hollow(shape, kind, steps, offset, resolved(as_device("cpu" if device is None else device)),
                               nbytes if storage_size is None else storage_size))
    made.requires_grad = requires_grad
    policies = (dispatch_sizes_strides_policy, "device" if dispatch_device else None,
                "layout" if dispatch_layout else None)
    for policy in policies:
        if policy is not None:
            let_answer(made, policy)
    return made


# -- new tensors -----------------------------------------------------------------------------------------------------


def new_tensor(self: Tensor, data: Any, *, dtype: DType | None = None, device: DeviceLike = None,
               requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    """A copy of data in this tensor's dtype and device unless told otherwise."""
    return make_tensor(data, dtype=dtype or self.dtype, device=self.device if device is None else device,
                       requires_grad=requires_grad, pin_memory=pin_memory)


def new(self: Tensor, *args: Any, device: DeviceLike = None, size: Any = None, **unknown: Any) -> Tensor:
    """The old constructor in this tensor's dtype: sizes, a sequence of values, or a tensor; sparse if this one is."""
    check_options(self.device.type, device, unknown)
    if isinstance(self._a, SparseArray) and self._a.layout == COO:
        return _new_sparse(self, args, size)
    if size is not None:
        return aten.empty(tuple(size), dtype=self.dtype)
    return construct(self.dtype, args)


def _new_sparse(self: Tensor, args: tuple[Any, ...], size: Any) -> Tensor:
    if len(args) > 1 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
        return aten.sparse_coo_tensor(*args) if size is None else aten.sparse_coo_tensor(*args, size)
    if size is None:
        size = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args or (0,)
    return aten.sparse_coo_tensor(tuple(size), dtype=self.dtype)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in this tensor's place."""
    return other.detach() if assign else self.copy_(other).detach()


# -- Python functions on every element -------------------------------------------------------------------------------


def _mapped(name: str, self: Tensor, others: tuple[Tensor, ...], function: Callable[..., Any]) -> Tensor:
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for place, other in enumerate(others, 1):
        called = "other" if len(others) == 1 else "xy"[place - 1]
        if not isinstance(other, Tensor):
            raise TypeError(f"{name}(): argument '{called}' (position {place}) must be Tensor, not "
                            f"{type(other).__name__}")
        if other.requires_grad:
            raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
                               "instead.")
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {typename(self)} for {'' if len(others) == 1 else 'argument '}"
                            f"'{called}' (got {typename(other)})")
    if self.is_meta:
        return self  # there are no elements
    if not self.is_cpu:
        raise TypeError(f"{name} is only implemented on CPU tensors")
    shown = [self, *(aten.expand(other, self._a.shape) for other in others)]
    arrays = [t._a.astype(np.float32) if t.dtype.name == "bfloat16" else t._a for t in shown]
    made = np.frompyfunc(function, len(arrays), 1)(*[a.astype(object) for a in arrays])
    if any(isinstance(one, str) for one in np.asarray(made).flat):
        raise TypeError(f"{name}: the function must give a real number, not str")
    self._a[...] = np.broadcast_to(np.asarray(made), self._a.shape).astype(self._a.dtype)
    bump(self)
    return self


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by a Python function of it. Always slow."""
    return _mapped("apply_", self, (), callable)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by a Python function of it and another tensor's."""
    return _mapped("map_", self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace every element by a Python function of it and two other tensors'."""
    return _mapped("map2_", self, (x, y), callable)


# -- exchange with other libraries -----------------------------------------------------------------------------------


def _dlpack(self: Tensor, **options: Any) -> Any:
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj() or self.is_neg():
        raise BufferError(f"Can't export tensors with the {'conjugate' if self.is_conj() else 'negative'} bit set")
    if self.layout is not strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if not isinstance(self._a, np.ndarray):
        raise BufferError(f"Can't export tensors on {self.device} by DLPack; copy them to the host first")
    stream = options.pop("stream", None)
    if not isinstance(stream, (int, type(None))):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    return exported(self._a, self.dtype, **{key: value for key, value in options.items() if value is not None})


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    if not isinstance(self._a, np.ndarray):
        raise ValueError(f"Unknown device type {self.device} for Dlpack")
    return (DLDeviceType.kDLCPU, 0)


def _grad_dtype(self: Tensor) -> dtype | None:
    """The dtype that a leaf's gradient has: its own unless set, None for any."""
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype if self._ag is None else self._ag.grad_dtype_for(self)


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    extras = self.extras()
    if value is not None and extras.grad is not None and extras.grad.dtype is not value:
        raise RuntimeError(f"Cannot set grad_dtype to '{value.name}' because there is already a gradient with dtype "
                           f"'{extras.grad.dtype.name}'. Please clear the gradient (.grad = None) before changing "
                           "grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype.")
    extras.grad_dtype = value
    if extras.accumulator is not None:  # the dtype to which the engine converts gradients
        extras.accumulator[0].meta = ((self._a.shape, None if value is None else value.np),)


def _volatile(self: Tensor) -> bool:
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


def _backward_hooks(self: Tensor) -> Any:
    """The hooks on this tensor's gradient, None without any."""
    found = edge(self)
    if found is None:
        return self.__dict__.get("_hooks_without_graph")
    hooks = None if found[0].hooks is None else found[0].hooks.tensor_pre.get(found[1])
    return None if hooks is None else OrderedDict(hooks)


def _set_backward_hooks(self: Tensor, hooks: Any) -> None:
    if hooks is not None and not isinstance(hooks, dict):
        raise TypeError(f"_backward_hooks has to be a dict or None, but got {type(hooks).__name__}")
    found = edge(self)
    if found is None:
        self.__dict__["_hooks_without_graph"] = hooks
    else:
        found[0].ensure_hooks().tensor_pre[found[1]] = {} if hooks is None else hooks


def _post_accumulate_grad_hooks(self: Tensor) -> Any:
    """The hooks that run when `.grad` has changed, None without any."""
    return None if self._ag is None or self._ag.post_hooks is None else OrderedDict(self._ag.post_hooks)


def _not_deleted(name: str) -> Callable[[Tensor], None]:
    def refuse(self: Tensor) -> None:
        raise RuntimeError(f"Deleting tensor attributes is not allowed. Attempted to delete '{name}'")

    return refuse


def _delitem(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


METHODS: dict[str, Any] = {function.__name__: function for function in (
    is_pinned, is_shared, is_set_to, dense_dim, sparse_dim, dim_order, to_dense, storage, storage_type, _typed_storage,
    share_memory_, set_, resize_as_, resize, resize_as, as_subclass, new_tensor, new, module_load, apply_, map_,
    map2_,
    is_conj, is_neg, is_distributed,
)}
METHODS.update({"__delitem__": _delitem, "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device,
                "const_data_ptr": Tensor.data_ptr})
PROPERTIES: dict[str, Callable[[Tensor], Any]] = {"volatile": _volatile,
                                                   "_post_accumulate_grad_hooks": _post_accumulate_grad_hooks}
# Devices that no tensor is on.
ELSEWHERE = ("is_ipu", "is_maia", "is_mtia", "is_vulkan", "is_xla")


def attach() -> None:
    """Put these methods on Tensor."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for static in (_make_subclass, _make_wrapper_subclass):
        setattr(Tensor, static.__name__, staticmethod(static))
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter))
    hooks = property(_backward_hooks, _set_backward_hooks)
    for name, known in (("data", Tensor.data), ("requires_grad", Tensor.requires_grad), ("_grad_fn", Tensor.grad_fn),
                        ("_backward_hooks", hooks)):
        setattr(Tensor, name, known.deleter(_not_deleted(name)))  # type: ignore[attr-defined,union-attr]
    Tensor.grad_dtype = property(_grad_dtype, _set_grad_dtype)  # type: ignore[attr-defined]
    for name in ELSEWHERE:
        setattr(Tensor, name, False)
