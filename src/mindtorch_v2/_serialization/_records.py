"""What a checkpoint holds: storages (runs of bytes with a key) and tensors (windows on a storage).

This module is a leaf: it imports NumPy and nothing of the package.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "DTYPE_NAMES",
    "STORAGE_CLASS_BY_DTYPE",
    "UNTYPED",
    "StorageRecord",
    "TensorRecord",
    "numpy_dtype",
]

_MAX_BYTES = 1 << 63

UNTYPED = "untyped"
"""The ``dtype_name`` of a storage that is only bytes; its data is of uint8."""

STORAGE_CLASS_BY_DTYPE: dict[str, str] = {
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}
"""The element types whose storages have a class of their own; those of the others are saved untyped."""

_UNTYPED_DTYPES = (
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)

DTYPE_NAMES: frozenset[str] = frozenset(STORAGE_CLASS_BY_DTYPE) | frozenset(_UNTYPED_DTYPES)
"""The element types that NumPy, with ml_dtypes, can hold."""


def numpy_dtype(dtype_name: str) -> np.dtype[Any]:
    """The NumPy type of a PyTorch element type; bytes for an untyped storage."""
    if dtype_name == UNTYPED:
        return np.dtype(np.uint8)
    if dtype_name not in DTYPE_NAMES:
        raise NotImplementedError(f"torch.{dtype_name} is not supported in checkpoints: NumPy has no such type")
    if dtype_name.startswith(("bfloat", "float8")):
        scalar_type = getattr(ml_dtypes, dtype_name, None)
        if scalar_type is None:
            raise NotImplementedError(f"torch.{dtype_name} needs a newer ml_dtypes than {ml_dtypes.__version__}")
        return np.dtype(scalar_type)
    return np.dtype(dtype_name)


@dataclasses.dataclass(eq=False)
class StorageRecord:
    """The memory behind one or more tensors.

    When writing, ``key`` only says which storages are the same one; the file numbers them afresh. When reading, it is
    the name in the file, and all tensors of a storage get the same StorageRecord.
    """

    key: str
    dtype_name: str
    """Element type without ``torch.``, or ``"untyped"``."""
    location: str
    """The device it was saved from: ``"cpu"``, ``"npu:0"``, or ``"meta"``, which has no data in the file."""
    data: np.ndarray
    """One-dimensional, in host memory, of the NumPy type of ``dtype_name``."""


@dataclasses.dataclass(eq=False)
class TensorRecord:
    """A tensor: a strided window on a storage, and what autograd and Python know about it."""

    storage: StorageRecord
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements, like ``offset``."""
    requires_grad: bool = False
    is_parameter: bool = False
    state: Any = None
    """Python attributes of the tensor object (its ``__dict__``), or None."""
    subclass: Any = None
    """The subclass of Tensor that it is of, or None."""
    is_conj: bool = False
    """The values are the conjugates of what the storage holds."""
    is_neg: bool = False
    """The values are the negatives of what the storage holds."""

    @property
    def name(self) -> str:
        """``"Parameter"`` or ``"Tensor"``."""
        return "Parameter" if self.is_parameter else "Tensor"

    def to_array(self) -> np.ndarray:
        """A view of the storage with this tensor's shape and strides; not flipped.

        Where a step leads nowhere (the size is 0 or 1) and has too many bytes for NumPy, the array has another.

        Following ``base`` from array to array leads from every view of a storage to the same owner, which holds that
        storage and nothing else.
        """
        data = self.storage.data
        strides = tuple(
            step * data.itemsize if n > 1 or step < _MAX_BYTES // data.itemsize else 0
            for n, step in zip(self.size, self.stride, strict=True)
        )
        offset = min(self.offset, data.size) if 0 in self.size else self.offset
        # Not as_strided, which cannot name every ml_dtypes type; this also refuses a window larger than the storage.
        return np.ndarray(self.size, data.dtype, data.view(np.uint8), offset * data.itemsize, strides)
