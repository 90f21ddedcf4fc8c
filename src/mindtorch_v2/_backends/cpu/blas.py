"""NumPy's BLAS: its threads, and LAPACK functions that np.linalg does not offer."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

THREADS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
           "openblas_set_num_threads", "MKL_Set_Num_Threads")
# OpenBLAS's names of LAPACK functions, and the integers that they take.
SPELLINGS = (("scipy_{}_64_", ctypes.c_int64, np.int64), ("{}_64_", ctypes.c_int64, np.int64),
             ("scipy_{}_", ctypes.c_int32, np.int32))
LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def _library() -> Any:
    """The loaded library; None if it is unknown."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return None
    paths = {line.split(maxsplit=5)[5] for line in maps.read_text().splitlines()
             if ("openblas" in line or "mkl_rt" in line) and len(line.split(maxsplit=5)) == 6}
    # PyTorch or SciPy may have loaded others: NumPy's is the one beside it.
    for path in sorted(paths, key=lambda path: "numpy" not in path):
        library = ctypes.CDLL(path)
        if any(hasattr(library, name) for name in THREADS):
            return library
    return None


@functools.cache
def _setter() -> Callable[[int], object] | None:
    library = _library()
    return next((getattr(library, name) for name in THREADS if hasattr(library, name)), None)


def set_threads(count: int) -> None:
    """Set the number of threads of NumPy's BLAS, if it can be set."""
    setter = _setter()
    if setter is not None:
        setter(count)


@functools.cache
def lapack(name: str) -> tuple[Any, Any, Any] | None:
    """A function of LAPACK with its integers' type, for ctypes and for NumPy; None if the library has none."""
    library = _library()
    for spelling, integer, kind in SPELLINGS:
        function = getattr(library, spelling.format(name), None)
        if function is not None:
            function.restype = None
            return function, integer, kind
    return None


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """L and U in one matrix, the row exchanged with each row (from 1), and the first zero on U's diagonal (or 0)."""
    found = lapack(f"{LETTERS[a.dtype.char]}getrf") if a.dtype.char in LETTERS and a.size else None
    if found is None:
        return None
    function, integer, kind = found
    *lead, rows, columns = a.shape
    count = min(rows, columns)
    # LAPACK stores matrices by columns.
    turned = np.array(np.swapaxes(a, -1, -2), order="C").reshape(math.prod(lead), columns, rows)
    pivots = np.empty((len(turned), count), kind)
    infos = np.empty(len(turned), kind)
    m, n = ctypes.byref(integer(rows)), ctypes.byref(integer(columns))
    for index in range(len(turned)):
        matrix, exchanged, info = (ctypes.c_void_p(x.ctypes.data + index * x.strides[0])
                                   for x in (turned, pivots, infos))
        function(m, n, matrix, m, exchanged, info)
    made = np.swapaxes(turned.reshape(*lead, columns, rows), -1, -2)
    return made, pivots.astype(np.int32).reshape(*lead, count), infos.astype(np.int32).reshape(lead)
