"""Run and profile PyTorch programs without PyTorch: `import mindtorch_v2 as torch`."""

from __future__ import annotations

from typing import Any

import warnings as _warnings

import numpy as _np

from . import _methods, _ops, _tensor_methods, autograd, nn, optim
from ._backends import meta as _meta
from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._construct import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor
from ._device import device
from ._dispatch import dispatcher as _dispatcher
from ._dispatch.namespace import find as _find
from ._dispatch.registry import public_names as _public_names
from ._dtype import (
    ALL_DTYPES as _ALL_DTYPES,
)
from ._dtype import (
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    promote_types,
    set_default_dtype,
)
from ._shape import Size
from ._tensor import Tensor, is_tensor, strided
from ._tensor_str import set_printoptions

__version__ = "0.1.0"

# PyTorch computes inf and nan silently. NumPy's error state is per thread and starts anew in each, so other threads
# are covered by the filter.
_np.seterr(all="ignore")
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mindtorch_v2\b")

for _dtype in _ALL_DTYPES:
    globals()[_dtype.name] = _dtype
    for _alias in _dtype.aliases:
        globals()[_alias] = _dtype

_tensor_methods.attach()
_methods.attach()


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        found = _find(name) if name in _FUNCTIONS else None
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})


_FUNCTIONS = frozenset(_public_names("f"))
