"""Other forms of the view ops, made from their declarations: in-place ones (`t_`) and copying ones (`t_copy`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd.inplace import bump, check_inference, check_inplace
from .._backends.cpu import view as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import OPS, Op, choose, declare
from .._dispatch.state import THREAD
from .._tensor import InferenceShared, Tensor
from .formulas import NOT_IMPLEMENTED, not_implemented

# -- in-place: the tensor becomes its own view -----------------------------------------------------------------------


def become(tensor: Tensor, view: Tensor) -> Tensor:
    """Give a tensor the geometry and history of a view of it."""
    tensor._a = view._a
    if view._edge is not None:
        tensor._edge, tensor._rg = view._edge, True
    bump(tensor)
    if tensor._of is not None:
        # Seen at this version: the view's own edge is its history, not one derived from the base.
        tensor._of = (tensor._of[0], tensor._version, tensor._of[2])
    if tensor._ag is not None and tensor._ag.accumulator is not None:
        tensor._ag.accumulator[0].meta = ((tensor._a.shape, tensor._a.dtype),)
    return tensor


def _in_place(view: str) -> Callable[..., Tensor]:
    def apply(self: Tensor, *args: Any) -> Tensor:
        if type(self._st) is InferenceShared:
            check_inference(self)
        if THREAD.state.grad:
            check_inplace(self)
        return become(self, getattr(aten, view)(self, *args))

    return apply


def _arguments(key: str) -> str:
    return OPS[key].schema_text.partition("(")[2].rpartition(") ->")[0]


for _key, _where, _node in (
    ("t", "m", "TBackward1"), ("transpose.int", "m", "TransposeBackward1"), ("unsqueeze", "m", "UnsqueezeBackward1"),
    ("as_strided", "fm", "AsStridedBackward1"), ("squeeze", "n", "SqueezeBackward3"),
    ("squeeze.dim", "n", "SqueezeBackward4"), ("squeeze.dims", "n", "SqueezeBackward5"),
):
    _name, _, _overload = _key.partition(".")
    _suffix = f".{_overload}" if _name == "squeeze" and _overload else ""
    _form = f"inplace_{_overload}" if _overload else "inplace"
    # The same view, under the name that the graph has for the in-place form.
    declare(f"{_name}.{_form}({_arguments(_key)}) -> Tensor", cpu=OPS[_key].cpu, view=True, grad=OPS[_key].grad,
            node=_node, where="n")
    declare(f"{_name}_{_suffix}({_arguments(_key)}) -> Tensor", composite=_in_place(f"{_name}__{_form}"), where=_where)
declare("swapaxes_(Tensor self, int axis0, int axis1) -> Tensor", where="m",
        composite=lambda self, axis0, axis1: aten.transpose_(self, axis0, axis1))
declare("swapdims_(Tensor self, int dim0, int dim1) -> Tensor", where="m",
        composite=lambda self, dim0, dim1: aten.transpose_(self, dim0, dim1))


@choose("squeeze_", where="m")
def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """Remove this tensor's dimensions of extent 1."""
    if dim is None:
        return aten.squeeze___default(self)
    return aten.squeeze___dim(self, dim) if isinstance(dim, int) else aten.squeeze___dims(self, dim)


# -- copies ----------------------------------------------------------------------------------------------------------


def _copying(view: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        made = view(*args)
        return [piece.copy() for piece in made] if isinstance(made, list) else made.copy()

    return kernel


def _declare_copy(op: Op, where: str = "f") -> None:
    name, _, rest = op.schema_text.partition("(")
    base, dot, overload = name.partition(".")
    assert op.cpu is not None
    declare(f"{base}_copy{dot}{overload}({rest}", cpu=_copying(op.cpu), grad=dict(op.grad), node=f"{op.node}_copy",
            where=where, variadic=None)


for _key in ("alias", "as_strided", "expand", "permute", "select.int", "slice.Tensor", "split.Tensor",
             "split_with_sizes", "t", "transpose.int", "unbind.int", "unfold", "unsqueeze", "view_as_complex",
             "view_as_real"):
    _declare_copy(OPS[_key])
# A copy can have any shape of as many elements, however the source lies in memory.
declare("view_copy(Tensor self, int[] size) -> Tensor", grad=dict(OPS["view"].grad), node="ViewBackward0_copy",
        where="f", cpu=lambda a, size: kernels.view(a.copy(), size))
for _key in ("squeeze", "squeeze.dim", "squeeze.dims"):
    _declare_copy(OPS[_key], "n")
declare("detach_copy(Tensor self) -> Tensor", cpu=lambda a: a.copy("K"), where="f", node=NOT_IMPLEMENTED,
        grad={"self": not_implemented("detach_copy")})


@choose("squeeze_copy", where="f")
def squeeze_copy(input: Tensor, dim: Any = None, *, out: Any = None) -> Tensor:
    """`squeeze` into new memory."""
    if dim is None:
        return aten.squeeze_copy__default(input, out=out)
    form = aten.squeeze_copy__dim if isinstance(dim, int) else aten.squeeze_copy__dims
    return form(input, dim, out=out)


declare("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
        cpu=_copying(kernels.split_sizes), grad=dict(OPS["split_with_sizes"].grad))


# -- a window written into a copy ------------------------------------------------------------------------------------


def _scatter_window(a: Any, src: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    # A copy of the whole storage: the window may be anywhere in it.
    base = kernels.owner(a)
    item = a.dtype.itemsize
    start = (a.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // item if a.size else 0
    flat = base if base.flags.c_contiguous else base.transpose(np.argsort(base.strides)[::-1])
    storage = flat.reshape(-1).view(a.dtype).copy()
    window = kernels.as_strided(storage, size, stride, start if storage_offset is None else storage_offset)
    if window.shape != src.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
                           f"slice size = {list(window.shape)}")
    window[...] = src
    return kernels.as_strided(storage, a.shape, [s // item for s in a.strides], start).copy("K")


def _scatter_backward(grad: Tensor, size: Any, stride: Any, storage_offset: Any) -> Tensor:
    whole = aten.contiguous(grad)
    zeros = aten.zeros(size, dtype=grad.dtype, device=grad.device)
    return aten.as_strided_scatter(whole, zeros, size, stride, storage_offset)


declare(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    cpu=_scatter_window,
    grad={"self": _scatter_backward,
          "src": lambda grad, size, stride, storage_offset: aten.as_strided(
              aten.contiguous(grad), size, stride, storage_offset)},
)


def _slice_inverse(self: Tensor, src: Tensor, dim: int, start: Any, end: Any, step: int) -> Tensor:
    part = aten.slice(src, dim, start, end, step)
    if part._a.shape != self._a.shape or part.stride() != self.stride():
        raise RuntimeError("slice_inverse: the tensor is not such a slice of src")
    return aten.as_strided(self, src._a.shape, src.stride(), src.storage_offset())


declare("slice_inverse(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        composite=_slice_inverse)
