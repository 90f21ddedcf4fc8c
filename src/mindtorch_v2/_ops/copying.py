"""Copying, filling, and what concerns a tensor's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autograd.inplace import bump, check_inference
from .._backends.base import device_of, empty_array, format_strides, to_host
from .._backends.cpu import copy as kernels
from .._backends.cpu.memory import formatted
from .._backends.cpu.view import strided
from .._backends.overlap import check_overlap
from .._backends.sparse import SparseArray
from .._deterministic import Deterministic, filled
from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK
from .._dispatch.promotion import number_array
from .._dispatch.registry import choose, declare
from .._dispatch.steps import step
from .._memory_format import CHANNELS_LAST_ORDER, MemoryFormat, contiguous_format, preserve_format
from .._moving import is_alone
from .._shape import argument_missing, as_shape
from .._storage import BorrowedShared, InferenceShared, Shared
from .._tensor import Tensor, alias, move, wrap

declare(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", cpu_inplace=kernels.copy_into, where="n",
    node="torch::autograd::CopyBackwards",
    grad={"self": lambda grad: aten.zeros_like(grad, memory_format=contiguous_format),
          "src": lambda grad, src_options: aten.to__dtype_layout(grad, dtype=src_options[0], device=src_options[1])},
)


@choose("copy_", where="m")
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of another tensor, which broadcasts, into this one."""
    if not isinstance(src, Tensor):
        if not isinstance(src, (bool, int, float, complex, np.number, np.bool_)):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        src = src.item() if isinstance(src, np.generic) else src
        src = wrap(number_array(src))
    if type(src._a) is not type(self._a):
        if isinstance(src._a, SparseArray) or isinstance(self._a, SparseArray):
            raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                               f"{self.type()} and src type = {src.type()}")
        src = aten.to(src, self.device, non_blocking=non_blocking)
    elif src._st is not None and src._st is self._st:
        check_overlap(self._a, src._a)
    return aten.copy___default(self, src, non_blocking)


declare(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor", cpu_inplace=kernels.fill, where="n",
    inplace_node="FillBackward2",
    cpu=lambda a, value: kernels.fill(np.empty_like(a), value),
    grad={"self": lambda grad: aten.zeros_like(grad)},
)
declare(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor", cpu_inplace=kernels.fill_from_array, where="n",
    cpu=lambda a, value: kernels.fill_from_array(np.empty_like(a), value),
    node="FillBackward1", inplace_node="FillBackward3",
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


def _contiguous(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    wanted = contiguous_format if memory_format is None else memory_format
    if is_contiguous(self, memory_format=wanted):
        return self
    if wanted is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return aten.clone(self, memory_format=wanted)


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie without gaps in row-major order, or in the order of a channels-last format."""
    order = CHANNELS_LAST_ORDER.get(memory_format)
    if order is None:
        return bool(self._a.flags.c_contiguous)
    return self.ndim == len(order) and bool(self._a.transpose(order).flags.c_contiguous)


choose("is_contiguous", where="m")(is_contiguous)


@choose("contiguous", where="m")
def contiguous(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    if memory_format is None and self._a.flags.c_contiguous:
        return self
    if memory_format is not None and not isinstance(memory_format, MemoryFormat):
        raise TypeError("contiguous(): argument 'memory_format' must be torch.memory_format, not "
                        f"{type(memory_format).__name__}")
    return aten.contiguous__default(self, memory_format=memory_format or contiguous_format)


declare("contiguous(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", composite=_contiguous, where="n")
declare("detach(Tensor self) -> Tensor", composite=step("detach")(alias))
declare("lift_fresh(Tensor self) -> Tensor", composite=lambda self: self, where="n")


@step("detach_")
def _forget_history(self: Tensor) -> Tensor:
    self._rg = False
    self._edge = None
    return self


def _detach_in_place(self: Tensor) -> Tensor:
    if self._of is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    return _forget_history(self)


declare("detach_(Tensor self) -> Tensor", composite=_detach_in_place)


def _item(self: Tensor) -> Any:
    if self._a.size != 1:
        raise RuntimeError(f"a Tensor with {self._a.size} elements cannot be converted to Scalar")
    return aten._local_scalar_dense(self)


def _local_scalar_dense(self: Tensor) -> Any:
    if self.is_meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    value = to_host(self._a).item()
    return value if isinstance(value, (bool, int, float, complex)) else float(value)


def _is_nonzero(self: Tensor) -> bool:
    if self._a.size != 1:
        count = "no values" if self._a.size == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(aten.item(self))


def _assert_async(self: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    if not _is_nonzero(self):
        raise RuntimeError(message)


declare("_assert_async(Tensor self) -> ()", composite=_assert_async, where="n")
declare("_assert_async.msg(Tensor self, str assert_msg) -> ()", composite=_assert_async, where="n")


@choose("_assert_async", where="f")
def assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Refuse a tensor of one element that is zero."""
    if assert_msg is None:
        aten._assert_async__default(input)
    else:
        aten._assert_async__msg(input, assert_msg)


declare("item(Tensor self) -> Scalar", composite=_item, where="m")
declare("is_nonzero(Tensor self) -> bool", composite=_is_nonzero)
declare("_local_scalar_dense(Tensor self) -> Scalar", composite=_local_scalar_dense, where="n")


def _resize(self: Tensor, size: Any, memory_format: MemoryFormat | None) -> Tensor:
    if type(self._st) is InferenceShared:
        check_inference(self)
    elif self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    shape, array = tuple(size), self._a
    if isinstance(array, SparseArray):
        raise NotImplementedError("Could not run 'aten::resize_' with arguments from the 'SparseCPU' backend: a sparse "
                                  "tensor has no memory to resize")
    if min(shape, default=0) < 0:
        raise RuntimeError(f"numel: integer multiplication overflow, since a size is negative: {list(shape)}")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    if shape == array.shape:
        steps = None if memory_format is None else format_strides(shape, array.dtype, memory_format)
        if steps is not None:
            self.as_strided_(shape, [step // array.itemsize for step in steps])
        return self
    item = array.dtype.itemsize
    on_host = type(array) is np.ndarray
    fresh = formatted(shape, array.dtype, memory_format) if on_host else empty_array(
        shape, array.dtype, self.device, format_strides(shape, array.dtype, memory_format))
    needed = self.storage_offset() * item + fresh.nbytes
    before = None
    if on_host and needed > self.untyped_storage().nbytes() and not is_alone(self) and (
            self.untyped_storage().resizable()):
        before = self.untyped_storage().nbytes()
        self.untyped_storage().resize_(needed)  # with the other tensors on it
        array = self._a
    if needed <= self.untyped_storage().nbytes():
        self._a = strided(array, shape, fresh.strides) if on_host else device_of(array).as_strided(
            array, shape, fresh.strides, array.offset)
        if before is not None and Deterministic.on and Deterministic.fill:
            filled(strided(self._a, (fresh.size,), (item,))[max(before // item - self.storage_offset(), 0):])
    else:
        offset = self.storage_offset()
        held = self.untyped_storage().nbytes() // item - offset if on_host and array.size else array.size
        kept = min(fresh.size, held)
        if type(self._st) is BorrowedShared:
            raise RuntimeError("Trying to resize storage that is not resizable")
        if Deterministic.on and Deterministic.fill:
            filled(fresh)
        if on_host:
            if kept:
                # In the order of memory, whatever order the new shape has.
                strided(fresh, (kept,), (item,))[...] = strided(array, (kept,), (item,))
        elif kept:
            old = array if array.flags.c_contiguous else device_of(array).clone(array, contiguous_format)
            device_of(array).copy(*[one.over((kept,), (item,), one.offset, one.dtype) for one in (fresh, old)])
        if HOOK["ALLOCATED"] is not None:
            HOOK["ALLOCATED"](fresh)
        move(self, fresh)
        if type(self._st) is InferenceShared:
            self._st = InferenceShared()
        elif self._st is not None:
            self._st = Shared(None, self._st.version)
    self._of = None
    bump(self)
    return self


declare("resize_(Tensor self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor", composite=_resize, where="n")


@choose("resize_", where="m")
def resize_(self: Tensor, *size: Any, memory_format: MemoryFormat | None = None) -> Tensor:
    """Change the shape in place, growing the memory if it is too small; contents beyond the old end are undefined."""
    return aten.resize___default(self, as_shape(size or argument_missing("resize_")), memory_format=memory_format)
