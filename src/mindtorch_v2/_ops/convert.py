"""Copying, filling and converting."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autograd.graph import bump
from .._backends.cpu import copy as kernels
from .._backends.cpu.memory import to_copy
from .._backends.transfer import transfer
from .._device import as_device, device
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.steps import step
from .._dtype import COMPLEX, FLOAT, FROM_NUMPY, dtype
from .._memory_format import CHANNELS_LAST_ORDER, contiguous_format
from .._tensor import Tensor, alias

declare(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", cpu_inplace=kernels.copy_into, where="n",
    node="torch::autograd::CopyBackwards",
    grad={"self": lambda grad: aten.zeros_like(grad), "src": lambda grad: grad},
)
choose("copy_", where="m")(lambda self, src, non_blocking=False: _copy(self, src, non_blocking))


def _copy(self: Tensor, src: Tensor, non_blocking: bool) -> Tensor:
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    if type(src._a) is not type(self._a):
        src = aten.to(src, self.device)
    return aten.copy___default(self, src, non_blocking)


declare(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor", cpu_inplace=kernels.fill, where="n",
    cpu=lambda a, value: kernels.fill(np.empty_like(a), value),
    grad={"self": lambda grad: aten.zeros_like(grad)},
)
declare(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor", cpu_inplace=kernels.fill_from_array, where="n",
    cpu=lambda a, value: kernels.fill_from_array(np.empty_like(a), value),
    node="FillBackward1",
    grad={"self": lambda grad: aten.zeros_like(grad), "value": lambda grad: aten.sum(grad)},
)


@choose("fill_", where="fm")
def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element."""
    form = aten.fill___Tensor if isinstance(value, Tensor) else aten.fill___Scalar
    return form(self, value)


declare("zero(Tensor self) -> Tensor", cpu_inplace=kernels.zero, where="m",
        grad={"self": lambda grad: aten.zeros_like(grad)})
declare("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", cpu=kernels.clone,
        grad={"self": lambda grad: grad}, meta="same")


def _contiguous(self: Tensor, memory_format: Any) -> Tensor:
    wanted = contiguous_format if memory_format is None else memory_format
    return self if is_contiguous(self, memory_format=wanted) else aten.clone(self, memory_format=wanted)


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie without gaps in row-major order, or in the order of a channels-last format."""
    order = CHANNELS_LAST_ORDER.get(memory_format)
    if order is None:
        return bool(self._a.flags.c_contiguous)
    return self.ndim == len(order) and bool(self._a.transpose(order).flags.c_contiguous)


choose("is_contiguous", where="m")(is_contiguous)


@choose("contiguous", where="m")
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    if memory_format is None and self._a.flags.c_contiguous:
        return self
    return aten.contiguous__default(self, memory_format=memory_format)


declare("contiguous(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", composite=_contiguous, where="n")
declare("detach(Tensor self) -> Tensor", composite=step("detach")(alias))
declare("lift_fresh(Tensor self) -> Tensor", composite=lambda self: self, where="n")


@step("detach_")
def _forget_history(self: Tensor) -> Tensor:
    self._rg = False
    self._edge = None
    return self


def _detach_in_place(self: Tensor) -> Tensor:
    if self._base is not None and self.requires_grad:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    return _forget_history(self)


declare("detach_(Tensor self) -> Tensor", composite=_detach_in_place)


def _item(self: Tensor) -> Any:
    if self._a.size != 1:
        raise RuntimeError(f"a Tensor with {self._a.size} elements cannot be converted to Scalar")
    return aten._local_scalar_dense(self)


def _local_scalar_dense(self: Tensor) -> Any:
    array = self._a if isinstance(self._a, np.ndarray) else transfer(self._a, as_device("cpu"))
    if self.is_meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    value = array.item()
    return value if isinstance(value, (bool, int, float, complex)) else float(value)


def _is_nonzero(self: Tensor) -> bool:
    if self._a.size != 1:
        count = "no values" if self._a.size == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(aten.item(self))


declare("item(Tensor self) -> Scalar", composite=_item, where="m")
declare("is_nonzero(Tensor self) -> bool", composite=_is_nonzero)
declare("_local_scalar_dense(Tensor self) -> Scalar", composite=_local_scalar_dense, where="n")

# -- dtype and device ----------------------------------------------------------------------------------------------


def _to_copy_kernel(a: Any, to: dtype | None) -> Any:
    return to_copy(a, a.dtype if to is None else to.np)


def _to(self: Tensor, dtype: Any, device: Any, copy: bool) -> Tensor:
    same_device = device is None or as_device(device) == self.device
    if not copy and same_device and (dtype is None or dtype.np == self._a.dtype):
        return self
    made = self
    if not same_device:
        made = aten._to_device(made, as_device(device))
    if made is self or (dtype is not None and dtype is not made.dtype):
        made = aten._to_copy(made, dtype=dtype)
    return made


declare(
    "_to_copy(Tensor self, *, ScalarType? dtype=None) -> Tensor", cpu=_to_copy_kernel, where="n",
    node="ToCopyBackward0", grad={"self": lambda grad: grad},
)
declare(
    "_to_device(Tensor self, Device device) -> Tensor", cpu=transfer, meta=transfer, where="n",
    node="ToCopyBackward0", grad={"self": lambda grad: grad},
)
declare("to.dtype_layout(Tensor self, ScalarType? dtype=None, Device? device=None, bool copy=False) -> Tensor",
        composite=_to, where="n")


@choose("to", where="m")
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: Any = None, other: Any = None) -> Tensor:
    """This tensor in another dtype or on another device; itself if nothing changes."""
    flags = []
    for value in args:
        if value is None:
            continue
        if isinstance(value, dtype_type):
            dtype = value
        elif isinstance(value, Tensor):
            other = value
        elif isinstance(value, bool):
            flags.append(value)
        elif isinstance(value, (str, device_type, int)):
            device = value
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(value).__name__})")
    if len(flags) > 1:
        copy = flags[1]
    if other is not None:
        dtype, device = other.dtype, other.device
    if dtype is not None and not isinstance(dtype, dtype_type):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return aten.to__dtype_layout(self, dtype, device, copy)


dtype_type, device_type = dtype, device


def _named_conversions() -> None:
    from_names = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
                  "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
                  "cfloat": "complex64", "cdouble": "complex128"}
    by_name = {d.name: d for d in FROM_NUMPY.values()}
    for method, target in from_names.items():
        def convert(self: Tensor, memory_format: Any = None, _to: dtype = by_name[target]) -> Tensor:
            return to(self, _to)

        convert.__name__ = method
        convert.__doc__ = f"This tensor as {target}."
        choose(method, where="m")(convert)


_named_conversions()


@choose("type", where="m")
def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The old-style type name, or a conversion."""
    if dtype is None:
        return "torch." + TYPE_NAMES[self.dtype.name] + "Tensor"
    if isinstance(dtype, str):
        names = {"torch." + v + "Tensor": k for k, v in TYPE_NAMES.items()}
        if dtype not in names:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = next(d for d in FROM_NUMPY.values() if d.name == names[dtype])
    return to(self, dtype)


TYPE_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
              "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
              "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
              "complex64": "ComplexFloat", "complex128": "ComplexDouble"}


@choose("type_as", where="m")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in another's dtype and device."""
    return to(self, other)


@choose("cpu", where="m")
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor in host memory."""
    return to(self, device="cpu")


@choose("npu", where="m")
def npu(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """This tensor on an Ascend NPU."""
    return to(self, device="npu" if device is None else device)


@choose("resize_", where="m")
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the shape in place, growing the memory if it is too small; contents beyond the old end are undefined."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if shape != self._a.shape:
        fresh = np.empty(shape, self._a.dtype)
        kept = min(fresh.size, self._a.size)
        fresh.reshape(-1)[:kept] = self._a.reshape(-1)[:kept]
        self._a = fresh
        self._st = None
        self._base = None
        bump(self)
    return self


@choose("is_floating_point")
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a real floating type."""
    return FROM_NUMPY[input._a.dtype].category == FLOAT


@choose("is_complex")
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return FROM_NUMPY[input._a.dtype].category == COMPLEX


@choose("is_signed", where="m")
def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return self.dtype.is_signed


@choose("can_cast", where="f")
def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of one dtype may be stored into another."""
    return from_.category <= to.category and not (to.category == 0 and from_.category != 0)
