"""Writes the format from before PyTorch 1.6; `_legacy_reader` says what it is."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

from mindtorch_v2._serialization._legacy_reader import MAGIC_NUMBER
from mindtorch_v2._serialization._pickle_writer import Describe, ExtraReduce, TorchPickler
from mindtorch_v2._serialization._records import STORAGE_CLASS_BY_DTYPE, StorageRecord
from mindtorch_v2._serialization._sources import source_of
from mindtorch_v2._serialization._zip_writer import Writable, atomic_output

__all__ = ["write_legacy"]

PROTOCOL_VERSION = 1001
_COUNT = struct.Struct("<q")
_FACTS = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
          "type_sizes": {"short": 2, "int": 4, "long": 4}}


class _LegacyPickler(TorchPickler):
    """Ids of storages have a sixth part, once used for views of storages. Classes of modules come with their source."""

    def __init__(self, *args: Any, with_source: Callable[[type], bool]) -> None:
        super().__init__(*args)
        self._has_source = with_source
        self._with_source: set[type] = set()

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; the class of a module, the first time, as an id with its source."""
        if save_persistent_id and isinstance(obj, type) and obj not in self._with_source and (
                self._has_source(obj)):
            self._with_source.add(obj)
            source = source_of(obj)
            if source is not None:
                self.save_pers(("module", obj, *source))
                return
        super().save(obj, save_persistent_id)

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """Storages come after the pickle."""
        found = super().persistent_id(obj)
        return None if found is None else (*found, None)


def write_legacy(path_or_file: str | os.PathLike[str] | Writable, obj: object, *, describe: Describe,
                 extra_reduce: ExtraReduce | None, pickle_protocol: int,
                 payload: Callable[[StorageRecord], memoryview], with_source: Callable[[type], bool]) -> None:
    """Write an object in the old format."""
    buffer = io.BytesIO()
    for part in (MAGIC_NUMBER, PROTOCOL_VERSION, _FACTS):
        pickle.dump(part, buffer, protocol=pickle_protocol)
    pickler = _LegacyPickler(buffer, describe, extra_reduce, pickle_protocol, with_source=with_source)
    pickler.dump(obj)
    keys = sorted(pickler.storages)
    pickle.dump(keys, buffer, protocol=pickle_protocol)
    for key in keys:
        record = pickler.storages[key]
        buffer.write(_COUNT.pack(record.data.size if record.dtype_name in STORAGE_CLASS_BY_DTYPE
                                 else record.data.nbytes))
        buffer.write(payload(record))
    if isinstance(path_or_file, (str, os.PathLike)):
        with atomic_output(path_or_file) as output:
            output.write(buffer.getvalue())
    else:
        path_or_file.write(buffer.getvalue())
