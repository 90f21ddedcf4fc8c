"""`torch.testing._utils`: random numbers of tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._random import fork_rng, manual_seed

__all__ = ["freeze_rng_state", "wrapper_set_seed"]


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Leave the generators of tensors, NumPy and Python as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    try:
        with fork_rng():
            yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An op that draws random numbers, from the same state each time, which is put back afterwards."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
