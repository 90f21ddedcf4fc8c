"""`torch.save` and `torch.load`: PyTorch's checkpoint files, both ways. Loading never runs code from the file."""

from __future__ import annotations

import enum
import importlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from mmap import MAP_PRIVATE, MAP_SHARED
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from ._backends.base import DEVICES, LOADERS, device_named
from ._backends.flipped import flipped
from ._device import CPU, device
from ._dispatch.namespace import aten
from ._dtype import dtype, dtype_from_name, uint8
from ._serialization import (
    UNTYPED,
    SparseRecord,
    StorageRecord,
    TensorRecord,
    numpy_dtype,
    read_archive,
    reduce_device,
    reduce_dtype,
    reduce_size,
    refused_globals,
    torch_global,
    write_archive,
)
from ._shape import Size
from ._sparse_parts import sparse_parts
from ._storage import Shared, Storage
from ._tensor import Layout, Tensor, strided, wrap
from ._tensor_state import give_state, is_wrapper, rebuild_wrapper, state_of, wrapper_facts
from ._typed_storage import TypedStorage
from .nn.modules.module import Module
from .nn.parameter import Parameter, UninitializedTensorMixin
from .utils.hooks import warn_if_has_hooks
from .utils.serialization import config

_SAFE: dict[tuple[str, str], Any] = {}
_ADDED: list[Any] = []  # as the program named them

DEFAULT_PROTOCOL = 2
MAP_LOCATION: TypeAlias = Callable[[Storage, str], Storage] | device | str | dict[str, str] | None


class _Describer:
    """Turns tensors into records; storages get one key each, however many tensors share them."""

    def __init__(self) -> None:
        self.storages: dict[tuple[int, str], tuple[StorageRecord, Any]] = {}

    def __call__(self, obj: object) -> TensorRecord | StorageRecord | None:
        if isinstance(obj, Storage):
            return self.storage(obj, UNTYPED, obj.bytes())
        if isinstance(obj, TypedStorage):
            raw = obj._untyped_storage
            return self.storage(raw, obj.dtype.name, raw.bytes().view(obj.dtype.np))
        if not isinstance(obj, Tensor) or isinstance(obj, UninitializedTensorMixin) or obj.layout is not strided or (
                is_wrapper(obj)):
            return None
        record = self.tensor(obj)
        record.state = state_of(obj) or None
        record.subclass = None if type(obj) in (Tensor, Parameter) or record.is_parameter else type(obj)
        return record

    def storage(self, storage: Any, name: str, data: Any) -> StorageRecord:
        """A storage, once for all that use it."""
        key = self.key(storage, name)
        if key not in self.storages:
            if _SKIPPING:
                data = np.zeros_like(data)
            self.storages[key] = (StorageRecord(str(len(self.storages)), name, location_tag(storage), data), storage)
        if self.storages[key][0].dtype_name != name:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return self.storages[key][0]

    @staticmethod
    def key(storage: Any, name: str) -> tuple[int, str]:
        """What storages of the same memory have in common; without bytes, each type may have one."""
        return (id(storage.owner), "" if storage.nbytes() else name)

    def tensor(self, obj: Tensor) -> TensorRecord:
        """A window on a storage."""
        warn_if_has_hooks(obj)
        tensor: Tensor = obj if obj.is_leaf else aten.detach(obj)
        if tensor.device.type == "meta":
            record = StorageRecord("", tensor.dtype.name, "meta", np.empty(0, numpy_dtype(tensor.dtype.name)))
            return TensorRecord(record, 0, tuple(tensor._a.shape), tuple(tensor.stride()), bool(obj.requires_grad),
                                issubclass(type(obj), Parameter))
        storage = tensor.untyped_storage()
        known = self.storages.get(self.key(storage, tensor.dtype.name))
        data = storage.bytes().view(tensor._a.dtype) if known is None else known[0].data
        record = self.storage(storage, tensor.dtype.name, data)
        return TensorRecord(record, tensor.storage_offset(), tuple(tensor._a.shape), tuple(tensor.stride()),
                            bool(obj.requires_grad), issubclass(type(obj), Parameter), is_conj=tensor.is_conj(),
                            is_neg=tensor.is_neg())


def _reduce(obj: object) -> Any:
    if isinstance(obj, dtype):
        return reduce_dtype(obj.name)
    if isinstance(obj, device):
        return reduce_device(obj.type, obj.index)
    if isinstance(obj, Size):
        return reduce_size(tuple(obj))
    if isinstance(obj, Layout):
        return (torch_global("torch.serialization", "_get_layout"), (str(obj),))
    if isinstance(obj, Tensor) and obj.layout is not strided:
        return (torch_global("torch._utils", "_rebuild_sparse_tensor"), (obj.layout, sparse_parts(obj)))
    if isinstance(obj, Tensor) and is_wrapper(obj):
        kind, *facts = wrapper_facts(obj)
        return (torch_global("torch._tensor", "_rebuild_from_type_v2"),
                (torch_global("torch._utils", "_rebuild_wrapper_subclass"), kind, (kind, *facts), state_of(obj)))
    if isinstance(obj, (type, FunctionType)):
        home = _home(obj)
        return None if home is None else torch_global(home, obj.__qualname__)
    return None


# PyTorch has one module where we have several files.
_ONE_MODULE = ("torch.nn.functional", "torch.optim.lr_scheduler", "torch.utils._pytree")


def _home(obj: Any) -> str | None:
    """The module of PyTorch that has a class or function of ours under its name; None for others."""
    own, name = __name__.partition(".")[0], obj.__qualname__
    package, *rest = str(obj.__module__).split(".")
    if package not in (own, "torch"):
        return None
    full = ".".join(["torch", *rest])
    inner = next((one for one in _ONE_MODULE if full.startswith(one)), None)
    if inner is None and not any(part.startswith("_") for part in rest):
        return full
    public = [part.lstrip("_") for part in rest]
    for path in ([public[:depth] for depth in range(len(public), 0, -1)] if inner is None else []) + [
            rest[:depth] for depth in range(len(rest))]:
        module = sys.modules.get(".".join([own, *path]))
        if "." not in name and getattr(module, name, None) is obj:
            return ".".join(["torch", *path])
    return full


def _check_dill_version(pickle_module: Any) -> None:
    """Refuse a dill whose picklers have another order of attributes."""
    if pickle_module is None or getattr(pickle_module, "__name__", "") != "dill":
        return
    if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
        raise ValueError(f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please "
                         "upgrade dill or switch to 'pickle'")


def save(obj: object, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False) -> None:
    """Write an object with its tensors to a file that PyTorch can read too. An existing file survives a failure."""
    _check_dill_version(pickle_module)
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if _SKIPPING and not _use_new_zipfile_serialization:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    write_archive(f, obj, describe=_Describer(), extra_reduce=_reduce, pickle_protocol=pickle_protocol,
                  legacy=not _use_new_zipfile_serialization, alignment=config.save.storage_alignment,
                  crc32=config.save.compute_crc32, with_source=lambda kind: issubclass(kind, Module))


def normalize_storage_type(storage_type: type) -> type:
    """The class of storages that a class stands for; libraries that read files themselves ask for it."""
    return storage_type


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:
    """Read what `save` (or PyTorch) wrote.

    Only plain data is accepted unless `weights_only=False`, which trusts the file and may run code from it. The
    environment decides first: TORCH_FORCE_WEIGHTS_ONLY_LOAD=1, or where the caller says nothing
    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    _check_dill_version(pickle_module)
    builder = _Builder(map_location)
    return read_archive(
        f, build=builder.tensor, build_dtype=dtype_from_name, build_device=device, build_size=Size,
        build_storage=builder.storage, build_sparse=builder.sparse, build_layout=_layout,
        build_wrapper=builder.wrapper, tensor_class=Tensor, mmap_shared=config.load.mmap_flags == MAP_SHARED,
        mmap=config.load.mmap if mmap is None else bool(mmap), byteorder=_assumed_byteorder(),
        weights_only=weights_only, allowed=_SAFE, resolve_torch_name=_resolve,
        pickle_module=pickle_module or pickle, **pickle_load_args)


def _weights_only(said: bool | None, pickle_module: Any) -> bool:
    """Whether a file may hold plain data only, from what the caller and the environment say."""
    always, never = (os.environ.get(name, "0").lower() in ("1", "y", "yes", "true") for name in
                     ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"))
    if always and never:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should "
                           "be set, but both were set.")
    if always:
        return True
    if said is None and never:
        warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected: weights_only was not given to "
                      "torch.load, so that files are trusted.", stacklevel=3)
        return False
    return pickle_module is None if said is None else bool(said)


class _Builder:
    """Makes tensors and storages of records; what shares memory in the file shares it again."""

    def __init__(self, map_location: Any) -> None:
        self.map_location = map_location
        self.storages: dict[int, Storage] = {}
        self.moved: dict[tuple[int, device], Any] = {}
        self.targets: dict[int, device | None] = {}

    def tensor(self, record: TensorRecord) -> Tensor:
        """A tensor, or a parameter, with the attributes it had."""
        if record.storage.location == "meta":
            kind = dtype_from_name(record.storage.dtype_name)
            made = aten.empty_strided(record.size, record.stride, dtype=kind, device="meta")
        else:
            array = record.to_array()
            made = wrap(flipped(array, record.is_conj, record.is_neg))
            shared = self._shared(record.storage, array)
            made._st = Shared(shared)
            target = self._target(shared, record.storage.location)
            if target is not None and target != CPU:
                made = self._on_device(record, made, target)
        if record.is_parameter:
            made = Parameter(made, record.requires_grad)
        elif record.requires_grad:
            made.requires_grad = True
        if record.subclass is not None:
            made = made.as_subclass(record.subclass)
        if record.state:
            _give_state(made, record.state)
        return made

    def wrapper(self, facts: tuple[Any, ...], state: Any) -> Tensor:
        """A tensor without memory of its own, of a class that the file may name."""
        cls, kind, size, stride, offset, layout, where, requires_grad = facts
        there = _place(None, self.map_location, str(where))
        made = rebuild_wrapper(cls, kind, size, stride, offset, layout, where if there is None else there,
                               requires_grad)
        return give_state(made, state)

    def storage(self, record: StorageRecord) -> TypedStorage:
        """A storage outside of tensors; without an element type it is one of bytes."""
        kind = uint8 if record.dtype_name == UNTYPED else dtype_from_name(record.dtype_name)
        shared = self._shared(record, record.data)
        target = self._target(shared, record.location)
        if target is not None and target != CPU and device_named(target).has_data:
            moved = self._moved(record, target)
            shared = Storage(moved, moved.device)
        elif target is not None and target.type == "meta":
            shared = aten.empty(record.data.size, dtype=kind, device=target).untyped_storage()
        return TypedStorage(wrap_storage=shared, dtype=kind, _internal=True)

    def sparse(self, record: SparseRecord) -> Tensor:
        """A tensor in coordinate or compressed form."""
        if record.compressed is not None:
            return aten.sparse_compressed_tensor(record.compressed, record.indices, record.values, record.size,
                                                 layout=record.layout)
        return aten.sparse_coo_tensor(record.indices, record.values, record.size, is_coalesced=record.is_coalesced)

    def _on_device(self, record: TensorRecord, made: Tensor, target: device) -> Tensor:
        """A tensor in the memory of a device."""
        array = made._a
        there = wrap(self._moved(record.storage, target).over(array.shape, array.strides,
                                                              record.offset * array.dtype.itemsize, array.dtype))
        if record.is_conj:
            there = aten.conj(there)
        return aten.neg(there) if record.is_neg else there

    def _moved(self, record: StorageRecord, target: device) -> Any:
        """The array that a storage is on a device; it goes there once for all that use it."""
        key = id(record.data), target
        if key not in self.moved:
            self.moved[key] = aten.to(wrap(record.data), target)._a
        return self.moved[key]

    def _shared(self, record: StorageRecord, array: Any) -> Storage:
        if id(record.data) not in self.storages:
            self.storages[id(record.data)] = Storage(array, CPU)
        return self.storages[id(record.data)]

    def _target(self, storage: Storage, saved: str) -> device | None:
        if id(storage) not in self.targets:  # a function is asked once for each
            self.targets[id(storage)] = _place(storage, self.map_location, saved)
        return self.targets[id(storage)]


def _give_state(tensor: Tensor, state: Any) -> None:
    """Python attributes; those in slots only if a subclass added the slot, since ours hold the tensor itself."""
    slots = state[1] if isinstance(state, tuple) and len(state) == 2 else None
    for name in slots or () if type(slots) is dict else ():
        if hasattr(Tensor, name):
            raise pickle.UnpicklingError(f"the file wants to set {name!r} of a tensor")
    try:
        give_state(tensor, state)
    except RuntimeError as error:
        if not str(error).startswith("Invalid serialized state"):
            raise
        raise pickle.UnpicklingError(f"the attributes of a tensor should be a dict, and are {type(state).__name__}"
                                     ) from error


def _layout(name: str) -> Any:
    found = getattr(importlib.import_module("mindtorch_v2"), name.removeprefix("torch."), None)
    if not isinstance(found, Layout):
        raise pickle.UnpicklingError(f"{name[:40]!r} is not a layout")
    return found


def _place(storage: Any, map_location: Any, saved: str) -> device | None:
    """The device for a storage that was saved from `saved`: that of `map_location`, else the same."""
    if map_location is None:
        return _known_place(storage, saved)
    if isinstance(map_location, dict):
        return _known_place(storage, str(map_location.get(saved, saved)))
    if isinstance(map_location, (str, device)):
        return _known_place(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(f"map_location must be a device, a string, a dict or a function, got "
                        f"{type(map_location).__name__}: it is not callable")
    moved = map_location(storage, saved)
    return _known_place(storage, saved) if moved is None else moved.device


def _known_place(storage: Any, location: str) -> device | None:
    """The device that a location names, or to which a registered package brings the storage."""
    for _, _, deserializer in _package_registry:
        found = deserializer(storage, location)
        if found is not None:
            return found.device
    kind = location.partition(":")[0]
    if kind == "cuda":
        validate_cuda_device(location)
    if kind in ("xpu", "hpu", "privateuseone"):
        raise RuntimeError(f"Attempting to deserialize object on a {kind.upper()} device, and the {kind.upper()} "
                           "device module is not registered. If you are running on a CPU-only machine, please use "
                           "torch.load with map_location=torch.device('cpu') to map your storages to the CPU.")
    if kind not in DEVICES and kind not in LOADERS:
        raise RuntimeError("don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
                           f"{location})")
    return device(location)


def validate_cuda_device(location: str) -> int:
    """Refuse: there is no CUDA to bring anything to."""
    raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
                       "If you are running on a CPU-only machine, please use torch.load "
                       "with map_location=torch.device('cpu') to map your storages to the CPU. "
                       f"The file says {location}.")


def _resolve(module: str, name: str) -> Any:
    own = "mindtorch_v2" + module[len("torch"):]
    aliased = sys.modules.get("torch") is sys.modules["mindtorch_v2"]
    # A program may have put a module of its own where ours is.
    found: Any = (aliased and sys.modules.get(module)) or importlib.import_module(own)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` accept these classes and functions."""
    for one in safe_globals:
        target, name = one if isinstance(one, tuple) else (one, f"{one.__module__}.{one.__qualname__}")
        module, _, last = name.rpartition(".")
        if module == "mindtorch_v2" or module.startswith("mindtorch_v2."):
            module = _home(target) or module if not isinstance(one, tuple) else "torch" + module[len("mindtorch_v2"):]
        _SAFE[module, last] = target
        if one not in _ADDED:
            _ADDED.append(one)


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` added."""
    _SAFE.clear()
    _ADDED.clear()


class safe_globals:
    """A context in which `load` accepts these classes and functions."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.added = safe_globals
        self.before: tuple[dict[Any, Any], list[Any]] = ({}, [])

    def __enter__(self) -> None:
        self.before = dict(_SAFE), list(_ADDED)
        add_safe_globals(self.added)

    def __exit__(self, *exc: object) -> None:
        clear_safe_globals()
        _SAFE.update(self.before[0])
        _ADDED.extend(self.before[1])


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` added."""
    return list(_ADDED)


# -- settings --------------------------------------------------------------------------------------------------------


class LoadEndianness(enum.Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_SKIPPING: list[bool] = []  # not empty while storages are written without their contents


def get_default_load_endianness() -> LoadEndianness | None:
    """The value of `set_default_load_endianness`."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """The byte order to assume of files that do not say theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def _assumed_byteorder() -> str:
    if config.load.endianness is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if config.load.endianness is LoadEndianness.BIG else "little"


def get_default_mmap_options() -> int:
    """The flags that files are mapped with."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """MAP_PRIVATE, or MAP_SHARED: then changing a loaded tensor changes the file. A context manager, if wanted."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                             f"mmap.MAP_SHARED, but got {flags}")
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        config.load.mmap_flags = self.prev


def get_crc32_options() -> bool:
    """Whether `save` writes sums over the records of a file."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `save` is to write sums over the records of a file; without them damage is not noticed."""
    config.save.compute_crc32 = bool(compute_crc32)


class SourceChangeWarning(Warning):
    """Warns that a module's source has changed since it was saved; for files that hold sources."""


def check_module_version_greater_or_equal(module: Any, req_version_tuple: tuple[int, ...],
                                          error_if_malformed: bool = True) -> bool:
    """Whether a module's version is at least this one."""
    try:
        found = tuple(kind(part) for kind, part in zip((type(one) for one in req_version_tuple),
                                                       module.__version__.split(".")))
    except Exception as error:
        message = (f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
                   f"compared with tuple {req_version_tuple}")
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return found >= req_version_tuple


class skip_data:
    """A context in which `save` writes zeros for the contents of storages, to be filled in later."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        _SKIPPING.append(True)

    def __exit__(self, *exc: object) -> None:
        _SKIPPING.pop()


# -- places ----------------------------------------------------------------------------------------------------------

_package_registry: list[tuple[int, Callable[[Any], Any], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], Any], deserializer: Callable[[Any, str], Any]) -> None:
    """Let a package name the locations of storages, and bring them back there."""
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda one: one[0])


def location_tag(storage: Any) -> str:
    """The name of the place of a storage, as files have it."""
    for _, tagger, _ in _package_registry:
        found = tagger(storage)
        if found:
            return found
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage, brought to the place that a file names."""
    for _, _, deserializer in _package_registry:
        found = deserializer(storage, location)
        if found is not None:
            return found
    place = _known_place(storage, location)
    return storage if place in (None, CPU) else storage.to(device=place)


def _is_zipfile(f: Any) -> bool:
    """Whether a file begins as a zip file does."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\x03\x04"


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a checkpoint that `load` would refuse."""
    with open(f, "rb") if _is_path(f) else nullcontext(f) as file:
        if not _is_zipfile(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        return refused_globals(file, _SAFE)


# -- the parts of `save` and `load` that PyTorch has under names of their own ------------------------------------------

MAGIC_NUMBER, PROTOCOL_VERSION = 0x1950A86A20F9469CFC6C, 1001  # at the beginning of files from before 1.6
LONG_SIZE, INT_SIZE, SHORT_SIZE = 4, 4, 2  # as such a file says of the machine that wrote it
STORAGE_KEY_SEPARATOR = ","


class _Opened:
    """An archive that is about to be written or read; a context manager, as in PyTorch."""

    def __init__(self, name_or_buffer: Any) -> None:
        self.file_like = name_or_buffer

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


_open_zipfile_writer = _open_zipfile_reader = _Opened


def _save(obj: object, zip_file: _Opened, pickle_module: Any, pickle_protocol: int,
          _disable_byteorder_record: bool) -> None:
    """Write an object to an archive that `_open_zipfile_writer` has opened."""
    save(obj, zip_file.file_like, pickle_module, pickle_protocol, True, _disable_byteorder_record)


def _load(zip_file: _Opened, map_location: Any, pickle_module: Any, pickle_file: str = "data.pkl",
          overall_storage: Any = None, **pickle_load_args: Any) -> Any:
    """Read what is in an archive that `_open_zipfile_reader` has opened; code in it runs."""
    if pickle_file != "data.pkl" or overall_storage is not None:
        raise NotImplementedError("_load reads data.pkl of an archive, and maps no memory")
    return load(zip_file.file_like, map_location, pickle_module, weights_only=False, **pickle_load_args)


def _legacy_save(obj: object, f: Any, pickle_module: Any, pickle_protocol: int) -> None:
    """Write an object as before 1.6."""
    save(obj, f, pickle_module, pickle_protocol, False)


def _legacy_load(f: Any, map_location: Any, pickle_module: Any, **pickle_load_args: Any) -> Any:
    """Read a file from before 1.6; code in it runs."""
    return load(f, map_location, pickle_module, weights_only=False, **pickle_load_args)


def _is_path(name_or_buffer: object) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


def _maybe_decode_ascii(bytes_str: bytes | str) -> str:
    return bytes_str.decode("ascii") if isinstance(bytes_str, bytes) else bytes_str


def _get_restore_location(map_location: Any) -> Callable[[Any, str], Any]:
    """The function that puts a storage that was at a location where `map_location` says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, device)):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restored(storage: Any, location: str) -> Any:
        made = map_location(storage, location)
        return default_restore_location(storage, location) if made is None else made

    return restored
