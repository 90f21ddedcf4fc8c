"""DLPack capsules: memory that libraries of arrays share.

NumPy makes and reads them. Of types that it has no DLPack code for (bfloat16, the 8-bit floats) it sees the bytes as
integers, and the capsule's type is written over: the field is part of DLPack's ABI.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np

from ._dtype import dtype, dtype_from_name

# DLPack's codes of the types that NumPy has none for.
CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
         "float8_e8m0fnu": 14}
NAMES = {code: name for name, code in CODES.items()}
UNSIGNED = 1
# Where a capsule's DLTensor begins (the versioned form has a version, two pointers and flags before it), and in it the
# type's code.
PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
BEGINS = {PLAIN: 0, VERSIONED: 32}
CODE = 20
INVALID = ("from_dlpack received an invalid capsule. Each can be consumed only once: a tensor may have been "
           "made from it already.")

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class DLDeviceType(enum.IntEnum):
    """Types of devices in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


def exported(array: np.ndarray, kind: dtype, **options: Any) -> Any:
    """A capsule for an array of this dtype."""
    code = CODES.get(kind.name)
    if code is None:
        return array.__dlpack__(**options)
    capsule = array.view(f"u{array.dtype.itemsize}").__dlpack__(**options)
    _code_of(capsule).value = code
    return capsule


def taken(source: Any) -> np.ndarray:
    """The array in a capsule, or in an object that makes one. The capsule is used up."""
    capsule = source
    if hasattr(source, "__dlpack__"):
        try:
            capsule = source.__dlpack__(max_version=(1, 0))
        except TypeError:  # a library from before DLPack had versions
            capsule = source.__dlpack__()
    bare = capsule is source
    code = _code_of(capsule)
    name = NAMES.get(code.value)
    if name is not None:
        code.value = UNSIGNED
    array = np.from_dlpack(_Capsule(capsule))
    if bare or name is not None:
        array = writable(array)
    return array if name is None else array.view(dtype_from_name(name).np)


def _code_of(capsule: Any) -> ctypes.c_uint8:
    """The code of the type of a capsule's elements, to read and to write."""
    form = next((form for form in BEGINS if _is_valid(capsule, form)), None)
    if form is None:
        raise RuntimeError(INVALID)
    return ctypes.c_uint8.from_address(_pointer(capsule, form) + BEGINS[form] + CODE)


class _Capsule:
    """A bare capsule as an object that NumPy can ask for it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DLDeviceType.kDLCPU, 0)


def writable(array: np.ndarray) -> np.ndarray:
    """The same memory for writing too: bare capsules do not say whether they allow it, and NumPy assumes the worst."""
    if array.flags.writeable or not array.size or min(array.strides, default=0) < 0:
        return array
    span = sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize
    memory = (ctypes.c_char * span).from_address(array.__array_interface__["data"][0])
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)
