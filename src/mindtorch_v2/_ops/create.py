"""Ops that make tensors from sizes and numbers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._backends.base import device_of, empty_array, format_strides
from .._backends.cpu import providers
from .._backends.cpu.memory import blank, blank_like, empty, empty_in_format, empty_strided, formatted, new_empty, zero_
from .._backends.cpu.spaced import spaced
from .._backends.cpu.view import strided
from .._backends.geometry import dense_strides
from .._backends.sparse import SparseArray
from .._deterministic import Deterministic, filled
from .._device import CPU, DeviceLike, as_device
from .._dispatch.dtype_rules import unsupported
from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK
from .._dispatch.promotion import C_NAMES, number_dtype, pretty, result_dtype, stored_scalar
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dispatch.steps import step as kernel_step
from .._dtype import FLOAT, FROM_NUMPY, DefaultDtype, DType, bool_, check_can_require_grad, dtype, int64
from .._memory_format import MemoryFormat, contiguous_format, preserve_format
from .._shape import argument_missing, as_shape
from .._storage import Shared
from .._tensor import Tensor, sparse_coo, wrap, wrap_known
from .._tensor import strided as strided_layout

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def check_size(size: Any) -> tuple[int, ...]:
    """A shape for a new tensor."""
    if type(size) is tuple:
        for extent in size:
            if type(extent) is not int or extent < 0:
                break
        else:
            return size
    shape = as_shape(size) if type(size) is tuple else (size,) if isinstance(size, int) else as_shape((size,))
    for extent in shape:
        if extent < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {extent}: {list(shape)}")
    return shape


def _empty(size: Any, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None,
           memory_format: MemoryFormat | None) -> Tensor:
    if device is None:
        device = THREAD.state.default_device
    shape, kind = check_size(size), (dtype or DefaultDtype.value).np
    if Deterministic.on and Deterministic.fill and as_device(device or CPU).type == "cpu":
        return wrap(filled(formatted(shape, kind, memory_format or contiguous_format)))
    if device is memory_format is None:
        return wrap(np.empty(shape, kind))
    where = as_device(device)
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format option Preserve")
    if where.type == "cpu":
        return wrap(np.empty(shape, kind) if memory_format is None else formatted(shape, kind, memory_format))
    return wrap(_settled(empty_array(shape, kind, where, format_strides(shape, kind, memory_format))))


def _settled(array: Any) -> Any:
    """New memory of a device; filled, if results must not depend on what was there."""
    return filled(array) if Deterministic.on and Deterministic.fill else array


def _is_row_major(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether these are the steps, in elements, of memory in row-major order."""
    if len(shape) != len(steps):
        return False
    step = 1
    for extent, given in zip(reversed(shape), reversed(steps)):
        if given != step or not extent:
            return False
        step *= extent
    return True


def _empty_strided(size: Any, stride: Any, dtype: DType | None, layout: Any, device: DeviceLike,
                   pin_memory: bool | None) -> Tensor:
    shape, steps = check_size(size), tuple(stride)
    kind, where = (dtype or DefaultDtype.value).np, as_device(
        device if device is not None else THREAD.state.default_device)
    if where.type == "cpu" and _is_row_major(shape, steps):
        made = np.empty(shape, kind)
        return wrap(filled(made) if Deterministic.on and Deterministic.fill else made)
    if len(shape) != len(steps):
        raise RuntimeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
                           f"({len(steps)}): mismatch in length of strides and shape")
    if any(s < 0 for s in steps):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}: "
                           "negative strides are not supported")
    span = 1 + sum((n - 1) * s for n, s in zip(shape, steps)) if 0 not in shape else 0
    if where.type != "cpu":
        return wrap(_settled(empty_array(shape, kind, where, tuple(s * kind.itemsize for s in steps))))
    memory = np.empty(span, kind)
    if Deterministic.on and Deterministic.fill:
        filled(memory)
    return wrap(strided(memory, shape, tuple(s * kind.itemsize for s in steps)))


declare(f"empty.memory_format(int[] size, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        composite=_empty, where="n")
declare(f"empty_strided(int[] size, int[] stride, *, {OPTIONS}) -> Tensor", composite=_empty_strided, where="n")


@choose("empty_strided", where="f")
def empty_strided_(size: Any, stride: Any, *, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
                   pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Memory in any geometry."""
    return with_flags(aten.empty_strided__default(size, stride, dtype=dtype, device=device), requires_grad,
                      pin_memory=pin_memory)


def is_of_host(device: DeviceLike) -> bool:
    """Whether a new tensor is plain memory of the CPU."""
    return (device is CPU or device is None is THREAD.state.default_device) and not Deterministic.on


def _filled(value: Any) -> Any:
    def make(size: Any, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None) -> Tensor:
        if value == 0 and is_of_host(device):
            return wrap(zero_(blank(check_size(size), dtype)))
        if value == 0:
            return fresh(aten.zero_(aten.empty__memory_format(size, dtype=dtype, device=device)))
        made = aten.empty__memory_format(size, dtype=dtype or DefaultDtype.value, device=device)
        return fresh(aten.fill_(made, value))

    return make


def fresh(tensor: Tensor) -> Tensor:
    """A tensor as its maker hands it out: filling it did not count as a change."""
    if type(tensor._st) is Shared:
        tensor._st = None
    return tensor


declare(f"zeros(int[] size, *, {OPTIONS}) -> Tensor", composite=_filled(0), where="n")
declare(f"ones(int[] size, *, {OPTIONS}) -> Tensor", composite=_filled(1.0), where="n")


def _full(size: Any, fill_value: Any, dtype: DType | None, layout: Any, device: DeviceLike,
          pin_memory: bool | None) -> Tensor:
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    kind = dtype or number_dtype(fill_value)
    return fresh(aten.fill_(aten.empty__memory_format(size, dtype=kind, device=device), fill_value))


declare(f"full(int[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", composite=_full, where="n")


def _zeros_like(self: Tensor, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None,
                memory_format: MemoryFormat | None) -> Tensor:
    if device is memory_format is None and type(self._a) is np.ndarray and not Deterministic.on:
        return wrap(zero_(blank_like(self._a, dtype or FROM_NUMPY[self._a.dtype])))
    made = aten.empty_like__default(self, dtype=dtype, layout=layout, device=device, memory_format=memory_format)
    return fresh(aten.zero_(made))


def _full_like(self: Tensor, value: Any, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None,
               memory_format: MemoryFormat | None) -> Tensor:
    made = aten.empty_like__default(self, dtype=dtype, layout=layout, device=device, memory_format=memory_format)
    return fresh(aten.fill_(made, value))


def _empty_like(self: Tensor, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None,
                memory_format: MemoryFormat | None) -> Tensor:
    array = self._a
    kind = (dtype.np if dtype is not None else array.dtype)
    where = self.device if device is None else as_device(device)
    if where.type != "cpu":
        if type(array) is not np.ndarray and where == array.device:
            return wrap(_settled(device_of(array).empty_in(memory_format, array, kind)))
        strides = (dense_strides(array, kind.itemsize) if memory_format is None or memory_format is preserve_format
                   else format_strides(array.shape, kind, memory_format))
        return wrap(_settled(empty_array(array.shape, kind, where, strides)))
    if Deterministic.on and Deterministic.fill:
        if memory_format is None or memory_format is preserve_format:
            return wrap(filled(empty_strided(array, kind)))
        return wrap(filled(empty_in_format(array.shape, kind, memory_format)))
    if type(array) is np.ndarray and (memory_format is None or memory_format is preserve_format):
        return (wrap if HOOK["INFERENCE"] and HOOK["ALLOCATED"] is None else wrap_known)(empty_strided(array, kind))
    if isinstance(array, SparseArray) and repr(layout) != "torch.strided":
        return wrap_known(array.without_elements(kind))
    return wrap(empty_in_format(array.shape, kind, memory_format or contiguous_format))


declare(f"empty_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        composite=_empty_like, where="n")
declare(f"zeros_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        composite=_zeros_like, where="n")
declare(f"ones_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        composite=lambda self, *options: _full_like(self, 1.0, *options), where="n")
declare(f"full_like(Tensor self, Scalar fill_value, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
        composite=_full_like, where="n")
declare("scalar_tensor(Scalar s, *, " + OPTIONS + ") -> Tensor",
        composite=lambda s, dtype, layout, device, pin_memory: _placed(stored_scalar(
            s, (dtype or DefaultDtype.value).np).copy(), device), where="n")


@choose("scalar_tensor", where="f")
def scalar_tensor(s: Any, *, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A number as a tensor without dimensions."""
    return with_flags(aten.scalar_tensor__default(s, dtype=dtype, device=device), requires_grad,
                      pin_memory=pin_memory)


def pinned(tensor: Tensor) -> Tensor:
    """What a factory made, in memory that a device copies from by itself: `pin_memory=True`."""
    if not tensor.is_cpu:
        raise RuntimeError(f"Only dense CPU tensors can be pinned, not one on {tensor.device}")
    made = tensor.pin_memory()
    if not made.is_pinned():
        raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator "
                           "is available on this system.")
    return made


def with_flags(tensor: Tensor, requires_grad: bool, out: Any = None, pin_memory: bool | None = False) -> Tensor:
    """The last step of every factory: `out=`, `pin_memory=` and `requires_grad=`."""
    if out is not None:
        if out._a.shape != tensor._a.shape:
            aten.resize_(out, tensor._a.shape)
            out.shared().version -= 1  # the new size and the new values are one change
        aten.copy_(out, tensor)
        tensor = out
    elif pin_memory:
        tensor = pinned(tensor)
    if requires_grad:
        if not isinstance(requires_grad, (bool, np.bool_)):
            raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        check_can_require_grad(tensor.dtype)
        tensor.requires_grad = True
    return tensor


def out_dtype(name: str, out: Tensor, dtype: DType | None, device: DeviceLike = None) -> Any:
    """The dtype that a factory makes for `out=`: that of the tensor to fill; another may not be asked for."""
    if out.requires_grad and THREAD.state.grad:
        raise RuntimeError(f"aten::{name}(): functions with out=... arguments don't support automatic differentiation, "
                           "but one of the arguments requires grad.")
    if type(out._a) is not np.ndarray and device is not None and as_device(device).type != out.device.type:
        raise RuntimeError(f"device type {as_device(device).type} does not match device type of out parameter "
                           f"({out.device.type})")
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {pretty(dtype)} does not match dtype of out parameter ({pretty(out.dtype)})")
    return out.dtype


def range_out(made: Tensor, requires_grad: bool, out: Any, pin_memory: bool | None = False) -> Tensor:
    """`with_flags` for a vector: an `out` with the right number of elements keeps its shape."""
    if out is None or out._a.size != made._a.size:
        return with_flags(made, requires_grad, out, pin_memory)
    return with_flags(aten.copy_(out, aten.view(made, out._a.shape)), requires_grad)


def _refuse_layout(name: str, layout: Any) -> None:
    """Sparse tensors have functions of their own; nothing but zeros could be made here."""
    if layout is not strided_layout:
        if name in ("full", "ones"):
            raise RuntimeError("full(...) is not implemented for sparse layout")
        raise NotImplementedError(f"{name}(layout={layout}) is not supported: make a sparse tensor with "
                                  "torch.sparse_coo_tensor, or call to_sparse()")


def _without_values(size: Any, dtype: DType | None, requires_grad: bool) -> Tensor:
    """A sparse tensor of zeros."""
    kind = DefaultDtype.value if dtype is None else dtype
    made = aten.sparse_coo_tensor(aten.empty((len(size), 0), dtype=int64), aten.empty((0,), dtype=kind), size,
                                  is_coalesced=True)
    made.requires_grad = requires_grad
    return made


def _sized(name: str) -> None:
    overload = "empty__memory_format" if name == "empty" else f"{name}__default"

    @choose(name, where="f")
    def make(*size: Any, out: Any = None, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
             pin_memory: bool = False, requires_grad: bool = False, memory_format: MemoryFormat | None = None,
             **size_by_name: Any) -> Tensor:
        if size_by_name:
            unknown = next((key for key in size_by_name if key != "size"), None)
            if unknown is not None:
                raise TypeError(f"{name}() got an unexpected keyword argument '{unknown}'")
            size = (size_by_name.pop("size"),)
        elif not size:
            argument_missing(name)
        if out is not None:
            dtype = out_dtype(name, out, dtype)
        if layout is not None:
            if name != "ones" and out is None and layout is sparse_coo:
                return _without_values(as_shape(size), dtype, requires_grad)
            _refuse_layout(name, layout)
        form = getattr(aten, overload)
        if memory_format is None:
            made = form(as_shape(size), dtype=dtype, layout=layout, device=device)
        else:
            made = form(as_shape(size), dtype=dtype, layout=layout, device=device, memory_format=memory_format)
        if out is None and not (requires_grad or pin_memory):
            return made
        return with_flags(made, requires_grad, out, pin_memory)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of the given size: torch.{name}(2, 3) or torch.{name}((2, 3))."


for _name in ("empty", "zeros", "ones"):
    _sized(_name)


@choose("full", where="f")
def full(size: Any, fill_value: Any, *, out: Any = None, dtype: DType | None = None, layout: Any = None,
         device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of the given size filled with one value."""
    if type(size) is int:
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    if not (isinstance(fill_value, (bool, int, float, complex, np.number, np.bool_)) or
            (isinstance(fill_value, Tensor) and not fill_value.ndim and not fill_value.requires_grad)):
        raise TypeError(f"full(): argument 'fill_value' (position 2) must be Number, not {type(fill_value).__name__}")
    if out is not None:
        dtype = out_dtype("full", out, dtype)
    if layout is not None:
        _refuse_layout("full", layout)
    made = aten.full__default(size, fill_value, dtype=dtype, device=device)
    if out is None and not (requires_grad or pin_memory):
        return made
    return with_flags(made, requires_grad, out, pin_memory)


def _like_face(name: str) -> None:
    overload = f"{name}__default"

    @choose(name, where="f")
    def make(input: Any, *fill: Any, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
             pin_memory: bool = False, requires_grad: bool = False, memory_format: MemoryFormat | None = None,
             **fill_by_name: Any) -> Tensor:
        if fill_by_name:
            others = [key for key in fill_by_name if key != "fill_value"]
            if others or fill:
                raise TypeError(f"{name}() got an unexpected keyword argument '{(others or ['fill_value'])[0]}'")
            fill = (fill_by_name.pop("fill_value"),)
        if fill and isinstance(fill[0], Tensor) and (fill[0]._a.ndim or fill[0].requires_grad):
            raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not Tensor")
        made = getattr(aten, overload)(
            input, *fill, dtype=dtype, layout=layout, device=device, memory_format=memory_format)
        return with_flags(made, requires_grad, None, pin_memory) if requires_grad or pin_memory else made

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"torch.{name}: shape, dtype and device of `input` unless given."


for _name in ("empty_like", "zeros_like", "ones_like", "full_like"):
    _like_face(_name)


# -- ranges --------------------------------------------------------------------------------------------------------


def _arange(start: Any, end: Any, step: Any, dtype: DType | None, layout: Any, device: DeviceLike,
            pin_memory: bool | None) -> Tensor:
    whole = type(start) is type(end) is type(step) is int
    if dtype is None:
        floating = not whole and any(isinstance(v, (float, np.floating)) for v in (start, end, step))
        dtype = DefaultDtype.value if floating else int64
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if dtype is int64 and not whole and all(map(math.isfinite, (start, end, step))):
        # PyTorch counts in the result's type, of int64 only.
        start, end, step, whole = int(start), int(end), int(step), True
        if step == 0:
            raise ValueError("step must be nonzero")
    if not whole and not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if start > end if step > 0 else start < end:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is bool_ or dtype.is_complex:
        raise unsupported("arange_cpu", dtype.np)
    count = end - start if whole and step == 1 else max(0, math.ceil((end - start) / step))
    if count >= 1 << 60 or (whole and not -(1 << 63) <= start <= end < 1 << 63 and step > 0):
        raise RuntimeError("invalid size, possible overflow?")
    return _placed(_range_into(empty((count,), dtype.np), start, end, step), device)


@kernel_step("aten::arange", "start_out", lambda made, start, end, step: (start, end, step, made),
             places=(3,))
def _range_into(made: Any, start: Any, end: Any, step: Any) -> Any:
    """Fill with the numbers from `start` on; their count has been worked out from `end`, which a recording shows."""
    if made.dtype.kind in "iub":
        first, by = int(start), int(step)
        if made.dtype == np.int64 and providers.moves():
            providers.native.fill_range(made, first, by)
        else:
            made[...] = first + np.arange(made.size, dtype=np.int64) * by
    else:
        made[...] = start + np.arange(made.size, dtype=np.float64) * step
    return made


def _placed(array: np.ndarray, where: Any) -> Tensor:
    made = wrap(array)  # counts memory that a step has taken only once
    where = as_device(where if where is not None else THREAD.state.default_device)
    return made if where is CPU or where == CPU else aten.to(made, where)


declare(f"arange(Scalar end, *, {OPTIONS}) -> Tensor", composite=lambda end, *options: _arange(0, end, 1, *options),
        where="n")
declare(f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor",
        composite=lambda start, end, *options: _arange(start, end, 1, *options), where="n")
declare(f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
        composite=_arange, where="n")


def _number_in(given: Tensor) -> Any:
    """The number in a tensor without dimensions."""
    if given._a.ndim:
        raise TypeError("arange(): argument 'end' (position 1) must be Number, not Tensor")
    return given.item()


@choose("arange", where="f")
def arange(start: Any = None, end: Any = None, step: Any = None, *, out: Any = None, dtype: DType | None = None,
           layout: Any = None, device: DeviceLike = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:
    """Numbers from `start` up to, not including, `end`."""
    if isinstance(start, Tensor):
        start = _number_in(start)
    if isinstance(end, Tensor):
        end = _number_in(end)
    if isinstance(step, Tensor):
        step = _number_in(step)
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange() received an invalid combination of arguments - got (), but expected an end")
    if out is not None:
        dtype = out_dtype("arange", out, dtype, device)
    if step is not None:
        made = aten.arange__start_step(0 if start is None else start, end, step, dtype=dtype, device=device)
    elif start is not None:
        made = aten.arange__start(start, end, dtype=dtype, device=device)
    else:
        made = aten.arange__default(end, dtype=dtype, device=device)
    if out is not None and out._a.size and out._a.size != made._a.size:
        warnings.warn(f"The number of elements in the out tensor of shape {list(out._a.shape)} is {out._a.size}, which "
                      f"does not match the computed number of elements {made._a.size}. The out tensor is resized to "
                      f"{list(made._a.shape)}.", UserWarning, stacklevel=2)
    if out is None and not (requires_grad or pin_memory):
        return made
    return range_out(made, requires_grad, out, pin_memory)


def _linspace(start: Any, end: Any, steps: int, dtype: DType | None, layout: Any, device: DeviceLike,
              pin_memory: bool | None) -> Tensor:
    kind = _steps_dtype("linspace", start, end, steps, dtype)
    return _placed(_spaced_into(empty((steps,), kind.np), start, end), device)


def _steps_dtype(form: str, start: Any, end: Any, steps: int, dtype: DType | None) -> DType:
    """The dtype of a range of this many numbers; impossible ranges are refused."""
    with_complex = isinstance(start, complex) or isinstance(end, complex)
    inferred = DefaultDtype.value.to_complex() if with_complex else DefaultDtype.value
    kind = dtype or inferred
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if kind is bool_ and steps:
        raise unsupported(f"{form}_cpu", kind.np)
    if with_complex and not kind.is_complex:
        raise RuntimeError(f"torch.{form}(): inferred dtype {C_NAMES[inferred.name]} can't be safely "
                           f"cast to passed dtype {pretty(kind)}")
    return kind


@kernel_step("aten::linspace", "out", lambda made, start, end: (start, end, made.size, made), places=(3,))
def _spaced_into(made: Any, start: Any, end: Any) -> Any:
    steps = made.size
    if made.dtype.kind in "iub":
        # PyTorch brings both ends to the result's type first.
        ends = (int(stored_scalar(end, made.dtype)) for end in (start, end))
        made[...] = np.trunc(np.linspace(*ends, steps))
        return made
    return spaced(made, start, end)


declare(f"linspace(Scalar start, Scalar end, int steps, *, {OPTIONS}) -> Tensor", composite=_linspace, where="n")


def _single(form: str, start: Any, end: Any) -> None:
    """Tensors that give the ends of a range hold one number each."""
    several = [f"{name} with {value.ndim} dimension(s)" for name, value in (("start", start), ("end", end))
               if isinstance(value, Tensor) and value.ndim]
    if several:
        raise RuntimeError(f"{form} only supports 0-dimensional start and end tensors, but got "
                           f"{' and '.join(several)}.")


@choose("linspace", where="f")
def linspace(start: Any, end: Any, steps: int, *, out: Any = None, dtype: DType | None = None, layout: Any = None,
             device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """`steps` evenly spaced numbers, both ends included."""
    _single("linspace", start, end)
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    if out is not None:
        dtype = out_dtype("linspace", out, dtype, device)
    return range_out(aten.linspace__default(start, end, steps, dtype=dtype, device=device), requires_grad, out,
                     pin_memory)


def _logspace(start: Any, end: Any, steps: int, base: float, dtype: DType | None, layout: Any, device: DeviceLike,
              pin_memory: bool | None) -> Tensor:
    kind = _steps_dtype("logspace", start, end, steps, dtype)
    if kind.category < FLOAT:
        # PyTorch brings both ends and the step to the result's type first.
        start, end = int(start), int(end)
        step = (end - start) / (steps - 1) if steps > 1 else 0.0
        powers = start + step * np.arange(steps)
    else:
        powers = np.linspace(start, end, steps)
    return _placed(np.power(float(base), powers).astype(kind.np), device)


declare(f"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor",
        composite=_logspace, where="n")


@choose("logspace", where="f")
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: Any = None, dtype: DType | None = None,
             layout: Any = None, device: DeviceLike = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:
    """`steps` numbers from `base ** start` to `base ** end`, evenly spaced on a logarithmic scale."""
    _single("logspace", start, end)
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    if out is not None:
        dtype = out_dtype("logspace", out, dtype, device)
    return range_out(aten.logspace__default(start, end, steps, base, dtype=dtype, device=device), requires_grad, out,
                     pin_memory)


def _eye(n: int, m: int | None, dtype: DType | None, layout: Any, device: DeviceLike,
         pin_memory: bool | None) -> Tensor:
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m is not None and m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    return _placed(np.eye(n, n if m is None else m, dtype=(dtype or DefaultDtype.value).np), device)


declare(f"eye(int n, *, {OPTIONS}) -> Tensor", composite=lambda n, *options: _eye(n, None, *options), where="n")
declare(f"eye.m(int n, int m, *, {OPTIONS}) -> Tensor", composite=_eye, where="n")


@choose("eye", where="f")
def eye(n: int, m: int | None = None, *, out: Any = None, dtype: DType | None = None, layout: Any = None,
        device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The identity matrix."""
    sizes = (n,) if m is None else (n, m)
    if out is not None:
        dtype = out_dtype("eye", out, dtype)
    made = (aten.eye__default if m is None else aten.eye__m)(*sizes, dtype=dtype, device=device)
    return with_flags(made, requires_grad, out, pin_memory)


@choose("result_type", where="f")
def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype an arithmetic op on these two would have."""
    both = (tensor1, tensor2)
    return result_dtype([v._a for v in both if isinstance(v, Tensor)], [v for v in both if not isinstance(v, Tensor)])


# -- new_* methods -------------------------------------------------------------------------------------------------


def _new(name: str) -> None:
    @choose(f"new_{name}", where="m")
    def make(self: Tensor, *size: Any, dtype: DType | None = None, device: DeviceLike = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False, fill_value: Any = None,
             **size_by_name: Any) -> Tensor:
        if size_by_name:
            size = (size_by_name.pop("size"), *size)
        elif not size:
            argument_missing(f"new_{name}")
        if name == "full":
            shape, value = size if len(size) == 2 else (size[0], fill_value)
            return with_flags(aten.new_full__default(self, as_shape((shape,)), value, dtype=dtype, device=device),
                              requires_grad, pin_memory=pin_memory)
        if name == "ones":
            return with_flags(aten.new_ones__default(self, as_shape(size), dtype=dtype, device=device), requires_grad,
                              pin_memory=pin_memory)
        form = aten.new_empty__default if name == "empty" else aten.new_zeros__default
        return with_flags(form(self, as_shape(size), dtype=dtype, device=device), requires_grad,
                          pin_memory=pin_memory)

    make.__name__ = make.__qualname__ = f"new_{name}"
    make.__doc__ = f"torch.{name} with this tensor's dtype and device."


def _new_empty(self: Tensor, size: Any, dtype: DType | None, layout: Any, device: DeviceLike,
               pin_memory: bool | None) -> Tensor:
    return aten.empty__memory_format(size, dtype=dtype or self.dtype, device=device or self.device)


def _new_empty_strided(self: Tensor, size: Any, stride: Any, dtype: DType | None, layout: Any, device: DeviceLike,
                       pin_memory: bool | None) -> Tensor:
    return aten.empty_strided__default(size, stride, dtype=dtype or self.dtype, device=device or self.device)


def _new_full(self: Tensor, size: Any, fill_value: Any, dtype: DType | None, layout: Any, device: DeviceLike,
              pin_memory: bool | None) -> Tensor:
    return fresh(aten.fill_(aten.new_empty__default(self, size, dtype=dtype, device=device), fill_value))


def _new_filled(value: float) -> Any:
    def make(self: Tensor, size: Any, dtype: DType | None, layout: Any, device: DeviceLike,
             pin_memory: bool | None) -> Tensor:
        if not value and device is None and type(self._a) is np.ndarray and not Deterministic.on:
            return wrap(zero_(new_empty(self._a, check_size(size), dtype)))
        made = aten.new_empty__default(self, size, dtype=dtype, device=device)
        return fresh(aten.fill_(made, value) if value else aten.zero_(made))

    return make


declare(f"new_empty(Tensor self, int[] size, *, {OPTIONS}) -> Tensor", composite=_new_empty, where="n")
declare(f"new_zeros(Tensor self, int[] size, *, {OPTIONS}) -> Tensor", composite=_new_filled(0), where="n")
declare(f"new_ones(Tensor self, int[] size, *, {OPTIONS}) -> Tensor", composite=_new_filled(1.0), where="n")
declare(f"new_full(Tensor self, int[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", composite=_new_full, where="n")
declare(f"new_empty_strided(Tensor self, int[] size, int[] stride, *, {OPTIONS}) -> Tensor",
        composite=_new_empty_strided, where="n")
for _name in ("empty", "zeros", "ones", "full"):
    _new(_name)


@choose("new_empty_strided", where="m")
def new_empty_strided(self: Tensor, size: Any, stride: Any, *, dtype: DType | None = None, device: DeviceLike = None,
                      requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    """Uninitialised memory of a given geometry, in this tensor's dtype unless told otherwise."""
    return with_flags(aten.new_empty_strided__default(self, size, stride, dtype=dtype, device=device), requires_grad,
                      pin_memory=pin_memory)
