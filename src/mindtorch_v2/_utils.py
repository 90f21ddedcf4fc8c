"""`torch._utils`: private helpers that training code imports from there."""

from __future__ import annotations

import functools
import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from ._device import DeviceLike, as_device, device
from ._dispatch.namespace import aten
from ._tensor import Tensor, sparse_coo
from ._tensor_state import give_state, rebuild_wrapper, state_of
from ._tensor_str import printoptions
from .utils.data._utils.error import ExceptionWrapper
from .utils.data._utils.error import ReadableKeyError as KeyErrorMessage

__all__ = ["ExceptionWrapper", "KeyErrorMessage", "_flatten_dense_tensors",
           "_get_available_device_type", "_get_device_index", "_reorder_tensors_as",
           "_take_tensors", "_unflatten_dense_tensors", "render_call"]


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """All elements of tensors of one dtype, one after the other."""
    return aten.cat([aten.view(aten.contiguous(one), [-1]) for one in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor, shaped as the tensors it was made from."""
    views, offset = [], 0
    for like in tensors:
        views.append(aten.view(aten.narrow(flat, 0, offset, like.numel()), like.shape))
        offset += like.numel()
    return tuple(views)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type, each of at most `size_limit` bytes unless a single tensor is larger."""
    groups: defaultdict[Any, list[Tensor]] = defaultdict(list)
    sizes: defaultdict[Any, int] = defaultdict(int)
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        if sizes[kind] + size > size_limit and sizes[kind] > 0:
            yield groups.pop(kind)
            sizes[kind] = 0
        groups[kind].append(tensor)
        sizes[kind] += size
    yield from (group for group in groups.values() if group)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Tensors that were grouped by type, in the order of others of the same types."""
    by_kind: defaultdict[Any, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        by_kind[tensor.type()].append(tensor)
    iterators = {kind: iter(group) for kind, group in by_kind.items()}
    return tuple(next(iterators[like.type()]) for like in ordered_tensors)


def _get_available_device_type() -> None:
    """None: there is no device besides the CPU."""
    return


def _get_device_module(device_type: str) -> ModuleType:
    """The module of a device type: `torch.npu` for "npu"."""
    package = importlib.import_module(__package__ or "")
    module: ModuleType | None = getattr(package, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as "
                           f"'torch.{device_type}'.")
    return module


def _is_privateuse1_backend_available() -> bool:
    """Whether an NPU is there."""
    found: bool = importlib.import_module(f"{__package__}.npu").is_available()
    return found


def _get_device_index(device: DeviceLike, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device; -1 for the CPU where that is allowed."""
    where = as_device(device) if isinstance(device, str) else device
    if isinstance(where, device_type):
        if where.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {where}")
        if where.type == "cpu":
            return -1
        where = where.index
    if isinstance(where, int):
        return where
    if optional:
        raise RuntimeError("there is no current device besides the CPU")
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


device_type = device


def _rebuild_tensor(storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """A tensor on a storage."""
    made = aten.empty((0,), dtype=storage.dtype, device=storage.device)
    made.set_(storage, storage_offset, size, stride)
    return made


def _rebuild_tensor_v2(storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int],
                       requires_grad: bool, backward_hooks: Any, metadata: Any = None) -> Tensor:
    """A tensor on a storage, with its autograd state."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    made.requires_grad = requires_grad
    for hook in (backward_hooks or {}).values():
        made.register_hook(hook)
    return made


def _rebuild_tensor_v3(storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int],
                       requires_grad: bool, backward_hooks: Any, dtype: Any, metadata: Any = None) -> Tensor:
    """A tensor of a dtype on a storage of bytes."""
    made = aten.empty((0,), dtype=dtype, device=storage.device)
    made.set_(storage, storage_offset, size, stride)
    made.requires_grad = requires_grad
    return made


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Sequence[int], stride: Sequence[int],
                                    requires_grad: bool) -> Tensor:
    """A tensor without data."""
    made = aten.empty_strided(size, stride, dtype=dtype, device="meta")
    made.requires_grad = requires_grad
    return made


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A tensor in coordinate or compressed form."""
    if layout is sparse_coo:
        indices, values, size, *coalesced = data
        return aten.sparse_coo_tensor(indices, values, size, is_coalesced=coalesced[0] if coalesced else None)
    compressed, plain, values, size = data
    return aten.sparse_compressed_tensor(compressed, plain, values, size, layout=layout)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter around a tensor."""
    made = _parameter(data, requires_grad)
    made._backward_hooks = backward_hooks
    return made


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter with the attributes that it had."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _parameter(data: Tensor, requires_grad: bool) -> Any:
    return importlib.import_module(f"{__package__}.nn.parameter").Parameter(data, requires_grad)


_rebuild_wrapper_subclass, _get_obj_state, _set_obj_state = rebuild_wrapper, state_of, give_state


def _import_dotted_name(name: str) -> Any:
    """What `a.b.c` stands for."""
    first, *rest = name.split(".")
    return functools.reduce(getattr, rest, importlib.import_module(first))


def _element_size(dtype: Any) -> int:
    """The bytes of one element."""
    return int(dtype.itemsize)


def render_call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call as text; of tensors it has the sizes.

    >>> import mindtorch_v2 as torch
    >>> render_call(torch.sum, [torch.ones(100)], {"dim": 0})
    'torch.sum(tensor([...], size=(100,)), dim=0)'
    """
    name = importlib.import_module(f"{__package__}.overrides").resolve_name(fn) or str(fn)
    with printoptions(threshold=0, edgeitems=0):
        parts = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
    return f"{name}({', '.join(parts)})"


def try_import(name: str) -> Any:
    """A module, or None if there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class classproperty:
    """A property of the class itself."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.func(owner)
