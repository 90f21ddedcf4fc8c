"""The globals a checkpoint may name, and what they do here.

A file asks for functions by name; this is the whole list of answers. Each function checks its arguments, because they
come from the file: above all, a tensor may not reach outside its storage. Messages show values with reprlib, because a
file of a few bytes can describe a value whose full text would fill the memory.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import pickle
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from mindtorch_v2._serialization._records import (
    DTYPE_NAMES,
    STORAGE_CLASS_BY_DTYPE,
    UNTYPED,
    StorageRecord,
    TensorRecord,
    numpy_dtype,
)

__all__ = ["Builders", "Rebuilder", "SparseRecord", "StorageClass"]

_DTYPE_BY_STORAGE_CLASS = {class_name: name for name, class_name in STORAGE_CLASS_BY_DTYPE.items()}

_UNSUPPORTED = {
    "_rebuild_qtensor": "quantized tensors",
    "_rebuild_nested_tensor": "nested tensors",
    "_rebuild_device_tensor_from_numpy": "tensors of devices without storages",
    "_rebuild_device_tensor_from_cpu_tensor": "tensors of devices without storages",
}


_NO_NUMPY_DTYPES = frozenset({
    "complex32", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2",
    "qint8", "quint8", "qint32", "quint4x2", "quint2x4",
})
_MAX_BYTES = 1 << 63
_COMPRESSED = frozenset({"torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc"})


@dataclasses.dataclass(frozen=True)
class Builders:
    """How the caller makes its objects from records."""

    tensor: Callable[[TensorRecord], Any]
    dtype: Callable[[str], Any]
    device: Callable[..., Any]
    size: Callable[[tuple[int, ...]], Any]
    storage: Callable[[StorageRecord], Any]
    sparse: Callable[[SparseRecord], Any] | None = None
    layout: Callable[[str], Any] = str
    wrapper: Callable[[tuple[Any, ...], Any], Any] | None = None
    tensor_class: Any = None


@dataclasses.dataclass(eq=False)
class SparseRecord:
    """A tensor that only has some of its elements: in coordinate form, or `compressed` along one dimension."""

    indices: Any
    values: Any
    size: tuple[int, ...]
    is_coalesced: bool | None
    compressed: Any = None
    layout: Any = None


@dataclasses.dataclass(frozen=True)
class StorageClass:
    """What ``torch.FloatStorage`` and the like become: only their element type matters."""

    dtype_name: str


class _TensorClass:
    """What ``torch.Tensor`` becomes; it is only ever named as an argument."""


class Reader(Protocol):
    """The questions that a file of either format answers."""

    label: str

    @property
    def needs_byteswap(self) -> bool: ...

    def read_elements(self, key: str, count: int, dtype: np.dtype[Any]) -> np.ndarray: ...


class Rebuilder:
    """Answers the globals and the persistent ids of one checkpoint."""

    def __init__(self, reader: Reader, builders: Builders, allowed: Mapping[tuple[str, str], Any]) -> None:
        self._reader = reader
        self._builders = builders
        self._allowed_ids = {id(value) for value in allowed.values()}
        self._dtype_by_key: dict[str, str] = {}
        self._storages: dict[tuple[str, str], StorageRecord] = {}
        # Built objects by identity, with the object itself, which keeps the identity from being used again.
        self._built_storages: dict[int, tuple[Any, StorageRecord]] = {}
        self._built_by_key: dict[tuple[str, ...], Any] = {}
        self._built_tensors: dict[int, tuple[Any, TensorRecord]] = {}
        self._plain_rebuilds = (self.tensor, self.tensor_v2, self.tensor_v3)
        self._functions: dict[tuple[str, str], Callable[..., Any]] = {
            ("torch._utils", "_rebuild_tensor"): self.tensor,
            ("torch._utils", "_rebuild_tensor_v2"): self.tensor_v2,
            ("torch._utils", "_rebuild_tensor_v3"): self.tensor_v3,
            ("torch._utils", "_rebuild_parameter"): self.parameter,
            ("torch._utils", "_rebuild_parameter_with_state"): self.parameter,
            ("torch._utils", "_rebuild_meta_tensor_no_storage"): self.meta_tensor,
            ("torch._utils", "_rebuild_wrapper_subclass"): self.wrapper,
            ("torch._tensor", "_rebuild_from_type_v2"): self.from_type,
            ("torch", "Size"): self.size,
            ("torch", "device"): self.device,
            ("torch._utils", "_rebuild_sparse_tensor"): self.sparse_tensor,
            ("torch.serialization", "_get_layout"): self.layout,
        }
        self.is_trusting = False
        """Whether the file may name any class."""
        self._signatures = {function: inspect.signature(function) for function in self._functions.values()}
        self._dtypes: dict[int, tuple[Any, str]] = {}

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The functions a checkpoint may call."""
        return list(self._functions.values())

    def find(self, module: str, name: str) -> Any:
        """The answer to a global under ``torch``; KeyError if there is none."""
        if (module, name) in self._functions:
            return self._functions[module, name]
        if (module, name) == ("torch", "Tensor"):
            return self._builders.tensor_class or _TensorClass
        if module in ("torch", "torch.storage") and name.endswith("Storage"):
            return self._storage_class(name)
        if module == "torch" and name in _NO_NUMPY_DTYPES:
            raise NotImplementedError(f"{self._reader.label}: torch.{name} is not supported in checkpoints: NumPy has "
                                      "no such type")
        if module == "torch" and name in DTYPE_NAMES:
            dtype = self._builders.dtype(name)
            self._dtypes[id(dtype)] = (dtype, name)
            return dtype
        if module == "torch._utils" and name in _UNSUPPORTED:
            raise NotImplementedError(f"{self._reader.label}: {_UNSUPPORTED[name]} ({name}) are not supported")
        raise KeyError(f"{module}.{name}")

    def call(self, function: Callable[..., Any], arguments: Any) -> Any:
        """Call one of the functions with arguments from the file, of which there may be too few or too many."""
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"arguments must be a tuple, but got {type(arguments)}")
        try:
            self._signatures[function].bind(*arguments)
        except TypeError as error:
            raise pickle.UnpicklingError(f"{function.__name__} cannot be called as the pickle does: {error}") from error
        return function(*arguments)

    def persistent_load(self, persistent_id: Any) -> Any:
        """The storage behind ``("storage", class, key, location, count)``; the same object for the same key."""
        if type(persistent_id) is not tuple or len(persistent_id) not in (5, 6) or persistent_id[0] != "storage":
            shown = reprlib.repr(persistent_id)
            raise pickle.UnpicklingError(f"Only persistent_load of storage is allowed, but got {shown}")
        _, storage_class, key, location, count, *view = persistent_id
        is_sound = isinstance(storage_class, StorageClass) and type(key) is str and type(location) is str
        if not is_sound or type(count) is not int or count < 0:
            raise pickle.UnpicklingError(f"this is not the id of a storage: {reprlib.repr(persistent_id)}")
        identity = (key, storage_class.dtype_name)
        if identity not in self._built_by_key:
            self._build_storage(identity, self._typed_storage(key, storage_class.dtype_name, location, count))
        record = self._storages[identity]
        if record.data.size != count:
            raise pickle.UnpicklingError(f"the file gives storage {key} both {record.data.size} and {count} elements")
        if view in ([], [None]):
            return self._built_by_key[identity]
        return self._part_of_storage(record, view[0])

    def _build_storage(self, identity: tuple[str, ...], record: StorageRecord) -> Any:
        built = self._builders.storage(record)
        if id(built) in self._built_storages:
            raise TypeError("build_storage must make a new object for every storage")
        self._built_by_key[identity] = built
        self._built_storages[id(built)] = (built, record)
        return built

    def _part_of_storage(self, whole: StorageRecord, view: Any) -> Any:
        """A storage that is a window on another, as PyTorch wrote before version 0.4."""
        kinds = [type(part) for part in view] if type(view) is tuple else []
        if kinds != [str, int, int] or not 0 <= view[1] <= view[1] + view[2] <= whole.data.size:
            raise pickle.UnpicklingError(f"this is not a part of storage {whole.key}: {reprlib.repr(view)}")
        name, first, count = view
        identity = (whole.key, whole.dtype_name, name)
        if identity in self._built_by_key:
            return self._built_by_key[identity]
        # Through a buffer, so that the part counts as memory of its own; it shows the same bytes.
        bytes_of = whole.data.view(np.uint8).data[first * whole.data.itemsize:(first + count) * whole.data.itemsize]
        part = np.frombuffer(bytes_of, np.uint8).view(whole.data.dtype)
        return self._build_storage(identity, dataclasses.replace(whole, data=part))

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        """A tensor without autograd, as the oldest files have it."""
        return self._finish(self._window(self._record_of(storage), offset, size, stride))

    def tensor_v2(
        self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: bool, _hooks: Any, metadata: Any = None
    ) -> Any:
        """A tensor whose storage knows the element type."""
        record = self._window(self._record_of(storage), offset, size, stride)
        return self._finish(self._flagged(record, requires_grad, metadata))

    def tensor_v3(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: bool,
        _hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Any:
        """A tensor on an untyped storage, with its element type."""
        whole = self._record_of(storage)
        typed = self._retyped(whole, self._dtype_name(dtype))
        return self._finish(self._flagged(self._window(typed, offset, size, stride), requires_grad, metadata))

    def meta_tensor(self, dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
        """A tensor without data."""
        dtype_name = self._dtype_name(dtype)
        storage = StorageRecord("", dtype_name, "meta", np.empty(0, dtype=numpy_dtype(dtype_name)))
        return self._finish(self._flagged(self._window(storage, 0, size, stride), requires_grad, None))

    def parameter(self, data: Any, requires_grad: bool, _hooks: Any, state: Any = None) -> Any:
        """A parameter around a tensor that was rebuilt just before."""
        _, record = self._built_tensors.get(id(data), (None, None))
        if record is None:
            raise pickle.UnpicklingError(f"a parameter needs a tensor of the same file, but got {type(data)}")
        record = dataclasses.replace(record, is_parameter=True, state=state)
        return self._finish(self._flagged(record, requires_grad, None))

    def from_type(self, rebuild: Any, tensor_type: Any, arguments: Any, state: Any) -> Any:
        """A tensor that carries Python attributes, or one of a subclass that the caller knows."""
        if rebuild == self.wrapper and type(arguments) is tuple and arguments[:1] == (tensor_type,):
            return self.call(rebuild, (*arguments, state))
        if rebuild not in self._plain_rebuilds:
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {reprlib.repr(rebuild)}")
        subclass = None if tensor_type is self.find("torch", "Tensor") else tensor_type
        if subclass is not None:
            self._check_allowed(subclass)
        _, record = self._built_tensors[id(self.call(rebuild, arguments))]
        return self._finish(dataclasses.replace(record, state=state, subclass=subclass))

    def _check_allowed(self, subclass: Any) -> None:
        if id(subclass) not in self._allowed_ids and not self.is_trusting:
            raise pickle.UnpicklingError(f"tensors of the subclass {reprlib.repr(subclass)} were not allowed")

    def wrapper(self, cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: Any, layout: Any, device: Any,
                requires_grad: Any, state: Any = None) -> Any:
        """A tensor without memory of its own, whose class answers for it."""
        if self._builders.wrapper is None:
            raise NotImplementedError(f"{self._reader.label}: tensor subclasses that wrap others are not supported")
        self._check_allowed(cls)
        self._dtype_name(dtype)
        if type(storage_offset) is not int or type(requires_grad) is not bool:
            raise pickle.UnpicklingError(f"not facts of a tensor: {reprlib.repr((storage_offset, requires_grad))}")
        facts = (cls, dtype, _integers(size, "a size"), _integers(stride, "a stride"), storage_offset, layout, device,
                 requires_grad)
        return self._builders.wrapper(facts, state)

    def sparse_tensor(self, layout: Any, data: Any) -> Any:
        """A tensor in coordinate form or in one of the compressed ones."""
        if self._builders.sparse is None:
            raise NotImplementedError(f"{self._reader.label}: sparse tensors are not supported")
        if str(layout) in _COMPRESSED:
            return self._compressed_tensor(layout, data)
        if str(layout) != "torch.sparse_coo":
            raise NotImplementedError(f"{self._reader.label}: sparse tensors of the layout {str(layout)[:40]} are not "
                                      "supported")
        if type(data) is not tuple or len(data) not in (3, 4):
            raise pickle.UnpicklingError(f"this is not a sparse tensor: {reprlib.repr(data)}")
        indices, values, size, *coalesced = data
        if id(indices) not in self._built_tensors or id(values) not in self._built_tensors:
            raise pickle.UnpicklingError("a sparse tensor needs indices and values that are tensors of the same file")
        is_coalesced = coalesced[0] if coalesced else None
        if not (is_coalesced is None or type(is_coalesced) is bool):
            raise pickle.UnpicklingError(f"a sparse tensor is coalesced or not, but got {reprlib.repr(is_coalesced)}")
        sizes = _integers(size, "a size")
        return self._builders.sparse(SparseRecord(indices, values, sizes, is_coalesced))

    def _compressed_tensor(self, layout: Any, data: Any) -> Any:
        if type(data) is not tuple or len(data) != 4:
            raise pickle.UnpicklingError(f"this is not a sparse tensor: {reprlib.repr(data)}")
        compressed, plain, values, size = data
        if any(id(part) not in self._built_tensors for part in (compressed, plain, values)):
            raise pickle.UnpicklingError("a sparse tensor needs indices and values that are tensors of the same file")
        assert self._builders.sparse is not None
        return self._builders.sparse(SparseRecord(plain, values, _integers(size, "a size"), None, compressed, layout))

    def layout(self, name: Any) -> Any:
        """A ``torch.layout``."""
        if type(name) is not str:
            raise pickle.UnpicklingError(f"this is not the name of a layout: {reprlib.repr(name)}")
        return self._builders.layout(name)

    def size(self, sizes: Any = ()) -> Any:
        """A ``torch.Size``."""
        return self._builders.size(_integers(sizes, "torch.Size"))

    def device(self, device_type: Any, index: Any = None) -> Any:
        """A ``torch.device``."""
        if type(device_type) is not str or not (index is None or type(index) is int):
            raise pickle.UnpicklingError(f"this is not a device: {reprlib.repr(device_type)}, {reprlib.repr(index)}")
        return self._builders.device(device_type) if index is None else self._builders.device(device_type, index)

    def _finish(self, record: TensorRecord) -> Any:
        built = self._builders.tensor(record)
        self._built_tensors[id(built)] = (built, record)
        return built

    def _storage_class(self, name: str) -> StorageClass:
        if name == "UntypedStorage":
            return StorageClass(UNTYPED)
        if name in _DTYPE_BY_STORAGE_CLASS:
            return StorageClass(_DTYPE_BY_STORAGE_CLASS[name])
        raise KeyError(name)

    def _record_of(self, storage: Any) -> StorageRecord:
        _, record = self._built_storages.get(id(storage), (None, None))
        if record is None:
            raise pickle.UnpicklingError(f"a tensor needs a storage of the same file, but got {type(storage)}")
        return record

    def _dtype_name(self, dtype: Any) -> str:
        _, name = self._dtypes.get(id(dtype), (None, None))
        if name is None:
            raise pickle.UnpicklingError(f"this is not an element type: {reprlib.repr(dtype)}")
        return name

    def _typed_storage(self, key: str, dtype_name: str, location: str, count: int) -> StorageRecord:
        if self._dtype_by_key.setdefault(key, dtype_name) != dtype_name:
            raise pickle.UnpicklingError(f"the file gives storage {key} two types")
        data = self._reader.read_elements(key, count, numpy_dtype(dtype_name))
        if self._reader.needs_byteswap:
            _swap_bytes(data)
        record = StorageRecord(key, dtype_name, location, data)
        self._storages[key, dtype_name] = record
        return record

    def _retyped(self, whole: StorageRecord, dtype_name: str) -> StorageRecord:
        """The same memory with an element type; one record for each type, so that sharing stays visible."""
        if whole.dtype_name == dtype_name:
            return whole
        dtype = numpy_dtype(dtype_name)
        if whole.dtype_name != UNTYPED or whole.data.nbytes % dtype.itemsize:
            raise pickle.UnpicklingError(f"storage {whole.key} of {whole.dtype_name} does not hold torch.{dtype_name}")
        identity = (whole.key, dtype_name)
        if identity not in self._storages:
            data = whole.data.view(dtype)
            if self._reader.needs_byteswap:
                data = data.copy()
                _swap_bytes(data)
            self._storages[identity] = StorageRecord(whole.key, dtype_name, whole.location, data)
        return self._storages[identity]

    def _window(self, storage: StorageRecord, offset: Any, size: Any, stride: Any) -> TensorRecord:
        if storage.dtype_name == UNTYPED:
            raise pickle.UnpicklingError(f"a tensor on the untyped storage {storage.key} does not say its element type")
        sizes, strides = _integers(size, "a size"), _integers(stride, "a stride")
        if type(offset) is not int or offset < 0 or len(sizes) != len(strides) or min((0, *sizes, *strides)) < 0:
            raise pickle.UnpicklingError(f"not a tensor: offset {reprlib.repr(offset)}, size {sizes}, stride {strides}")
        if math.prod(n for n in sizes if n) * storage.data.itemsize >= _MAX_BYTES:
            raise NotImplementedError(f"{self._reader.label}: a tensor with sizes {list(sizes)} is not supported: "
                                      "NumPy counts the bytes of an array in 63 bits")
        needed = 0 if 0 in sizes else 1 + offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        if storage.location != "meta" and needed > storage.data.size:
            raise RuntimeError(
                f"{self._reader.label}: a tensor with sizes {list(sizes)}, strides {list(strides)} and storage offset "
                f"{offset} requires {needed} elements, which are out of bounds for storage {storage.key} of size "
                f"{storage.data.size}"
            )
        return TensorRecord(storage, offset, sizes, strides)

    def _flagged(self, record: TensorRecord, requires_grad: bool, metadata: Any) -> TensorRecord:
        """The record with its flags."""
        flags = {} if metadata is None else metadata
        if type(requires_grad) is not bool or type(flags) is not dict or not set(flags) <= {"conj", "neg"}:
            shown = f"{reprlib.repr(requires_grad)}, {reprlib.repr(metadata)}"
            raise pickle.UnpicklingError(f"not flags of a tensor: {shown}")
        storage = record.storage
        conj, neg = record.is_conj or bool(flags.get("conj")), record.is_neg or bool(flags.get("neg"))
        for name, given, allowed in (("conjugate", conj, storage.dtype_name.startswith("complex")),
                                     ("negative", neg, storage.dtype_name != "bool")):
            if given and not allowed:
                raise pickle.UnpicklingError(f"storage {storage.key} of {storage.dtype_name} has no {name}")
        return dataclasses.replace(record, requires_grad=requires_grad, is_conj=conj, is_neg=neg)


def _integers(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or any(type(value) is not int for value in values):
        raise pickle.UnpicklingError(f"{what} must be a tuple of integers, but got {reprlib.repr(values)}")
    return tuple(values)


def _swap_bytes(data: np.ndarray) -> None:
    """Reverse the bytes of every number in place; a complex number is two of them."""
    number_bytes = data.itemsize // 2 if data.dtype.kind == "c" else data.itemsize
    data.view(f"u{number_bytes}").byteswap(inplace=True)
