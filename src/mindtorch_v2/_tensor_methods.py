"""Methods of Tensor that are not ops: conversion to Python and NumPy, autograd, printing, copying."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._autograd.api import backward as run
from ._autograd.graph import RemovableHandle, edge
from ._backends.array import DeviceArray
from ._backends.base import device_of, placed, to_host
from ._backends.cpu.view import owner
from ._backends.flipped import FlippedArray, flipped
from ._backends.hollow import HollowArray
from ._backends.sparse import SparseArray, starts_of
from ._construct import from_numpy
from ._device import CPU, DeviceLike, device
from ._dispatch.namespace import aten
from ._dispatch.state import THREAD
from ._dtype import FLOAT, FROM_NUMPY, DefaultDtype, DType, bool_, default_complex, dtype, int64
from ._refused import refused_methods
from ._shape import Size
from ._storage import Storage
from ._tensor import DISPATCHING, LEVELS, Tensor, strided, wrap, wrap_as
from ._tensor_facts import attach as attach_facts
from ._tensor_facts import copied, set_
from ._tensor_state import is_wrapper, rebuild_wrapper_with_state, state_of, wrapper_facts
from ._tensor_str import _append_suffixes as append_suffixes
from ._tensor_str import _body as format_body
from ._tensor_str import format_tensor
from ._warn import warn_once
from .utils.hooks import warn_if_has_hooks


def backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:
    """Compute gradients of this tensor into the leaves it depends on."""
    run(self, gradient, retain_graph, create_graph, inputs=inputs)


def host(self: Tensor) -> np.ndarray:
    """The array in host memory."""
    array = self._a
    return array if isinstance(array, np.ndarray) else to_host(array)


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The memory as a NumPy array, shared; `force=True` detaches and copies to the host as needed."""
    if type(self) in DISPATCHING:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    if force:
        return host(aten.resolve_neg(aten.resolve_conj(aten.to(self.detach(), "cpu")))).view()
    if self.requires_grad and THREAD.state.grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if isinstance(self._a, FlippedArray):
        bit, resolve = ("conjugate", "conj") if self.is_conj() else ("negative", "neg")
        raise RuntimeError(f"Can't call numpy() on Tensor that has {bit} bit set. Use "
                           f"tensor.resolve_{resolve}().numpy() instead.")
    if not isinstance(self._a, np.ndarray):
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                        "to host memory first.")
    if self.dtype.name == "bfloat16":
        raise TypeError("Got unsupported ScalarType BFloat16")
    return free_to_write(self._a)


def free_to_write(array: np.ndarray) -> np.ndarray:
    """The same memory for another library: it may write, although an element is seen more than once, and change what
    shape and dtype it sees, which must not change the tensor."""
    lent = array.view()
    if not array.flags.writeable and 0 in array.strides and owner(array).flags.writeable:
        lent.flags.writeable = True
    return lent


def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers."""
    if type(self) in DISPATCHING:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
    array = host(aten.resolve_neg(aten.resolve_conj(self)))
    return (array.astype(np.float32) if self.dtype.name == "bfloat16" else array).tolist()


def _bool(self: Tensor) -> bool:
    return aten.is_nonzero__default(self)


def _index(self: Tensor) -> int:
    if self._a.size != 1 or self.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(aten.item(self))


def _len(self: Tensor) -> int:
    if not self._a.shape:
        raise TypeError("len() of a 0-d tensor")
    return self._a.shape[0]


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._a.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(aten.unbind(self, 0))


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex, bool)):
        return bool(aten.item(aten.any(aten.eq(self, element))))
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def _array(self: Tensor, dtype: DType | None = None, copy: bool | None = None) -> np.ndarray:
    array = numpy(self)
    if copy:  # np.array asks for it, and copies nothing itself then
        return array.astype(array.dtype if dtype is None else dtype)
    return array if dtype is None else array.astype(dtype, copy=False)


def _scalar(self: Tensor) -> Any:
    """The number that `float(x)` and similar functions take from a tensor."""
    if self._rg:
        warn_once("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior: the "
                  "scalar has no history. Call detach() first if that is meant.")
    if self._a.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return aten.item(self)


def _real_scalar(self: Tensor, kind: type) -> Any:
    """A tensor's only element as a number of Python that is not complex."""
    value = _scalar(self)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {'double' if kind is float else 'int64_t'} without "
                               "overflow")
        value = value.real
    return kind(value)


def _array_wrap(self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
    """The result of a NumPy function as a tensor; truth values become bytes, as in PyTorch."""
    return from_numpy(array.astype(np.uint8) if array.dtype == np.bool_ else array)


def _part_repr(array: np.ndarray, margin: int) -> str:
    """A part of a sparse tensor: without its dtype, and with its size if nothing shows it."""
    if not array.size:
        return f"tensor([], size={array.shape})"
    return f"tensor({format_body(array, FROM_NUMPY[array.dtype].name, margin)})"


def _sparse_repr(self: Tensor) -> str:
    held = self._a
    parts = {"indices": held.indices} if held.layout == "sparse_coo" else {
        "crow_indices": starts_of(held), "col_indices": held.indices[1]} if held.layout == "sparse_csr" else {
        "ccol_indices": starts_of(held), "row_indices": held.indices[0]}
    places = ",\n       ".join(f"{name}={_part_repr(array, 15 + len(name))}" for name, array in parts.items())
    values = _part_repr(held.values, 21)
    node = self.grad_fn
    facts = [f"size={tuple(held.shape)}", f"nnz={held.indices.shape[1]}"]
    facts += [] if self.dtype in (DefaultDtype.value, default_complex(), int64, bool_) else [f"dtype={self.dtype}"]
    facts += [f"layout=torch.{held.layout}"]
    facts += [f"grad_fn=<{type(node).__name__}>"] if node is not None else []
    facts += ["requires_grad=True"] if self.requires_grad and node is None else []
    text = f"tensor({places},\n       values={values}"
    if held.layout == "sparse_coo":
        text += f",\n       {facts.pop(0)}"
    return append_suffixes(text, facts, 7)


def _maker(tensor: Tensor) -> str | None:
    """The name of the node that made a tensor, if one did."""
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view of no_grad mode whose memory was changed: its history is not clear
        return "Invalid"
    return None if node is None else type(node).__name__


def _repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    if self.layout is not strided:
        return _sparse_repr(self)
    made = _maker(self)
    tangent = LEVELS[-1].tangent(self) if LEVELS else None
    where = str(self.device)
    name = type(self).__name__
    if tensor_contents is not None or type(self._a) is HollowArray:
        facts = [] if tensor_contents is not None else [f"size={tuple(self._a.shape)}"]
        facts += [f"grad_fn=<{made}>"] if made is not None else []
        facts += ["requires_grad=True"] if self.requires_grad and made is None else []
        return append_suffixes(f"{name}({'...' if tensor_contents is None else tensor_contents}", facts, len(name) + 1)
    return format_tensor(
        None if where == "meta" else host(self),
        dtype_name=self.dtype.name,
        default_dtype_name=DefaultDtype.value.name,
        device=where,
        requires_grad=self.requires_grad,
        grad_fn_name=made,
        tangent=None if tangent is None else repr(tangent),
        shape=tuple(self._a.shape),
        prefix="tensor(" if name in ("Tensor", "Parameter") else f"{name}(",
    )


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or one extent of it."""
    return tuple.__new__(Size, self._a.shape) if dim is None else self._a.shape[_checked(dim, self.ndim)]


def _checked(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        if not ndim and dim in (0, -1):
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
        raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")
    return dim


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Strides in elements."""
    array = self._a
    if not array.size and not any(array.strides):
        # NumPy has no steps for new arrays without elements; parts of others keep theirs.
        steps = tuple(math.prod(max(n, 1) for n in array.shape[i + 1:]) for i in range(array.ndim))
    else:
        item_size = array.dtype.itemsize
        steps = tuple(s // item_size for s in array.strides)
    return steps if dim is None else steps[_checked(dim, self.ndim)]


def numel(self: Tensor) -> int:
    """The number of elements."""
    return self._a.size


def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return len(self._a.shape)


def element_size(self: Tensor) -> int:
    """Bytes per element."""
    return self._a.dtype.itemsize


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` and return the tensor."""
    if not isinstance(requires_grad, bool):
        raise TypeError("requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                        f"{type(requires_grad).__name__}")
    if THREAD.state.transforms:
        raise RuntimeError("You are attempting to call Tensor.requires_grad_() (or perhaps using "
                           "torch.autograd.functional.* APIs) inside of a function being transformed by a functorch "
                           "transform. This is unsupported, please attempt to use the functorch transforms (e.g. "
                           "grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
                           "transformed instead.")
    if requires_grad is True and self.dtype.category < FLOAT:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    self.requires_grad = requires_grad
    return self


def retain_grad(self: Tensor) -> None:
    """Keep this tensor's gradient although it is not a leaf."""
    if THREAD.state.transforms:
        raise RuntimeError("You are attempting to call Tensor.retain_grad() inside of a function being transformed by "
                           "a functorch transform. This is unsupported, please attempt to use the functorch "
                           "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call retain_grad() outside of a "
                           "function being transformed instead.")
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self.is_leaf or self.retains_grad:
        return
    node, number = edge(self)  # type: ignore[misc]
    node.ensure_hooks().capture[number] = weakref.ref(self)
    self.extras().retains_grad = True


def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is known; what it returns replaces the gradient."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node, number = edge(self)  # type: ignore[misc]
    return RemovableHandle(node.ensure_hooks().tensor_pre.setdefault(number, {}), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to this leaf."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extras = self.extras()
    if extras.post_hooks is None:
        extras.post_hooks = {}
    return RemovableHandle(extras.post_hooks, hook)


def _with_copied_storage(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    """This tensor on a copy of its memory, which is one copy for all tensors on that memory."""
    copies = memo.setdefault("torch", {})
    storage = self.untyped_storage()
    if storage not in copies:
        copies[storage] = copied(storage)
    made = set_(aten.new_empty(self, ()), copies[storage], self.storage_offset(), self._a.shape, self.stride())
    if type(self) is Tensor:
        return made
    kept = wrap_as(type(self), made._a)
    kept._st = made._st
    return kept


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if type(self) in DISPATCHING and not device_of(self._a).has_data:
        made = aten.clone(self)
        if type(made) is not type(self):
            raise RuntimeError("The default implementation of __deepcopy__() for wrapper subclasses only works for "
                               "subclass types for which cloning returns another instance of the same subclass, here "
                               f"{type(self).__name__}.")
        memo[id(self)] = made
        made._rg = self._rg
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made
    alone = isinstance(self._a, (FlippedArray, SparseArray)) or not device_of(self._a).has_data
    made = wrap_as(type(self), device_of(self._a).clone(self._a)) if alone else _with_copied_storage(self, memo)
    made._rg = self._rg
    memo[id(self)] = made
    if self.grad is not None:
        made.grad = _deepcopy(self.grad, memo)
    if self.__dict__:
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return made


def _copy(self: Tensor) -> Tensor:
    # As from a pickle: a leaf on the same memory, with a version of its own.
    warn_if_has_hooks(self)
    if self.layout is strided and type(self) not in DISPATCHING:
        data = self.data
        made = wrap_as(type(self), data._a)
        made._st = data._st
    else:
        made = wrap_as(type(self), self._a)
        made._st = self.shared()
    made._rg = self.requires_grad
    if self.__dict__:
        made.__dict__.update(self.__dict__)
    return made


def rebuild(cls: type, contents: Any, requires_grad: bool, where: device = CPU,
            attributes: dict[str, Any] | None = None, order: tuple[int, ...] | None = None) -> Tensor:
    """What a pickled tensor comes back through, to the device that it was on.

    Of one without memory the contents are shape, strides and dtype. `order` says which dimensions these are, if they do
    not lie in memory in their own order.
    """
    if isinstance(contents, tuple):
        shape, stride, kind = contents
        made = wrap_as(cls, aten.empty_strided(shape, stride, dtype=kind, device="meta")._a)
    elif order is not None:
        made = wrap_as(cls, aten.permute(wrap(placed(contents, where)), tuple(np.argsort(order).tolist()))._a)
    else:
        made = wrap_as(cls, placed(contents, where))
    made._rg = requires_grad
    made.__dict__.update(attributes or {})
    return made


def _reduce(self: Tensor, protocol: Any = None) -> Any:
    warn_if_has_hooks(self)
    if type(self._a) is np.ndarray or (isinstance(self._a, DeviceArray) and device_of(self._a).has_data):
        # With the whole memory, as in PyTorch: what shares it now shares it again.
        return (rebuild_on, (type(self), self.untyped_storage(), self.dtype, self.storage_offset(),
                             tuple(self._a.shape), self.stride(), self._rg, self.__dict__,
                             *((self.is_conj(), self.is_neg()) if isinstance(self._a, FlippedArray) else ())))
    return reduce_alone(self)


def rebuild_on(cls: type, storage: Storage, kind: dtype, offset: int, shape: tuple[int, ...], stride: tuple[int, ...],
               requires_grad: bool, attributes: dict[str, Any], conj: bool = False, neg: bool = False) -> Tensor:
    """Rebuild a pickled tensor: a window on a storage of the same pickle."""
    window = set_(aten.empty((0,), dtype=kind, device=storage.device), storage, offset, shape, stride)
    made = wrap_as(cls, flipped(window._a, conj, neg))
    made._st = window._st
    made._rg = requires_grad
    made.__dict__.update(attributes)
    return made


def reduce_alone(self: Tensor) -> Any:
    """Reduce a tensor to its own elements, without the rest of their memory, to send it to another process."""
    if self.layout is not strided:
        from ._sparse_parts import reduce_sparse

        return reduce_sparse(self)
    if is_wrapper(self):
        return (rebuild_wrapper_with_state, (wrapper_facts(self), state_of(self)))
    order = None
    if self.is_meta:
        contents: Any = (self._a.shape, self.stride(), self.dtype)
    else:
        array = host(self)
        if not array.flags.c_contiguous and array.ndim > 1:
            order = tuple(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
            array = array.transpose(order)
        contents = np.ascontiguousarray(array).reshape(array.shape)
    return (rebuild, (type(self), contents, self._rg, self.device, self.__dict__, order))


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two shapes are equal."""
    return aten.is_same_size(self, other)


def pin_memory(self: Tensor, device: DeviceLike = None) -> Tensor:
    """A copy in host memory that a device copies from while the program goes on; without a device, the tensor itself.
    """
    if not self.is_cpu:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    from ._backends.npu.host import pinned_copy
    from ._backends.npu.runtime import unavailable_reason

    return self if unavailable_reason() is not None or self.is_pinned() else wrap(pinned_copy(self._a))


def record_stream(self: Tensor, stream: Any) -> None:
    """A stream other than the one this tensor was made on uses its memory, which is kept until that has passed."""
    device_of(self._a).record_stream(self._a, stream)


def _format(self: Tensor, spec: str) -> str:
    """A plain tensor of one element without dimensions is formatted as its number."""
    if type(self) is Tensor and self.ndim == 0 and self.device.type != "meta":
        return format(aten.item(self), spec)
    return object.__format__(self, spec)


def _part_getter(part: str) -> Callable[[Tensor], Tensor]:
    return lambda self: getattr(aten, part)(self)


def _part_setter(part: str) -> Callable[[Tensor, Any], None]:
    def put(self: Tensor, value: Any) -> None:
        target = getattr(aten, part)(self)
        aten.copy_(target, value if isinstance(value, Tensor) else aten.full(target.shape, value, dtype=target.dtype))

    return put


def attach() -> None:
    """Put these methods on Tensor."""
    attach_facts()
    for function in (backward, numpy, tolist, size, stride, numel, dim, element_size, requires_grad_,
                     retain_grad, register_hook, register_post_accumulate_grad_hook, is_same_size, pin_memory,
                     record_stream):
        setattr(Tensor, function.__name__, function)
    special: dict[str, Any] = {
        "__bool__": _bool, "__index__": _index, "__len__": _len, "__iter__": _iter, "__contains__": _contains,
        "__array__": _array, "__array_wrap__": _array_wrap, "__repr__": _repr,
        "__deepcopy__": _deepcopy, "__copy__": _copy,
        "__reduce_ex__": _reduce, "__float__": lambda self: _real_scalar(self, float),
        "__int__": lambda self: _real_scalar(self, int), "__complex__": lambda self: complex(_scalar(self)),
        "__format__": _format,
        "__reversed__": lambda self: aten.flip(self, [0]) if self.ndim else self,
        "__dir__": lambda self: sorted(set(dir(type(self)))),
        "nelement": numel, "ndimension": dim,
        "get_device": lambda self: -1 if self.is_cpu else self.device.index or 0,
    }
    for name, function in {**special, **refused_methods()}.items():
        setattr(Tensor, name, function)
    properties: dict[str, Callable[[Tensor], Any]] = {
        "T": lambda self: aten.numpy_T(self),
        "mT": lambda self: aten.mT(self),
        "H": lambda self: aten.matrix_H(self),
        "mH": lambda self: aten.mH(self),
    }
    for name, getter in properties.items():
        setattr(Tensor, name, property(getter))
    for part in ("real", "imag"):
        setattr(Tensor, part, property(_part_getter(part), _part_setter(part)))
