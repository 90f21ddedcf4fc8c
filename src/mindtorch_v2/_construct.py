"""Tensors from data: `tensor`, `as_tensor`, `from_numpy`, `asarray`, `frombuffer`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._device import CPU, DeviceLike, as_device
from ._dispatch.namespace import aten
from ._dispatch.observer import as_one
from ._dispatch.state import THREAD
from ._dlpack import taken
from ._dtype import DefaultDtype, DType, as_dtype, check_can_require_grad, cpp_name, dtype, dtype_of_array, int64
from ._python_data import Nest, check_range
from ._shape import Size
from ._storage import BorrowedShared, Storage
from ._tensor import LEGACY, Tensor, wrap
from ._warn import warn_once

NEGATIVE_STRIDES = ("At least one stride in the given numpy array is negative, and tensors with negative strides are "
                    "not currently supported. (You can probably work around this by making a copy of your array  with "
                    "array.copy().) ")


def _from_data(data: Any, dtype: DType | None, device: DeviceLike, copy: bool) -> Tensor:
    """A tensor of Python data, or of an array, whose memory it shares if it need not be copied."""
    where = as_device(device if device is not None else THREAD.state.default_device)
    if isinstance(data, np.ndarray) and not copy:
        made = from_numpy(data)
        return aten.to(made, where, made.dtype if dtype is None else as_dtype(dtype, "tensor"))
    if isinstance(data, np.ndarray):
        if data.ndim and min(data.strides) < 0:
            raise ValueError(NEGATIVE_STRIDES)
        kind = dtype_of_array(data.dtype) if dtype is None else as_dtype(dtype, "tensor")
        return aten.to(aten.lift_fresh(wrap(np.asarray(data))), where, kind, copy=True)
    if hasattr(data, "untyped"):  # a storage: its elements, or its bytes as elements of the dtype
        from ._typed_storage import typed_as

        kind = as_dtype(dtype, "tensor") if dtype is not None else getattr(data, "dtype", int64)
        held = typed_as(kind, data).bytes()
        return aten.to(wrap(held[:held.size // kind.itemsize * kind.itemsize].view(kind.np)), where, kind, copy=copy)
    nest = Nest(data)
    kind = nest.kind() if dtype is None else as_dtype(dtype, "tensor")
    # The same steps as PyTorch's, so that a profile shows the same ops.
    with as_one():
        made = aten.empty(nest.sizes, dtype=kind, device=CPU)
        values = nest.values(kind)
        check_range(values, kind)
        made._a[...] = values
        made = aten.to(made, where, kind)
    return aten.lift_fresh(made)



def tensor(data: Any, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    >>> import mindtorch_v2 as torch
    >>> torch.tensor([[1, 2], [3, 4]]).dtype
    torch.int64
    """
    if type(requires_grad) is not bool:
        raise TypeError(f"tensor(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning, stacklevel=2)
        made = aten.clone(aten.detach(data))
        made = made if dtype is None else aten.to(made, dtype)
        where = THREAD.state.default_device if device is None else device
        made = made if where is None else aten.to(made, where)
    else:
        made = _from_data(data, dtype, device, copy=True)
        with as_one():
            made = aten.detach_(made)
    if pin_memory:
        from ._ops.create import pinned

        made = pinned(made)
    if requires_grad:
        check_can_require_grad(made.dtype)
        made.requires_grad = True
    return made


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares a NumPy array's memory."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtype_of_array(ndarray.dtype)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(NEGATIVE_STRIDES)
    if any(s % ndarray.itemsize for s in ndarray.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                         "reallocate the memory.")
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to "
            "this tensor raises; copy the array first if you need to.", UserWarning, stacklevel=2)
    # A subclass (memmap, matrix) shares its memory as a plain array, which is what kernels and devices know. The array
    # itself may be given another shape or dtype by the program.
    made = wrap(ndarray.view(np.ndarray))
    if made._st is None:
        made._st = BorrowedShared()
    return aten.lift_fresh(made)


def as_tensor(data: Any, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """A tensor that shares memory with `data` where it can."""
    if isinstance(data, Tensor):
        kind = data.dtype if dtype is None else as_dtype(dtype, "tensor")
        where = THREAD.state.default_device if device is None else device
        return aten.to(data, data.device if where is None else where, kind)
    return _from_data(data, dtype, device, copy=False)


def from_sequence(data: Any, kind: dtype, device: DeviceLike = None) -> Tensor:
    """A tensor of a list, or of an array whose memory it shares if the dtype is the same: the old constructors' way."""
    return _from_data(data, kind, device, copy=False)


def construct(kind: dtype, args: tuple[Any, ...]) -> Tensor:
    """The tensor that the old constructors make from sizes, one sequence of values, or one tensor."""
    first = args[0] if args else ()
    if len(args) < 2 and isinstance(first, Tensor):
        if first.dtype is not kind:
            raise TypeError(f"expected a tensor of dtype {kind} (got {first.dtype}); convert it with .to()")
        return aten.alias(first)
    if len(args) < 2 and isinstance(first, Size):
        return aten.empty(tuple(first), dtype=kind)
    if not args:
        return aten.empty((0,), dtype=kind)
    if all(isinstance(extent, (int, np.integer)) and not isinstance(extent, bool) for extent in args):
        return aten.empty(tuple(int(extent) for extent in args), dtype=kind)
    if len(args) == 1 and isinstance(first, (list, tuple, np.ndarray, range)):
        return from_sequence(list(first) if isinstance(first, range) else first, kind)
    from ._tensor_facts import set_
    from ._typed_storage import TypedStorage, typed_as

    if len(args) == 1 and isinstance(first, (Storage, TypedStorage)):
        held = typed_as(kind, first)
        return set_(aten.empty((0,), dtype=kind), held, 0, (held.nbytes() // kind.itemsize,), (1,))
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")


LEGACY.append(construct)


def asarray(obj: Any, *, dtype: DType | None = None, device: DeviceLike = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Tensor:
    """Like `as_tensor`, with a say in whether memory is shared."""
    if requires_grad is None:
        requires_grad = isinstance(obj, Tensor) and obj.requires_grad
        if requires_grad:
            warn_once("torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. "
                      "Pass requires_grad=False explicitly to get a tensor without history.")
    if isinstance(obj, Storage):
        obj = obj.bytes() if dtype is None else obj.bytes().view(dtype.np)
    lent = _lent(obj, dtype)
    if lent is None and copy is False:
        if isinstance(obj, np.generic):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if isinstance(obj, Tensor):
        made = as_tensor(obj if requires_grad or obj.is_leaf else aten.detach(obj), dtype, device)
    else:
        made = as_tensor(obj if lent is None else lent, dtype, device)
    shares = lent is not None and made._a is lent._a
    if copy and shares:
        made = aten.clone(made)
    if lent is not None and copy is False and not shares:
        if made.device != lent.device:
            raise ValueError(f"can't alias tensor from device '{lent.device}' to '{made.device}'.")
        raise ValueError(f"can't alias tensor with dtype '{cpp_name(lent.dtype.name)}' into dtype "
                         f"'{cpp_name(made.dtype.name)}'.")
    if made.requires_grad and not requires_grad and not made.is_leaf:
        made = aten.detach(made)
    elif requires_grad != made.requires_grad:
        made.requires_grad = requires_grad
    return made


def _lent(obj: Any, kind: DType | None) -> Tensor | None:
    """A tensor on the memory of an object that lends it: an array, a capsule, or a buffer of this dtype."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    if isinstance(obj, np.generic):
        return None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=DefaultDtype.value if kind is None else as_dtype(kind, "asarray"))


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-D tensor on the memory of a buffer."""
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    item = dtype.itemsize
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} "
                         "bytes) minus 1")
    if count < 0 and (length - offset) % item:
        raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of "
                         f"element size ({item})")
    if count > 0 and offset + count * item > length:
        raise ValueError(f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be "
                         f"greater than actual buffer length ({length} bytes)")
    array = np.frombuffer(buffer, dtype.np, count, offset)
    if not array.flags.writeable:
        warnings.warn("The given buffer is not writable, and PyTorch does not support non-writable tensors. Writing "
                      "to this tensor raises; copy the buffer first if you need to.", UserWarning, stacklevel=2)
    made = wrap(array)
    if requires_grad:
        made.requires_grad = True
    return made


def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a capsule of `to_dlpack`."""
    if isinstance(ext_tensor, Tensor) and ext_tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if isinstance(ext_tensor, Tensor) and ext_tensor.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    if isinstance(ext_tensor, Tensor) and not ext_tensor.is_cpu and not copy:
        made = aten.alias(aten.detach(ext_tensor))
    else:
        made = wrap(taken(ext_tensor))
    made = aten.clone(made) if copy else made
    if device is not None and as_device(device).type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    return made if device is None else aten.to(made, device)
