"""`torch.return_types`: the classes of results with named fields.

>>> import mindtorch_v2 as torch
>>> isinstance(torch.tensor([2, 1]).sort(), torch.return_types.sort)
True
"""

from __future__ import annotations

import sys
from typing import Any

from ._dispatch.namespace import load_late
from ._ops.return_types import RESULT_TYPES, named

# (Classes are made when an op first needs them; asking for one by name is such a need.)
FIELDS = {
    "aminmax": ("min", "max"), "cummax": ("values", "indices"), "cummin": ("values", "indices"),
    "frexp": ("mantissa", "exponent"), "geqrf": ("a", "tau"), "histogram": ("hist", "bin_edges"),
    "histogramdd": ("hist", "bin_edges"), "kthvalue": ("values", "indices"), "linalg_cholesky_ex": ("L", "info"),
    "linalg_eig": ("eigenvalues", "eigenvectors"), "linalg_eigh": ("eigenvalues", "eigenvectors"),
    "linalg_inv_ex": ("inverse", "info"), "linalg_ldl_factor": ("LD", "pivots"),
    "linalg_ldl_factor_ex": ("LD", "pivots", "info"),
    "linalg_lstsq": ("solution", "residuals", "rank", "singular_values"),
    "linalg_lu": ("P", "L", "U"), "linalg_lu_factor": ("LU", "pivots"), "linalg_lu_factor_ex": ("LU", "pivots", "info"),
    "linalg_qr": ("Q", "R"), "linalg_slogdet": ("sign", "logabsdet"), "linalg_solve_ex": ("result", "info"),
    "linalg_svd": ("U", "S", "Vh"), "lu_unpack": ("P", "L", "U"), "max": ("values", "indices"),
    "median": ("values", "indices"), "min": ("values", "indices"), "mode": ("values", "indices"),
    "nanmedian": ("values", "indices"), "qr": ("Q", "R"), "slogdet": ("sign", "logabsdet"),
    "sort": ("values", "indices"), "svd": ("U", "S", "V"), "topk": ("values", "indices"),
    "triangular_solve": ("solution", "cloned_coefficient"),
}


# They take no `out=`.
WITHOUT_OUT = frozenset({"histogramdd"})


def __getattr__(name: str) -> Any:
    plain = name.removesuffix("_out")
    if plain in FIELDS and (plain == name or plain not in WITHOUT_OUT):
        return named(name, FIELDS[plain])
    if name == "all_return_types":
        return [getattr(sys.modules[__name__], one) for one in FIELDS]
    load_late(name)
    if name in RESULT_TYPES:
        return RESULT_TYPES[name]
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(FIELDS)
