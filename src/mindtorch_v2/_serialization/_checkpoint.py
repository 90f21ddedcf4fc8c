"""Writing and reading a checkpoint: the pickle, the storages and the zip file brought together."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np

from mindtorch_v2._serialization._legacy_reader import LONGEST_HEAD, LegacyReader, legacy_head
from mindtorch_v2._serialization._legacy_writer import write_legacy
from mindtorch_v2._serialization._pickle_writer import Describe, ExtraReduce, dump
from mindtorch_v2._serialization._rebuild import Builders, Rebuilder, SparseRecord
from mindtorch_v2._serialization._records import StorageRecord, TensorRecord, numpy_dtype
from mindtorch_v2._serialization._safe_unpickler import SafeUnpickler, refusal
from mindtorch_v2._serialization._sources import warn_if_changed
from mindtorch_v2._serialization._zip_reader import RecordReader, position_of
from mindtorch_v2._serialization._zip_writer import (
    ALIGNMENT_BYTES,
    MAX_COMPUTABLE_BYTES,
    RecordWriter,
    Writable,
    archive_name,
    atomic_output,
)

__all__ = ["read_archive", "refused_globals", "write_archive"]

ResolveTorchName = Callable[[str, str], Any]

_PythonUnpickler: Any = pickle._Unpickler


def write_archive(
    path_or_file: str | os.PathLike[str] | Writable,
    obj: object,
    *,
    describe: Describe,
    extra_reduce: ExtraReduce | None = None,
    pickle_protocol: int = 2,
    legacy: bool = False,
    alignment: int = ALIGNMENT_BYTES,
    crc32: bool = True,
    with_source: Callable[[type], bool] = lambda _: False,
) -> None:
    """Write ``obj`` as a checkpoint that PyTorch reads.

    Args:
        path_or_file: a path, which is replaced as a whole or not at all, or an object with ``write``.
        obj: any picklable tree of objects.
        describe: for a tensor its TensorRecord, for a bare storage its StorageRecord, for anything else None. Storages
            described with the same key are written once and stay shared.
        extra_reduce: for objects that PyTorch writes in a way of its own (dtypes, devices, sizes, and classes that
            have another name there) a `TorchGlobal` or a reduction ``(callable, arguments)``, else None.
        pickle_protocol: ``torch.load(weights_only=True)`` reads only 2.
        legacy: in the format from before PyTorch 1.6.
        alignment: the payload of each record begins at a multiple of so many bytes.
        crc32: whether the sums of the records are written, or zeros.
        with_source: the classes whose source a legacy file has.
    """
    if legacy:
        write_legacy(path_or_file, obj, describe=describe, extra_reduce=extra_reduce, pickle_protocol=pickle_protocol,
                     payload=_payload, with_source=with_source)
        _flush(path_or_file)
        return
    pickled, storages = dump(obj, describe=describe, extra_reduce=extra_reduce, protocol=pickle_protocol)
    payloads = {key: _payload(record) for key, record in storages.items()}
    if isinstance(path_or_file, (str, os.PathLike)):
        with atomic_output(path_or_file) as output:
            _write_records(output, archive_name(path_or_file), pickled, payloads, alignment, crc32)
    else:
        _write_records(path_or_file, archive_name(None), pickled, payloads, alignment, crc32)
        _flush(path_or_file)


def _flush(output: Any) -> None:
    """Write out what an open file still holds back, because a program may read it by its name before it is closed."""
    flush = getattr(output, "flush", None)
    if flush is not None:
        flush()


def read_archive(
    path_or_file: str | os.PathLike[str] | IO[bytes],
    *,
    build: Callable[[TensorRecord], Any],
    build_dtype: Callable[[str], Any],
    build_device: Callable[..., Any],
    build_size: Callable[[tuple[int, ...]], Any],
    build_storage: Callable[[StorageRecord], Any] | None = None,
    build_sparse: Callable[[SparseRecord], Any] | None = None,
    build_layout: Callable[[str], Any] = str,
    build_wrapper: Callable[[tuple[Any, ...], Any], Any] | None = None,
    tensor_class: Any = None,
    mmap: bool = False,
    mmap_shared: bool = False,
    byteorder: str = "little",
    weights_only: bool = True,
    allowed: Mapping[tuple[str, str], Any] | None = None,
    resolve_torch_name: ResolveTorchName | None = None,
    encoding: str = "utf-8",
    pickle_module: Any = pickle,
) -> Any:
    """Read a checkpoint that PyTorch or `write_archive` wrote.

    Args:
        path_or_file: a path or a seekable file object.
        build: makes a tensor. Tensors that share memory come with the same ``record.storage``. A parameter is built
            twice, first as the tensor inside it; only the second one is returned.
        build_dtype: makes an element type from its name, ``"float32"``.
        build_device: makes a device, from its type and perhaps an index.
        build_size: makes a ``torch.Size``.
        build_storage: makes a storage that stands in the checkpoint by itself; without it such a storage comes back as
            its StorageRecord. It is called once for every storage in the file.
        build_sparse: makes a sparse tensor; without it they are refused.
        build_layout: makes a ``torch.layout`` from its name, ``"torch.strided"``.
        byteorder: what to assume of a file that does not say its own.
        build_wrapper: makes a tensor without memory of its own from what it says of itself and its attributes; without
            it they are refused.
        tensor_class: what a file means that names the class of tensors.
        mmap: map the file instead of reading it; changes to the tensors stay in memory.
        mmap_shared: changes to the tensors change the mapped file.
        weights_only: refuse everything but plain data. False lets the file run any code: only for trusted files.
        allowed: further globals the file may use, as ``{("module", "name"): object}``.
        resolve_torch_name: with ``weights_only=False``, finds what a global below ``torch`` stands for; it raises
            AttributeError if it does not know.
        encoding: with ``weights_only=False``, how the strings of Python 2 are decoded.
        pickle_module: with ``weights_only=False``, what has the unpickler to use.

    Raises:
        pickle.UnpicklingError: the file is not a checkpoint, or it asks for what is not allowed.
        RuntimeError: the file is damaged, or of a kind that is not supported (NotImplementedError).
    """
    builders = Builders(
        build, build_dtype, build_device, build_size, build_storage or _unchanged, build_sparse, build_layout,
        build_wrapper, tensor_class)
    with _opened(path_or_file, mmap, byteorder, mmap_shared) as reader:
        rebuilder = Rebuilder(reader, builders, allowed or {})
        pickled = reader.read("data.pkl")
        if not weights_only:
            unpickler = _trusting(pickle_module.Unpickler)(io.BytesIO(pickled), encoding=encoding)
            unpickler.answer_from(rebuilder, allowed or {}, resolve_torch_name)
            return unpickler.load()
        try:
            return SafeUnpickler(pickled, rebuilder, allowed or {}).load()
        except pickle.UnpicklingError as error:
            raise refusal(reader.label, error) from error


def refused_globals(file: IO[bytes], allowed: Mapping[tuple[str, str], Any]) -> list[str]:
    """The names in a zip checkpoint that `read_archive` would refuse."""
    builders = Builders(_unchanged, str, str, tuple, _unchanged)
    with RecordReader(file) as reader:
        return SafeUnpickler(reader.read("data.pkl"), Rebuilder(reader, builders, allowed), allowed).refused()


class _Answers:
    """What an unpickler that imports what a file names asks us; names below ``torch`` are found by us or the caller."""

    def answer_from(self, rebuilder: Rebuilder, allowed: Mapping[tuple[str, str], Any],
                    resolve_torch_name: ResolveTorchName | None) -> None:
        """Say who knows the answers."""
        self._rebuilder = rebuilder
        rebuilder.is_trusting = True
        self._allowed = allowed
        self._resolve_torch_name = resolve_torch_name

    def find_class(self, module: str, name: str) -> Any:
        """The object that a global of the file stands for."""
        if (module, name) in self._allowed:
            return self._allowed[module, name]
        if module != "torch" and not module.startswith("torch."):
            return super().find_class(module, name)  # type: ignore[misc]
        try:
            return self._rebuilder.find(module, name)
        except KeyError:
            if self._resolve_torch_name is None:
                message = f"the checkpoint needs {module}.{name}, which does not exist here"
                raise pickle.UnpicklingError(message) from None
        return self._resolve_torch_name(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """The storage with this id; of a class whose source the oldest files carry along, the class."""
        if type(pid) is tuple and len(pid) == 4 and pid[0] == "module":
            warn_if_changed(*pid[1:])
            return pid[1]
        return self._rebuilder.persistent_load(pid)


@functools.cache
def _trusting(chosen: type) -> Any:
    """The class of an unpickler that asks us. The program's own classes come before us, Python's own after us."""
    standard = next(base for base in chosen.__mro__ if base in (pickle.Unpickler, _PythonUnpickler))
    base = type("Unpickler", (_Answers, standard), {})
    if chosen is standard:
        return base
    # Ids of storages are ours alone.
    return type(chosen.__name__, (chosen, base), {"persistent_load": _Answers.persistent_load})


@contextlib.contextmanager
def _opened(path_or_file: str | os.PathLike[str] | IO[bytes], mmap: bool, byteorder: str,
            mmap_shared: bool) -> Iterator[RecordReader | LegacyReader]:
    """The reader that a file's first bytes ask for."""
    if isinstance(path_or_file, (str, os.PathLike)):
        label = os.fspath(path_or_file)
        with open(label, "rb") as file:
            if legacy_head(file.read(LONGEST_HEAD)):
                if mmap:
                    raise RuntimeError("mmap can only be used with files saved with `torch.save(..., "
                                       f"_use_new_zipfile_serialization=True)`: {label} has the format from before "
                                       "PyTorch 1.6; load it without mmap and save it again")
                file.seek(0)
                yield LegacyReader(file, label)
                return
    else:
        start = position_of(path_or_file)
        head = path_or_file.read(LONGEST_HEAD)
        path_or_file.seek(start)
        if legacy_head(head):
            yield LegacyReader(path_or_file, str(getattr(path_or_file, "name", None) or
                                                 f"<{type(path_or_file).__name__}>"))
            return
    with RecordReader(path_or_file, mmap=mmap, byteorder=byteorder, mmap_shared=mmap_shared) as reader:
        yield reader


def _unchanged(record: Any) -> Any:
    return record


def _payload(record: StorageRecord) -> memoryview:
    expected = numpy_dtype(record.dtype_name)
    if record.data.ndim != 1 or record.data.dtype != expected:
        raise ValueError(
            f"the data of storage {record.key!r} must be one-dimensional and of {expected}, "
            f"but it has {record.data.ndim} dimensions and is of {record.data.dtype}"
        )
    # As bytes, because ml_dtypes arrays do not offer a buffer of their own.
    return np.ascontiguousarray(record.data).view(np.uint8).data


def _write_records(target: Writable, root: str, pickled: bytes, payloads: Mapping[str, memoryview],
                   alignment: int, crc32: bool) -> None:
    sizes = [payload.nbytes for payload in payloads.values()]
    # Version 1 promises that readers can compute where each storage begins. With empty storages or 64-bit fields our
    # zip layout differs from PyTorch's in a few bytes, so there the promise is not made and readers look it up.
    is_computable = 0 not in sizes and sum(sizes) + len(pickled) < MAX_COMPUTABLE_BYTES
    with RecordWriter(target, root, alignment, crc32) as archive:
        archive.write("data.pkl", pickled)
        archive.write(".format_version", b"1" if is_computable else b"0")
        archive.write(".storage_alignment", str(alignment).encode())
        archive.write("byteorder", sys.byteorder.encode())
        for key, payload in payloads.items():
            archive.write(f"data/{key}", payload)
