"""`torch.save` and `torch.load`: PyTorch's checkpoint files, both ways. Loading never runs code from the file."""

from __future__ import annotations

import importlib
from typing import Any

from ._device import CPU, device
from ._dispatch.namespace import aten
from ._dtype import dtype, dtype_from_name
from ._serialization import (
    StorageRecord,
    TensorRecord,
    read_archive,
    reduce_device,
    reduce_dtype,
    reduce_size,
    torch_global,
    write_archive,
)
from ._shape import Size
from ._storage import Shared, Storage
from ._tensor import Tensor, wrap
from .nn.parameter import Parameter

_SAFE: dict[tuple[str, str], Any] = {}


class _Describer:
    """Turns tensors into records; storages get one key each, however many tensors share them."""

    def __init__(self) -> None:
        self.storages: dict[int, tuple[StorageRecord, Any]] = {}

    def __call__(self, obj: object) -> TensorRecord | StorageRecord | None:
        if not isinstance(obj, Tensor):
            return None
        tensor: Tensor = obj if obj.is_leaf else aten.detach(obj)
        where = tensor.device
        host: Tensor = tensor if where == CPU else aten.to(aten.detach(tensor), "cpu")
        storage = host.untyped_storage()
        key = id(storage.array)
        if key not in self.storages:
            flat = storage.bytes().view(host._a.dtype)
            self.storages[key] = (StorageRecord(str(len(self.storages)), host.dtype.name, str(where), flat), storage)
        record = self.storages[key][0]
        if record.dtype_name != host.dtype.name:
            # The same bytes seen as another type: written as a storage of its own.
            host = aten.clone(host)
            flat = host.untyped_storage().bytes().view(host._a.dtype)
            record = StorageRecord(str(len(self.storages)), host.dtype.name, str(where), flat)
            self.storages[id(flat)] = (record, flat)
        return TensorRecord(record, host.storage_offset(), tuple(host._a.shape), tuple(host.stride()),
                            bool(tensor.requires_grad), isinstance(obj, Parameter))


def _reduce(obj: object) -> Any:
    if isinstance(obj, dtype):
        return reduce_dtype(obj.name)
    if isinstance(obj, device):
        return reduce_device(obj.type, obj.index)
    if isinstance(obj, Size):
        return reduce_size(tuple(obj))
    if isinstance(obj, type) and obj.__module__.startswith("mindtorch_v2"):
        return torch_global("torch" + obj.__module__[len("mindtorch_v2"):], obj.__qualname__)
    return None


def save(obj: object, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False) -> None:
    """Write an object with its tensors to a file that PyTorch can read too. An existing file survives a failure."""
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("torch.save: the format from before PyTorch 1.6 is not written by this runtime")
    write_archive(f, obj, describe=_Describer(), extra_reduce=_reduce, pickle_protocol=pickle_protocol)


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool = True,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:
    """Read what `save` (or PyTorch) wrote.

    Only plain data is accepted unless `weights_only=False`, which trusts the file and may run code from it.
    """
    storages: dict[int, Any] = {}

    def build(record: TensorRecord) -> Tensor:
        return _build(record, storages, map_location)

    return read_archive(
        f, build=build, build_dtype=dtype_from_name, build_device=device, build_size=Size,
        mmap=bool(mmap), weights_only=weights_only, allowed=_SAFE, resolve_torch_name=_resolve)


def _build(record: TensorRecord, storages: dict[int, Any], map_location: Any) -> Tensor:
    array = record.to_array()
    made = wrap(array)
    shared = storages.get(id(record.storage.data))
    if shared is None:
        shared = storages[id(record.storage.data)] = Storage(array, CPU)
    made._st = Shared(shared)
    if callable(map_location):
        moved = map_location(shared, record.storage.location)
        target = device(record.storage.location) if moved is None else moved.device
    else:
        target = _location(map_location, record.storage.location)
    if target is not None and target != CPU:
        made = aten.to(made, target)
    if record.is_parameter:
        return Parameter(made, record.requires_grad)
    if record.requires_grad:
        made.requires_grad = True
    return made


def _location(map_location: Any, saved: str) -> device | None:
    if map_location is None:
        return device(saved)
    if isinstance(map_location, dict):
        return device(map_location.get(saved, saved))
    if isinstance(map_location, (str, device)):
        return device(map_location)
    raise TypeError(f"map_location must be a device, a string or a dict, got {type(map_location).__name__}")


def _resolve(module: str, name: str) -> Any:
    found: Any = importlib.import_module("mindtorch_v2" + module[len("torch"):])
    for part in name.split("."):
        found = getattr(found, part)
    return found


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` accept these classes and functions."""
    for one in safe_globals:
        target, name = one if isinstance(one, tuple) else (one, f"{one.__module__}.{one.__qualname__}")
        module, _, last = name.rpartition(".")
        _SAFE[module, last] = target


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` added."""
    _SAFE.clear()


class safe_globals:
    """A context in which `load` accepts these classes and functions."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.added = safe_globals
        self.before: dict[Any, Any] = {}

    def __enter__(self) -> None:
        self.before = dict(_SAFE)
        add_safe_globals(self.added)

    def __exit__(self, *exc: object) -> None:
        _SAFE.clear()
        _SAFE.update(self.before)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` added."""
    return list(_SAFE.values())


