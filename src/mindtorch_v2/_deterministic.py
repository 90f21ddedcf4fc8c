"""What `use_deterministic_algorithms` switches: PyTorch's refusals. Kernels here give equal results each time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._backends.base import device_of


class Deterministic:
    """What was set."""

    on = False
    warn_only = False
    fill = True  # whether new memory is filled, so that reading it too early is seen


def alert(kernel: str) -> None:
    """Refuse, or warn of, an op whose result PyTorch does not promise to be the same each time."""
    if not Deterministic.on:
        return
    said = (f"{kernel} does not have a deterministic implementation, but you set "
            "'torch.use_deterministic_algorithms(True")
    if not Deterministic.warn_only:
        raise RuntimeError(f"{said})'. You can turn off determinism just for this operation, or you can use the "
                           "'warn_only=True' option, if that's acceptable for your application.")
    warnings.warn(f"{said}, warn_only=True)'.", UserWarning, stacklevel=3)


def filled(array: Any) -> Any:
    """New memory, filled with what is noticed: NaN, or the largest number."""
    kind = array.dtype.kind
    value = True if kind == "b" else np.iinfo(array.dtype).max if kind in "iu" else np.nan
    if type(array) is np.ndarray:
        array[...] = value
    elif device_of(array).has_data:
        device_of(array).fill(array, value)
    return array
