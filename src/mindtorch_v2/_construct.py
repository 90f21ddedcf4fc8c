"""Tensors from data: `tensor`, `as_tensor`, `from_numpy`, `asarray`, `frombuffer`."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any

import numpy as np

from ._device import as_device
from ._dispatch.namespace import aten
from ._dispatch.state import THREAD
from ._dtype import DefaultDtype, dtype, dtype_of_array
from ._shape import Size
from ._storage import Storage
from ._tensor import LEGACY, Tensor, alias, wrap


def infer_array(data: Any, exact: bool = False) -> np.ndarray:
    """An array of Python data in PyTorch's default types: int64, bool, the default float or its complex.

    `exact` keeps Python's own precision, for data that is about to be cast to a given dtype.
    """
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data)
    if isinstance(data, (list, tuple)):
        _check_nesting(data)
        if _holds_tensors(data):
            data = _unwrap(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ValueError(f"expected sequence of equal length at every dimension: {error}") from None
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long long") from None
    if array.dtype.kind == "O":
        raise _bad_element(data)
    if array.dtype.kind in "US":
        raise TypeError(f"new(): invalid data type '{type(_first(data)).__name__}'")
    if array.size == 0:
        return array.astype(DefaultDtype.value.np)
    if exact:
        return array
    if array.dtype.kind == "f" and not _has_numpy(data):
        return array.astype(DefaultDtype.value.np)
    if array.dtype.kind == "c" and not _has_numpy(data):
        return array.astype(DefaultDtype.value.to_complex().np)
    return array


def _first(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _has_numpy(data: Any) -> bool:
    return isinstance(_first(data), (np.ndarray, np.generic))


def _holds_tensors(data: Any) -> bool:
    return any(isinstance(v, Tensor) or (isinstance(v, (list, tuple)) and _holds_tensors(v)) for v in data)


def _unwrap(data: Any) -> Any:
    if isinstance(data, Tensor):
        if data.ndim == 0:
            return data.item()
        return data.tolist()
    return [_unwrap(v) for v in data] if isinstance(data, (list, tuple)) else data


def _check_nesting(data: Any, depth: int = 0) -> None:
    lengths = {len(v) for v in data if isinstance(v, (list, tuple))}
    if lengths and (len(lengths) > 1 or any(not isinstance(v, (list, tuple, np.ndarray, Tensor)) for v in data)):
        odd = next((i for i, v in enumerate(data) if not isinstance(v, (list, tuple))), None)
        if odd is not None and not isinstance(data[0], (list, tuple)):
            raise TypeError("not a sequence")
        sizes = [len(v) for v in data if isinstance(v, (list, tuple))]
        wrong = next((n for n in sizes if n != sizes[0]), sizes[0])
        raise ValueError(f"expected sequence of length {sizes[0]} at dim {depth + 1} (got {wrong})")
    for value in data:
        if isinstance(value, (list, tuple)):
            _check_nesting(value, depth + 1)


def _bad_element(data: Any) -> Exception:
    first = _first(data)
    if first is None:
        return RuntimeError("Could not infer dtype of NoneType")
    return RuntimeError(f"Could not infer dtype of {type(first).__name__}")


def _checked(kind: Any) -> dtype:
    if not isinstance(kind, dtype):
        raise TypeError(f"tensor(): argument 'dtype' must be torch.dtype, not {type(kind).__name__}")
    return kind


def _from_data(data: Any, dtype: Any, device: Any, copy: bool) -> Tensor:
    """A tensor of Python data, or of an array, whose memory it shares if it need not be copied."""
    where = as_device(device if device is not None else THREAD.state.default_device)
    if isinstance(data, np.ndarray) and not copy:
        made = from_numpy(data)
        return aten.to(made, where, made.dtype if dtype is None else _checked(dtype))
    array = infer_array(data, exact=dtype is not None)
    kind = dtype_of_array(array.dtype) if dtype is None else _checked(dtype)
    if isinstance(data, np.ndarray):
        return aten.to(aten.lift_fresh(wrap(array)), where, kind, copy=True)
    # The same steps as PyTorch's, so that a profile shows the same ops.
    made = aten.empty(array.shape, dtype=kind)
    made._a[...] = array
    return aten.lift_fresh(aten.to(made, where, kind))


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    >>> import mindtorch_v2 as torch
    >>> torch.tensor([[1, 2], [3, 4]]).dtype
    torch.int64
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning, stacklevel=2)
        made = aten.clone(aten.detach(data))
        made = made if dtype is None else aten.to(made, dtype)
        made = made if device is None else aten.to(made, device)
    else:
        made = aten.detach_(_from_data(data, dtype, device, copy=True))
    if requires_grad:
        made.requires_grad = True
    return made


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares a NumPy array's memory."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtype_of_array(ndarray.dtype)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array  with array.copy().) ")
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to "
            "this tensor raises; copy the array first if you need to.", UserWarning, stacklevel=2)
    # A subclass (memmap, matrix) shares its memory as a plain array, which is what kernels and devices know.
    return aten.lift_fresh(wrap(np.asarray(ndarray)))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor that shares memory with `data` where it can."""
    if isinstance(data, Tensor):
        kind = data.dtype if dtype is None else _checked(dtype)
        return aten.to(data, data.device if device is None else device, kind)
    return _from_data(data, dtype, device, copy=False)


def from_sequence(data: Any, kind: dtype) -> Tensor:
    """A tensor of a list, or of an array whose memory it shares if the dtype is the same: the old constructors' way."""
    return _from_data(data, kind, None, copy=False)


def construct(kind: dtype, args: tuple[Any, ...]) -> Tensor:
    """What the old constructors make of their arguments: sizes, one sequence of values, or one tensor."""
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
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")


LEGACY.append(construct)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """Like `as_tensor`, with a say in whether memory is shared."""
    if isinstance(obj, Storage):
        obj = obj.bytes() if dtype is None else obj.bytes().view(dtype.np)
    if isinstance(obj, Tensor):
        made = as_tensor(obj if requires_grad else aten.detach(obj), dtype, device)
    else:
        made = as_tensor(obj, dtype, device)
    shares = (made._a is obj._a if isinstance(obj, Tensor)
              else isinstance(obj, np.ndarray) and (made._a is obj or made._a.base is obj))
    if copy and shares:
        made = aten.clone(made)
    if copy is False and not shares:
        raise ValueError("can't alias arbitrary data: this conversion needs a copy")
    if requires_grad and not made.requires_grad:
        made = alias(made)
        made.requires_grad = True
    return made


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-D tensor on the memory of a buffer."""
    array = np.frombuffer(buffer, dtype.np, count, offset)
    if not array.flags.writeable:
        warnings.warn("The given buffer is not writable, and PyTorch does not support non-writable tensors. Writing "
                      "to this tensor raises; copy the buffer first if you need to.", UserWarning, stacklevel=2)
    made = wrap(array)
    if requires_grad:
        made.requires_grad = True
    return made


class _Capsule:
    """A bare capsule as an object that NumPy can ask for it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory for writing too: bare capsules do not say whether they allow it, and NumPy assumes the worst."""
    if array.flags.writeable or not array.size or min(array.strides, default=0) < 0:
        return array
    span = sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize
    memory = (ctypes.c_char * span).from_address(array.__array_interface__["data"][0])
    memory.owner = array  # type: ignore[attr-defined]
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a capsule of `to_dlpack`."""
    if isinstance(ext_tensor, Tensor) and not copy:
        made = aten.alias(aten.detach(ext_tensor))
    elif hasattr(ext_tensor, "__dlpack__"):
        made = wrap(np.from_dlpack(ext_tensor))
    else:
        made = wrap(_writable(np.from_dlpack(_Capsule(ext_tensor))))
    made = aten.clone(made) if copy else made
    return made if device is None else aten.to(made, device)
