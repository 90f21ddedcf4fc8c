"""Converting tensors to another dtype, device or memory format.

`Tensor.to` has one op in several overloads; which of them a call reaches decides what a profile shows of its arguments.
"""

from __future__ import annotations

from typing import Any

from .._backends.base import device_of, resolved, transfer
from .._backends.cpu.memory import to_copy
from .._device import DeviceLike, as_device, device
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import COMPLEX, FLOAT, FROM_NUMPY, DefaultDtype, DType, as_dtype, dtype
from .._memory_format import CHANNELS_LAST_ORDER, MemoryFormat, contiguous_format, preserve_format
from .._tensor import SAME_KIND, Tensor
from .create import OPTIONS

LAST = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"


def _to_copy_kernel(a: Any, to: dtype | None, layout: Any, device: DeviceLike, pin_memory: bool | None,
                    non_blocking: bool, memory_format: MemoryFormat | None) -> Any:
    return to_copy(a, a.dtype if to is None else to.np, None if memory_format is preserve_format else memory_format)


def _suits(self: Tensor, memory_format: MemoryFormat | None) -> bool:
    """Whether a tensor is taken to be in a memory format already."""
    if memory_format is None or memory_format is preserve_format:
        return True
    if memory_format is contiguous_format:
        return not any(self.is_contiguous(memory_format=f) for f in CHANNELS_LAST_ORDER) or self.is_contiguous()
    return self.is_contiguous(memory_format=memory_format)


def _to(self: Tensor, dtype: DType | None, device: DeviceLike, non_blocking: bool, copy: bool,
        memory_format: MemoryFormat | None) -> Tensor:
    where = None if device is None else resolved(as_device(device))
    same_device = where is None or where == self.device
    if not copy and same_device and (dtype is None or dtype.np == self._a.dtype) and _suits(self, memory_format):
        return self
    made = self
    if not same_device:
        made = aten._to_device(made, where, non_blocking)
    kept = memory_format is None or memory_format is preserve_format
    if made is self or (dtype is not None and dtype is not made.dtype) or not (
            kept or made.is_contiguous(memory_format=memory_format)):
        made = aten._to_copy(made, dtype=dtype, memory_format=memory_format)
    return made


def _back(grad: Tensor, self_options: Any) -> Tensor:
    if grad.dtype.is_complex and not self_options[0].is_complex:
        return grad  # of which the engine takes the real part
    return aten.to__dtype_layout(grad, dtype=self_options[0], device=self_options[1])


declare(
    f"_to_copy(Tensor self, *, {OPTIONS}, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    cpu=_to_copy_kernel, where="n", node="ToCopyBackward0", grad={"self": _back},
)
declare(
    "_to_device(Tensor self, Device device, bool non_blocking=False) -> Tensor", cpu=transfer, where="n",
    node="ToCopyBackward0", grad={"self": _back},
)
declare(f"to.dtype(Tensor self, ScalarType dtype, {LAST}) -> Tensor", where="n",
        composite=lambda self, dtype, non_blocking, copy, memory_format: _to(
            self, dtype, None, non_blocking, copy, memory_format))
declare(f"to.device(Tensor self, Device device, ScalarType dtype, {LAST}) -> Tensor", where="n",
        composite=lambda self, device, dtype, non_blocking, copy, memory_format: _to(
            self, dtype, device, non_blocking, copy, memory_format))
declare(f"to.dtype_layout(Tensor self, *, {OPTIONS}, {LAST}) -> Tensor", where="n",
        composite=lambda self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format: _to(
            self, dtype, device, non_blocking, copy, memory_format))


@choose("to", where="m")
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: Any = None, other: Any = None) -> Tensor:
    """This tensor in another dtype, on another device or in another memory format; itself if nothing changes."""
    flags = []
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    for value in args:
        if value is None:
            continue
        if isinstance(value, dtype_type):
            if dtype is not None:
                raise TypeError("to() received an invalid combination of arguments - got "
                                f"({', '.join(type(one).__name__ for one in args)})")
            dtype = value
        elif isinstance(value, Tensor):
            other = value
        elif isinstance(value, bool):
            flags.append(value)
        elif isinstance(value, (str, device_type, int)):
            device = value
        elif isinstance(value, type):
            dtype = value
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(value).__name__})")
    if flags:
        non_blocking = flags[0]
    if len(flags) > 1:
        copy = flags[1]
    if other is not None:
        dtype, device = other.dtype, other.device
    if dtype is not None and type(dtype) is not dtype_type:
        dtype = as_dtype(dtype, "to")
    if dtype is None:
        if device is None and memory_format is None and not copy:
            return self  # nothing is asked for, and nothing runs
        return aten.to__dtype_layout(self, device=device, non_blocking=non_blocking, copy=copy,
                                     memory_format=memory_format)
    if device is None:
        return aten.to__dtype(self, dtype, non_blocking, copy, memory_format)
    return aten.to__device(self, device, dtype, non_blocking, copy, memory_format)


dtype_type, device_type = dtype, device


def _named_conversions() -> None:
    from_names = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
                  "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
                  "cfloat": "complex64", "cdouble": "complex128"}
    by_name = {d.name: d for d in FROM_NUMPY.values()}
    for method, target in from_names.items():
        def convert(self: Tensor, memory_format: MemoryFormat | None = None, _to: dtype = by_name[target]) -> Tensor:
            return aten.to__dtype(self, _to, False, False, memory_format)

        convert.__name__ = method
        convert.__doc__ = f"This tensor as {target}."
        choose(method, where="m")(convert)


_named_conversions()


@choose("type", where="m")
def type_(self: Tensor, dtype: DType | None = None, non_blocking: bool = False, *,
          memory_format: MemoryFormat | None = None) -> Any:
    """The old-style type name, or a conversion."""
    if dtype is None:
        where = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"torch.{where}{TYPE_NAMES[self.dtype.name]}Tensor"
    if isinstance(dtype, str):
        names = {v + "Tensor": k for k, v in TYPE_NAMES.items()}
        package, _, name = dtype.rpartition(".")
        if name not in names or package not in ("torch", "torch.npu"):
            raise ValueError(f"invalid type: '{dtype}'")
        kind = next(d for d in FROM_NUMPY.values() if d.name == names[name])
        where = package.partition(".")[2] or "cpu"
        return to(self, self.device if self.device.type == where else where, kind, memory_format=memory_format)
    if isinstance(dtype, type):
        # An old tensor class: `torch.Tensor` stands for the default dtype, `torch.LongTensor` says its own.
        kind = DefaultDtype.value if dtype is Tensor else getattr(dtype, "dtype", None)
        if isinstance(kind, dtype_type):
            where = "cpu" if dtype is Tensor else dtype.where
            return to(self, self.device if self.device.type == where else where, kind, memory_format=memory_format)
        raise ValueError(f"invalid type: '{dtype.__name__}'")
    if not isinstance(dtype, dtype_type):
        raise TypeError("dtype must be a type, str, or dtype object")
    return to(self, dtype, memory_format=memory_format)


TYPE_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
              "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
              "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
              "complex64": "ComplexFloat", "complex128": "ComplexDouble"}


def _is_same_kind(self: Tensor, source: Tensor) -> bool:
    """Whether one can take over the other's memory, on whatever device that is; what has none is of a kind of its own.
    """
    return self.layout is source.layout and (
        type(self._a) is type(source._a) or (device_of(self._a).has_data and device_of(source._a).has_data))


declare("_has_compatible_shallow_copy_type(Tensor self, Tensor source) -> bool", composite=_is_same_kind, where="f")
SAME_KIND.append(lambda self, source: aten._has_compatible_shallow_copy_type(self, source))
declare("type_as(Tensor self, Tensor other) -> Tensor", where="m",
        composite=lambda self, other: aten.to__dtype_layout(self, dtype=other.dtype, device=other.device))


@choose("cpu", where="m")
def cpu(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor in host memory."""
    return to(self, device="cpu", memory_format=memory_format)


@choose("npu", where="m")
def npu(self: Tensor, device: DeviceLike = None, non_blocking: bool = False) -> Tensor:
    """This tensor on an Ascend NPU."""
    return to(self, device="npu" if device is None else device, non_blocking=non_blocking)


@choose("is_floating_point")
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a real floating type."""
    if not isinstance(input, Tensor):
        raise TypeError("is_floating_point(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(input).__name__}")
    return FROM_NUMPY[input._a.dtype].category == FLOAT


@choose("is_complex")
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    if not isinstance(input, Tensor):
        raise TypeError(f"is_complex(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return FROM_NUMPY[input._a.dtype].category == COMPLEX


@choose("is_signed", where="m")
def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return self.dtype.is_signed


@choose("can_cast", where="f")
def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of one dtype may be stored into another."""
    for place, (name, value) in enumerate((("from_", from_), ("to", to)), 1):
        if not isinstance(value, dtype):
            raise TypeError(f"can_cast(): argument '{name}' (position {place}) must be torch.dtype, not "
                            f"{type(value).__name__}")
    return from_.category <= to.category and not (to.category == 0 and from_.category != 0)
