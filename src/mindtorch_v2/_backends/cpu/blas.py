"""The threads of NumPy's own BLAS, which computes linear algebra and products that are not float32."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

NAMES = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads64_",
         "openblas_set_num_threads", "MKL_Set_Num_Threads")


@functools.cache
def _setter() -> Callable[[int], object] | None:
    """The function of the loaded library that sets them; None for a library that is not known."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return None
    paths = {line.split(maxsplit=5)[5] for line in maps.read_text().splitlines()
             if ("openblas" in line or "mkl_rt" in line) and len(line.split(maxsplit=5)) == 6}
    # PyTorch or SciPy may have brought others: NumPy's is the one beside it.
    for path in sorted(paths, key=lambda path: "numpy" not in path):
        library = ctypes.CDLL(path)
        for name in NAMES:
            if hasattr(library, name):
                return getattr(library, name)
    return None


def set_threads(count: int) -> None:
    """How many threads NumPy's BLAS uses from now on, where it can be told."""
    setter = _setter()
    if setter is not None:
        setter(count)
