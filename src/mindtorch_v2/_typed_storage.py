"""Storages as PyTorch programs name them: `UntypedStorage`, `TypedStorage` and the old `FloatStorage` and its kin."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ._backends.array import part
from ._backends.base import DEVICES, device_of, empty_array
from ._device import CPU, as_device, device
from ._dtype import ALL_DTYPES, DefaultDtype, cpp_name, dtype, dtype_from_name
from ._legacy import NAMES
from ._shared_memory import NamedMap
from ._storage import Storage as Bytes
from ._storage_removal import warn, warning
from ._tensor import Tensor

DType = dtype  # where an argument has the name of the class


class StorageType(type):
    """The type of `torch.UntypedStorage`: calling it makes a plain storage, and every one is an instance of it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Bytes)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Bytes, name)

    def __dir__(cls) -> list[str]:
        return sorted({*type.__dir__(cls), *dir(Bytes)})

    def __call__(cls, *args: Any, device: Any = None) -> Bytes:
        if len(args) > 1:
            raise TypeError("torch.UntypedStorage() received an invalid combination of arguments: it takes one size or "
                            f"sequence, and got {len(args)} arguments")
        given = args[0] if args else 0
        if isinstance(given, (int, np.integer)):
            return _new(int(given), np.dtype(np.uint8), device)
        if isinstance(given, Tensor) or not hasattr(given, "__getitem__"):
            raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(given).__name__}")
        for one in given:
            if not isinstance(one, (int, np.integer)):
                raise RuntimeError(f"torch.UntypedStorage(): tried to construct a storage from a sequence "
                                   f"({type(given).__name__}), but one of the items was of type {type(one).__name__} "
                                   "instead of int")
        made = _new(len(given), np.dtype(np.uint8), device)
        if made.device == CPU:
            made.bytes()[...] = np.array(given, np.int64).astype(np.uint8)
        return made


def _new(count: int, kind: np.dtype, where: Any) -> Bytes:
    """Memory for some elements."""
    place = _place_named(where)
    if count < 0:
        raise RuntimeError(f"a storage has no negative size, and {count} elements were asked for")
    return Bytes(empty_array((count,), kind, place), place)


def _place_named(where: Any) -> device:
    """The device of a new storage."""
    if where is None:
        return CPU
    place = as_device(where)
    if place.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    if place.type not in DEVICES:
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {place.type}")
    return place


class UntypedStorage(metaclass=StorageType):
    """Bytes: `torch.UntypedStorage(8)` has 8 of them."""

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> Bytes:
        """The bytes of a file, mapped into memory; what is written reaches the file only if `shared`."""
        return Bytes(map_file(filename, shared, nbytes), CPU)

    @staticmethod
    def from_buffer(buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *,
                    dtype: dtype | None = None, device: Any = None) -> Bytes:
        """A copy of bytes that hold elements of a dtype, brought to this machine's byte order."""
        if dtype is None:
            raise RuntimeError("from_buffer(): argument 'dtype' cannot be None")
        return _of_buffer(buffer, byte_order, count, offset, dtype, device)._untyped


def _refuse(reason: str, kind: type[Exception] = RuntimeError) -> NoReturn:
    raise kind("TypedStorage.__init__ received an invalid combination of arguments. Expected a size, a "
               f"sequence or wrap_storage.\n{reason}")


def _typed(untyped: Bytes, kind: dtype) -> TypedStorage:
    """Bytes as elements of a dtype."""
    return TypedStorage(wrap_storage=untyped, dtype=kind, _internal=True)


class TypedStorage:
    """A storage read as elements of one dtype.

    >>> import mindtorch_v2 as torch
    >>> torch.ones(3).storage().tolist()
    [1.0, 1.0, 1.0]
    """

    is_sparse = False
    dtype: dtype

    def __init__(self, *args: Any, wrap_storage: Bytes | None = None, dtype: Any = None, device: Any = None,
                 _internal: bool = False) -> None:
        if not _internal:
            warn()
        if dtype is not None and not isinstance(dtype, DType):
            if wrap_storage is None:
                raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
            _refuse(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}", TypeError)
        self.dtype = dtype or getattr(type(self), "dtype", None) or DefaultDtype.value
        if len(args) > 1:
            _refuse("Too many positional arguments")
        if wrap_storage is not None:
            if args:
                _refuse("No positional arguments should be given when using 'wrap_storage'")
            if dtype is None:
                _refuse("Argument 'dtype' must be specified")
            if not isinstance(wrap_storage, Bytes):
                _refuse(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}", TypeError)
            if device is not None:
                _refuse("Argument 'device' should not be specified when 'wrap_storage' is given")
            self._untyped = wrap_storage
        elif not args or isinstance(args[0], (int, np.integer)):
            self._untyped = _new(int(args[0]) if args else 0, self.dtype.np, device)
        elif isinstance(args[0], str):
            raise TypeError("new(): invalid data type 'str'")
        elif hasattr(args[0], "__getitem__") and not isinstance(args[0], Tensor):
            place = _place_named(device)
            if not all(isinstance(one, (int, float, complex, np.number, np.bool_)) for one in args[0]):
                raise TypeError("the elements of a storage are numbers")
            elements = np.array(list(args[0])).astype(self.dtype.np)
            self._untyped = Bytes(elements, CPU) if place == CPU else _new(elements.size, self.dtype.np, place)
        else:
            _refuse(f"Argument type not recognized: {type(args[0])}", TypeError)

    def _elements(self) -> np.ndarray:
        """The memory as a flat array that shares it."""
        raw = self._untyped.bytes()
        item = self.dtype.itemsize
        return raw[: len(raw) // item * item].view(self.dtype.np)

    @property
    def device(self) -> device:
        """Where the memory is."""
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False

    is_hpu = is_cuda

    def untyped(self) -> Bytes:
        """The bytes."""
        return self._untyped

    @property
    def _untyped_storage(self) -> Bytes:
        return self._untyped

    def size(self) -> int:
        """The number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._untyped.data_ptr()

    def _known(self) -> None:
        if self._untyped.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        self._known()
        found = self._elements()
        return (found.astype(np.float32) if self.dtype.name == "bfloat16" else found).tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        if isinstance(value, TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        if self.device.type == "meta":
            return self
        self._elements()[...] = value
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Copy another storage's bytes, which must be as many."""
        if self.device.type == "meta":
            return self
        self._untyped.copy_(typed_as(source.dtype, source), non_blocking)
        return self

    def clone(self) -> TypedStorage:
        """The same elements in new memory."""
        if self.device.type == "meta":
            return TypedStorage(self.size(), dtype=self.dtype, device=self.device, _internal=True)
        return _typed(Bytes(self._elements().copy(), CPU), self.dtype)

    def type(self, dtype: Any = None) -> Any:
        """The name of the old class, or the elements as another dtype."""
        if dtype is None:
            return f"torch.{_old_name(self.dtype)}Storage"
        kind = dtype_named(dtype)
        if self.device.type == "meta":
            return TypedStorage(self.size(), dtype=kind, device=self.device, _internal=True)
        return _typed(Bytes(self._elements().astype(kind.np), CPU), kind)

    def cpu(self) -> TypedStorage:
        """This storage if its memory is the host's, else a copy there."""
        return self if self.device.type == "cpu" else _typed(self._untyped.cpu(), self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """This storage on a device."""
        there = self._untyped.to(device=_place_named(device), non_blocking=non_blocking)
        return self if there is self._untyped else _typed(there, self.dtype)

    def resizable(self) -> bool:
        """Whether the memory may be of another size."""
        return self._untyped.resizable()

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def _share_fd_cpu_(self) -> tuple[int, int]:
        return self._untyped._share_fd_cpu_()

    def _share_filename_cpu_(self) -> NoReturn:
        self._untyped._share_filename_cpu_()

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        self._untyped._write_file(file, is_real_file, save_size, element_size)

    def is_shared(self) -> bool:
        """Whether other processes see changes."""
        return self._untyped.is_shared()

    def is_pinned(self) -> bool:
        """False."""
        return False

    @property
    def _cdata(self) -> int:
        return self._untyped._cdata

    @property
    def filename(self) -> str | None:
        """The file that the memory is, if it was mapped to be shared."""
        return self._untyped.filename

    def get_device(self) -> int | None:
        """The number of the device, None for the host."""
        return self._untyped.get_device()

    def _get_legacy_storage_class(self) -> Any:
        """`torch.FloatStorage` for float32."""
        return OLD.get(f"{_old_name(self.dtype)}Storage")

    def resize_(self, size: int) -> None:
        """Change the size; the tensors on it move along, and must fit."""
        self._untyped.resize_(size * self.dtype.itemsize)

    def pin_memory(self, device: Any = None) -> NoReturn:
        """Refused: only memory of tensors is pinned, for a device that copies from it."""
        raise RuntimeError("Cannot access accelerator device when none is available. Pin tensors: tensor.pin_memory()")

    def share_memory_(self) -> TypedStorage:
        """Move to memory that processes share, with the tensors on it."""
        if self.device.type == "meta":
            self._share_fd_cpu_()
        self._untyped.share_memory_()
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu", dtype: DType | None = None) -> TypedStorage:
        """New memory that processes share."""
        warn()
        kind = dtype or DefaultDtype.value
        return _typed(Bytes._new_shared(size * kind.itemsize, device=device), kind)

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *,
                    dtype: DType | None = None, device: Any = None) -> TypedStorage:
        """A copy of bytes as elements; those of more than one byte need a `byte_order`."""
        warn()
        return _of_buffer(buffer, byte_order, count, offset, dtype or DefaultDtype.value, device)

    def pickle_storage_type(self) -> str:
        """The name of the old class, as files have it."""
        return f"{_old_name(self.dtype)}Storage"

    def _place(self, index: Any) -> int:
        if not isinstance(index, (int, np.integer)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return int(index)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._known()
        found = self._elements()[self._place(index)]
        return float(found) if self.dtype.name == "bfloat16" else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._known()
        if isinstance(value, (list, tuple)):
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{_old_name(self.dtype)}Tensor")
        if isinstance(value, TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        place = index if isinstance(index, slice) else self._place(index)
        whole = self._untyped.array
        if isinstance(whole, np.ndarray):
            self._elements()[place] = value
            return
        item = self.dtype.np.itemsize
        elements = whole.over((len(self),), (item,), whole.offset, self.dtype.np)
        device_of(whole).fill(part(elements, place), value)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return _typed(self._untyped.__deepcopy__(memo), self.dtype)

    def __reduce__(self) -> Any:
        return (_on, (self._untyped, self.dtype))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __repr__(self) -> str:
        inside = "...\n" if self.device.type == "meta" else "".join(f" {value}\n" for value in self.tolist())
        return (f"{inside}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size "
                f"{self.size()}]")


def _of_buffer(buffer: Any, byte_order: str | None, count: int, offset: int, kind: dtype, where: Any) -> TypedStorage:
    """A copy of bytes as elements on a device."""
    made = Bytes(_elements_of(buffer, byte_order, count, offset, kind), CPU)
    place = _place_named(where)
    return _typed(made.to(device=place), kind)


def _on(untyped: Bytes, kind: dtype) -> TypedStorage:
    """Rebuild a pickled storage."""
    return _typed(untyped, kind)


def dtype_named(wanted: Any) -> dtype:
    """The dtype that a program names by itself, by a class of storages or by the name of one."""
    if isinstance(wanted, str):
        wanted = OLD.get(wanted.removeprefix("torch."), wanted)
    found = wanted.kind if isinstance(wanted, OldStorageType) else wanted
    if not isinstance(found, DType):
        raise ValueError(f"invalid type: '{wanted}'")
    return found


def _conversion(name: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self.type(dtype_from_name(name))

    convert.__name__, convert.__doc__ = name, f"The elements as {name}."
    return convert


def _conversion_of_bytes(name: str) -> Any:
    def convert(self: Bytes) -> TypedStorage:
        warn()
        kind = dtype_from_name(name)
        return _typed(Bytes(self.bytes().astype(kind.np), CPU), kind)

    convert.__name__, convert.__doc__ = name, f"The bytes as {name}, one element each."
    return convert


# `storage.double()` and its kin.
for _name, _method in {"float64": "double", "float32": "float", "float16": "half", "int64": "long", "int32": "int",
                       "int16": "short", "int8": "char", "uint8": "byte", "bool": "bool", "bfloat16": "bfloat16",
                       "complex64": "complex_float", "complex128": "complex_double",
                       "float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn",
                       "float8_e5m2fnuz": "float8_e5m2fnuz", "float8_e4m3fnuz": "float8_e4m3fnuz"}.items():
    setattr(TypedStorage, _method, _conversion(_name))
    setattr(Bytes, _method, _conversion_of_bytes(_name))
# What programs call. `tensor.storage()` and the constructors warn too.
for _name in ("__copy__", "__deepcopy__", "__getitem__", "__iter__", "__len__", "__repr__", "__setitem__", "__sizeof__",
              "_get_legacy_storage_class", "bfloat16", "bool", "byte", "char", "clone", "complex_double",
              "complex_float", "copy_", "cpu", "data_ptr", "double", "element_size", "fill_", "float", "float8_e4m3fn",
              "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "get_device", "half", "int", "is_pinned",
              "is_shared", "long", "nbytes", "pickle_storage_type", "pin_memory", "resizable", "resize_",
              "share_memory_", "short", "size", "to", "tolist", "type", "untyped"):
    setattr(TypedStorage, _name, warning(getattr(TypedStorage, _name)))
for _name in ("device", "is_cuda", "is_hpu"):
    _asked = getattr(TypedStorage, _name).fget
    setattr(TypedStorage, _name, property(warning(_asked), doc=_asked.__doc__))
# Programs see the classes there.
TypedStorage.__module__ = UntypedStorage.__module__ = f"{__package__}.storage"


class _LegacyStorage:
    """The base of the old classes, the only ones that are called."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")


class OldStorageType(type):
    """The type of `torch.FloatStorage`: an instance is any typed storage of that dtype."""

    kind: dtype

    @property
    def dtype(cls) -> dtype:
        """The dtype of its storages."""
        warn()
        return cls.kind

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.kind

    def __call__(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        for name in ("dtype", "device"):
            if name in kwargs:
                raise RuntimeError(f"{cls}.__new__ received an invalid combination of arguments. Keyword "
                                   f"argument '{name}' cannot be specified")
        if len(args) > 1:
            raise RuntimeError(f"{cls}.__new__ received an invalid combination of arguments. Too many positional "
                               "arguments")
        warn()
        kwargs["_internal"] = True
        return TypedStorage(*args, dtype=cls.kind, **kwargs)

    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0,
                    **options: Any) -> TypedStorage:
        """A copy of bytes as elements; those of more than one byte need a `byte_order`."""
        for name in ("dtype", "device"):
            if options.pop(name, None) is not None:
                raise RuntimeError(f"from_buffer: '{name}' can only be specified in UntypedStorage.from_buffer and "
                                   "TypedStorage.from_buffer")
        warn()
        return _of_buffer(buffer, byte_order, count, offset, cls.kind, None, **options)

    def _new_shared(cls, size: int, *, device: Any = "cpu") -> TypedStorage:
        """New memory that processes share."""
        return TypedStorage._new_shared(size, device=device, dtype=cls.kind)

    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file, mapped into memory."""
        warn()
        return _typed(UntypedStorage.from_file(filename, shared, size * cls.kind.itemsize), cls.kind)


def map_file(filename: str, shared: bool, nbytes: int) -> np.ndarray:
    """The bytes of a file in memory; with `shared` changes go to the file, which is made or grows if need be."""
    try:
        file = open(filename, "a+b" if shared else "rb")  # noqa: SIM115  (closed below; only opening it is tried)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in {'read-write' if shared else 'read-only'} mode: "
                           f"{error.strerror} ({error.errno})") from error
    with file:
        have = file.seek(0, 2)
        if have < nbytes:
            if not shared:
                raise RuntimeError(f"file <{filename}> size <{have}> is smaller than the required mapping size "
                                   f"<{nbytes}>")
            file.truncate(nbytes)
        if not nbytes:
            return np.empty(0, np.uint8)
        mapped = NamedMap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    mapped.filename = str(filename) if shared else None
    return np.frombuffer(mapped, np.uint8)


def _elements_of(buffer: Any, byte_order: str | None, count: int, offset: int, kind: dtype) -> np.ndarray:
    """A copy of the bytes of elements, in this machine's byte order."""
    if byte_order not in ("native", "little", "big", *([None] if kind.itemsize == 1 else [])):
        if byte_order is None:
            raise RuntimeError(f"from_buffer(): missing required argument 'byte_order' (pos 2) for elements of {kind}")
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    raw, item = memoryview(buffer).cast("B"), kind.itemsize
    if not 0 <= offset < len(raw):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(raw)}), but got "
                         f"{offset}")
    if count < 0 and (len(raw) - offset) % item:
        raise ValueError(f"buffer size ({len(raw)}) must be a multiple of element size ({item})")
    if count >= 0 and offset + count * item > len(raw):
        raise ValueError(f"buffer has only {len(raw) - offset} bytes after offset {offset}, but specified a size "
                         f"of {count}")
    found = np.frombuffer(raw, np.uint8, -1 if count < 0 else count * item, offset).copy()
    if byte_order not in (None, "native", sys.byteorder):
        Bytes(found, CPU).byteswap(kind)
    return (found != 0) if kind.np.kind == "b" else found.view(kind.np)


def _old_name(kind: dtype) -> str:
    return cpp_name(kind.name)


OLD: dict[str, OldStorageType] = {
    f"{_old_name(kind)}Storage": OldStorageType(f"{_old_name(kind)}Storage", (), {
        "kind": kind, "is_cuda": TypedStorage.is_cuda, "is_sparse": False, "__module__": "torch",
        "__doc__": f"Typed storages of {kind}."})
    for kind in ALL_DTYPES if kind.name in NAMES or kind.is_complex}


def storage_class(kind: dtype) -> OldStorageType:
    """`torch.FloatStorage` for float32."""
    return OLD[f"{_old_name(kind)}Storage"]


def __getattr__(name: str) -> Any:
    if name == "Storage":
        return storage_class(DefaultDtype.value)
    if name == "StorageBase":
        return UntypedStorage
    if name in OLD:
        return OLD[name]
    if name == "_storage_classes":
        return {UntypedStorage, TypedStorage, *OLD.values()}
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def typed_as(kind: dtype, source: Any) -> Any:
    """The bytes of a storage, to be read as elements of a dtype; a typed storage must have that dtype."""
    if not isinstance(source, TypedStorage):
        return source
    if source.dtype is not kind:
        raise RuntimeError(f"Expected a Storage of type {_old_name(kind)} or an UntypedStorage, but got type "
                           f"{_old_name(source.dtype)} for argument 1 'storage'")
    return source._untyped


def is_storage(obj: Any, /) -> bool:
    """Whether this is a storage, with or without a type."""
    return isinstance(obj, (Bytes, TypedStorage))
