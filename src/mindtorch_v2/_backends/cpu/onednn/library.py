"""Finds and opens the oneDNN library, through its C interface.

`MINDTORCH_ONEDNN=0` turns it off; any other value is the path of a library to use instead of the installed one.
"""

from __future__ import annotations

import ctypes
import os
import site
import sys
import threading
import warnings
from typing import Any

NAME = "libdnnl.so.3"
CPU = 1
IN_ORDER = 1

_pointer = ctypes.c_void_p
_status = ctypes.c_int
_int64s = ctypes.POINTER(ctypes.c_int64)


class ExecutionArgument(ctypes.Structure):
    """Which argument of a primitive, and the memory object that it is."""

    _fields_ = (("argument", ctypes.c_int), ("memory", _pointer))


class OneDnnError(RuntimeError):
    """The library returned an error."""


# Argument types of the functions in use, all of which return a status.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "dnnl_engine_create": (_pointer, ctypes.c_int, ctypes.c_size_t),
    "dnnl_stream_create": (_pointer, _pointer, ctypes.c_uint),
    "dnnl_stream_destroy": (_pointer,),
    "dnnl_memory_desc_create_with_strides": (_pointer, ctypes.c_int, _int64s, ctypes.c_int, _int64s),
    "dnnl_memory_desc_create_with_tag": (_pointer, ctypes.c_int, _int64s, ctypes.c_int, ctypes.c_int),
    "dnnl_memory_desc_destroy": (_pointer,),
    "dnnl_memory_create": (_pointer, _pointer, _pointer, _pointer),
    "dnnl_memory_destroy": (_pointer,),
    "dnnl_memory_set_data_handle": (_pointer, _pointer),
    "dnnl_primitive_create": (_pointer, _pointer),
    "dnnl_primitive_destroy": (_pointer,),
    "dnnl_primitive_desc_destroy": (_pointer,),
    "dnnl_primitive_execute": (_pointer, _pointer, ctypes.c_int, ctypes.POINTER(ExecutionArgument)),
    "dnnl_reorder_primitive_desc_create": (_pointer,) * 6,
    "dnnl_convolution_forward_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, ctypes.c_int, *(_pointer,) * 4, *(_int64s,) * 4, _pointer),
    "dnnl_convolution_backward_data_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, *(_pointer,) * 3, *(_int64s,) * 4, _pointer, _pointer),
    "dnnl_convolution_backward_weights_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, *(_pointer,) * 4, *(_int64s,) * 4, _pointer, _pointer),
    "dnnl_eltwise_forward_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, ctypes.c_int, _pointer, _pointer, ctypes.c_float, ctypes.c_float, _pointer),
    "dnnl_eltwise_backward_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, *(_pointer,) * 3, ctypes.c_float, ctypes.c_float, _pointer, _pointer),
    "dnnl_layer_normalization_forward_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, *(_pointer,) * 3, ctypes.c_float, ctypes.c_uint, _pointer),
    "dnnl_layer_normalization_backward_primitive_desc_create": (
        _pointer, _pointer, ctypes.c_int, *(_pointer,) * 4, ctypes.c_float, ctypes.c_uint, _pointer, _pointer),
    "dnnl_matmul_primitive_desc_create": (_pointer,) * 7,
    "dnnl_sgemm": (ctypes.c_char, ctypes.c_char, *(ctypes.c_int64,) * 3, ctypes.c_float, _pointer, ctypes.c_int64,
                   _pointer, ctypes.c_int64, ctypes.c_float, _pointer, ctypes.c_int64),
}


class Library:
    """The opened library: functions that raise where it returns a status that is not 0."""

    def __init__(self, path: str) -> None:
        self.path = path
        # Held while a primitive is being described; the descriptions are listed and freed afterwards.
        self.lock = threading.Lock()
        self.described: list[tuple[str, Any]] = []
        handle = ctypes.CDLL(path)
        handle.dnnl_primitive_desc_query_md.restype = _pointer
        handle.dnnl_primitive_desc_query_md.argtypes = (_pointer, ctypes.c_int, ctypes.c_int)
        handle.dnnl_memory_desc_equal.argtypes = (_pointer, _pointer)
        handle.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        handle.dnnl_memory_desc_get_size.argtypes = (_pointer,)
        self.query_descriptor = handle.dnnl_primitive_desc_query_md
        self.equal_descriptors = handle.dnnl_memory_desc_equal
        self.descriptor_bytes = handle.dnnl_memory_desc_get_size
        self.functions: dict[str, Any] = {}
        for name, arguments in SIGNATURES.items():
            function = getattr(handle, name)
            function.restype, function.argtypes = _status, arguments
            self.functions[name] = function
        self.engine = self.create("dnnl_engine_create", CPU, 0)
        # The same threads that the library was linked with.
        self.set_threads = handle.omp_set_num_threads
        self.threads = int(handle.omp_get_max_threads())

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by name."""
        status = self.functions[name](*arguments)
        if status:
            raise OneDnnError(f"{name} returned {status}")

    def create(self, name: str, *arguments: Any) -> Any:
        """Call a function whose first argument receives the object that it makes."""
        made = _pointer()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def describe(self, name: str, *arguments: Any) -> Any:
        """Create a description that `forget` frees."""
        made = self.create(name, *arguments)
        primitive = name.endswith("_primitive_desc_create")
        self.described.append(("dnnl_primitive_desc_destroy" if primitive else "dnnl_memory_desc_destroy", made))
        return made

    def forget(self) -> None:
        """Free all descriptions."""
        while self.described:
            name, handle = self.described.pop()
            self.call(name, handle)


def _candidates() -> list[str]:
    chosen = os.environ.get("MINDTORCH_ONEDNN", "")
    if chosen == "0":
        return []
    if chosen:
        return [chosen]
    roots = [sys.prefix, sys.base_prefix, site.getuserbase()]
    return [os.path.join(root, "lib", NAME) for root in dict.fromkeys(roots)]


def _open() -> Library | None:
    for path in _candidates():
        if os.path.exists(path):
            try:
                return Library(path)
            except (OSError, AttributeError, OneDnnError) as trouble:
                warnings.warn(f"oneDNN cannot be used, NumPy computes instead: {trouble}", RuntimeWarning, stacklevel=2)
    return None


_state: dict[str, Library | None] = {}


def library() -> Library | None:
    """The library, opened on first use; None if there is none."""
    if "opened" not in _state:
        _state["opened"] = _open()
    return _state["opened"]


def disable() -> None:
    """Answer None from now on."""
    _state["opened"] = None


# GNU OpenMP, which runs the library's threads, hangs in a child process whose parent has used it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=disable)
