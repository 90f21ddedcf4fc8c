"""PyTorch's zip checkpoint format, both ways, on NumPy arrays.

    _records.py         what a tensor and a storage are in a file; element types as a table
    _pickle_writer.py   an object tree becomes a pickle that names its globals as PyTorch does
    _zip_writer.py      records become an aligned, uncompressed zip file, put in place atomically
    _zip_reader.py      the records of such a file, checked
    _legacy_reader.py   the same of a file from before PyTorch 1.6
    _legacy_writer.py   writes such a file
    _rebuild.py         the functions a checkpoint may ask for, and nothing else
    _safe_unpickler.py  runs a pickle with an allow-list (the default)
    _checkpoint.py      write_archive and read_archive, which tie these together

The package knows no Tensor class: callers describe their tensors as records and build them from records. Nothing here
imports a module because a file names it, except after ``weights_only=False``.
"""

from __future__ import annotations

from mindtorch_v2._serialization._checkpoint import read_archive, refused_globals, write_archive
from mindtorch_v2._serialization._pickle_writer import (
    TorchGlobal,
    reduce_device,
    reduce_dtype,
    reduce_size,
    torch_global,
)
from mindtorch_v2._serialization._rebuild import SparseRecord
from mindtorch_v2._serialization._records import UNTYPED, StorageRecord, TensorRecord, numpy_dtype

__all__ = [
    "UNTYPED",
    "SparseRecord",
    "StorageRecord",
    "TensorRecord",
    "TorchGlobal",
    "numpy_dtype",
    "read_archive",
    "reduce_device",
    "reduce_dtype",
    "reduce_size",
    "refused_globals",
    "torch_global",
    "write_archive",
]
