"""An object tree as a pickle in PyTorch's dialect, written without PyTorch.

Globals such as ``torch._utils._rebuild_tensor_v2`` are written by name, so nothing called torch has to be importable.
Tensors and storages are recognised by the caller's ``describe``; storages leave the pickle as persistent ids and are
collected for the archive.
"""

from __future__ import annotations

import codecs
import collections
import dataclasses
import functools
import io
import pickle
from collections.abc import Callable
from typing import Any

from mindtorch_v2._serialization._records import STORAGE_CLASS_BY_DTYPE, UNTYPED, StorageRecord, TensorRecord

__all__ = [
    "Describe",
    "ExtraReduce",
    "TorchGlobal",
    "TorchPickler",
    "dump",
    "reduce_device",
    "reduce_dtype",
    "reduce_size",
    "torch_global",
]

# Any, because its methods, which are there to be overridden, are missing from the type stubs.
_PythonPickler: Any = pickle._Pickler

# Python's own immutable and container types cannot be tensors: describe is not asked about them.
_PLAIN_TYPES = frozenset(
    {type(None), bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, collections.OrderedDict}
)


@dataclasses.dataclass(frozen=True)
class TorchGlobal:
    """A global that is written by its name; make one with `torch_global`, which gives the same object every time."""

    module: str
    name: str

    def __call__(self, *_: object) -> Any:
        """Only here because pickle wants callables in reductions; the function exists where the file is read."""
        raise TypeError(f"{self.module}.{self.name} is a name for a checkpoint, not a function")


@functools.cache
def torch_global(module: str, name: str) -> TorchGlobal:
    """The global ``module.name``, for example ``torch_global("torch", "float32")``."""
    return TorchGlobal(module, name)


Reduction = tuple[Any, ...]
Describe = Callable[[object], "TensorRecord | StorageRecord | None"]
ExtraReduce = Callable[[object], "TorchGlobal | Reduction | None"]


def reduce_dtype(dtype_name: str) -> TorchGlobal:
    """How an element type is written: ``reduce_dtype("float32")``."""
    return torch_global("torch", dtype_name)


def reduce_device(device_type: str, index: int | None = None) -> Reduction:
    """How a device is written: ``reduce_device("npu", 0)``."""
    arguments = (device_type,) if index is None else (device_type, index)
    return (torch_global("torch", "device"), arguments)


def reduce_size(size: tuple[int, ...]) -> Reduction:
    """How a ``torch.Size`` is written."""
    return (torch_global("torch", "Size"), (tuple(size),))


def dump(
    obj: object, *, describe: Describe, extra_reduce: ExtraReduce | None, protocol: int
) -> tuple[bytes, dict[str, StorageRecord]]:
    """Pickle ``obj``; returns the pickle and the storages it refers to by their keys in the archive, in order."""
    buffer = io.BytesIO()
    pickler = TorchPickler(buffer, describe, extra_reduce, protocol)
    try:
        pickler.dump(obj)
    except pickle.PicklingError as error:
        if "<locals>" in str(error):  # Python's faster pickler, which PyTorch uses, has another class for these
            raise AttributeError(str(error).replace("Can't pickle", "Can't pickle local object", 1)) from error
        raise
    return buffer.getvalue(), pickler.storages


@dataclasses.dataclass(eq=False)
class _StorageReference:
    """Stands for a storage in the arguments of a rebuild function."""

    record: StorageRecord


@dataclasses.dataclass(eq=False)
class _ParameterData:
    """The tensor inside a parameter."""

    record: TensorRecord


class TorchPickler(_PythonPickler):
    """The pure Python pickler, because only that one lets us write a global that does not exist here."""

    def __init__(self, file: io.BytesIO, describe: Describe, extra_reduce: ExtraReduce | None, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self._describe = describe
        self._extra_reduce = extra_reduce
        self._archive_keys: dict[str, str] = {}
        self.storages: dict[str, StorageRecord] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write one object, in PyTorch's way if it is one of PyTorch's kinds."""
        if type(obj) is bytes and not obj and self.proto < 3 and id(obj) not in self.memo:
            # Python would write a call of bytes, which PyTorch's safe unpickler does not allow.
            self.save_reduce(codecs.encode, ("", "latin1"), obj=obj)
            return
        if type(obj) in _PLAIN_TYPES or id(obj) in self.memo:
            super().save(obj, save_persistent_id)
            return
        substitute = self._substitute(obj)
        if isinstance(substitute, tuple):
            self.save_reduce(*substitute, obj=obj)
        else:
            super().save(obj if substitute is None else substitute, save_persistent_id)

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """Storages live outside the pickle."""
        return self._storage_id(obj.record) if type(obj) is _StorageReference else None

    def save_torch_global(self, obj: TorchGlobal) -> None:
        """Write the name of a global without looking for it."""
        if self.proto >= 4:
            self.save(obj.module)
            self.save(obj.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch = {**_PythonPickler.dispatch, TorchGlobal: save_torch_global}  # noqa: RUF012 (a name pickle gave)

    def _substitute(self, obj: Any) -> TorchGlobal | _StorageReference | Reduction | None:
        if type(obj) in (TorchGlobal, _StorageReference):
            return None
        if type(obj) is _ParameterData:
            return _reduce_tensor(obj.record)
        record = self._describe(obj)
        if isinstance(record, StorageRecord):
            return _StorageReference(record)
        if record is not None:
            return _reduce_described(record)
        return None if self._extra_reduce is None else self._extra_reduce(obj)

    def _storage_id(self, record: StorageRecord) -> tuple[Any, ...]:
        key = self._archive_keys.setdefault(record.key, str(len(self._archive_keys)))
        first = self.storages.setdefault(key, record)
        storage_class = _storage_class(record)
        if _storage_class(first) != storage_class:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        if first.data.nbytes != record.data.nbytes:
            raise ValueError(
                f"storage {record.key!r} was described with {first.data.nbytes} and with {record.data.nbytes} bytes"
            )
        is_untyped = record.dtype_name not in STORAGE_CLASS_BY_DTYPE
        count = record.data.nbytes if is_untyped else record.data.size
        return ("storage", storage_class, key, record.location, count)


def _storage_class(record: StorageRecord) -> TorchGlobal:
    class_name = STORAGE_CLASS_BY_DTYPE.get(record.dtype_name)
    return torch_global("torch.storage", "UntypedStorage") if class_name is None else torch_global("torch", class_name)


def _reduce_described(record: TensorRecord) -> Reduction:
    """A tensor or parameter with the Python attributes it carries."""
    hooks: collections.OrderedDict[Any, Any] = collections.OrderedDict()
    if record.is_parameter:
        data = _ParameterData(dataclasses.replace(record, requires_grad=False, is_parameter=False, state=None))
        if record.state:
            rebuild = torch_global("torch._utils", "_rebuild_parameter_with_state")
            return (rebuild, (data, record.requires_grad, hooks, record.state))
        return (torch_global("torch._utils", "_rebuild_parameter"), (data, record.requires_grad, hooks))
    if record.state or record.subclass is not None:
        rebuild, arguments = _reduce_tensor(record)
        tensor_class = torch_global("torch", "Tensor") if record.subclass is None else record.subclass
        return (
            torch_global("torch._tensor", "_rebuild_from_type_v2"),
            (rebuild, tensor_class, arguments, {} if record.state is None else record.state),
        )
    return _reduce_tensor(record)


def _reduce_tensor(record: TensorRecord) -> Reduction:
    """The window on a storage; element types without a storage class of their own add their name."""
    dtype_name = record.storage.dtype_name
    if dtype_name == UNTYPED:
        raise ValueError("a tensor needs an element type: its storage was described as untyped")
    size, stride = tuple(record.size), tuple(record.stride)
    if record.storage.location == "meta":
        arguments: tuple[Any, ...] = (reduce_dtype(dtype_name), size, stride, record.requires_grad)
        return (torch_global("torch._utils", "_rebuild_meta_tensor_no_storage"), arguments)
    hooks: collections.OrderedDict[Any, Any] = collections.OrderedDict()
    arguments = (_StorageReference(record.storage), record.offset, size, stride, record.requires_grad, hooks)
    rebuild = torch_global("torch._utils", "_rebuild_tensor_v2")
    if dtype_name not in STORAGE_CLASS_BY_DTYPE:
        rebuild = torch_global("torch._utils", "_rebuild_tensor_v3")
        arguments = (*arguments, reduce_dtype(dtype_name))
    flags = {name: True for name, is_set in (("conj", record.is_conj), ("neg", record.is_neg)) if is_set}
    return (rebuild, (*arguments, flags) if flags else arguments)
