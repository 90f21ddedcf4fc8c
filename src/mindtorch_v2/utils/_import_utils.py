"""`torch.utils._import_utils`: modules that may be missing."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType
from typing import Any

__all__ = ["check_module_exists", "import_dill"]


def check_module_exists(name: str) -> bool:
    """Whether a module could be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a package that contains it is missing
        return False


_check_module_exists = check_module_exists  # under both names in PyTorch, by version


@functools.lru_cache
def import_dill() -> ModuleType | None:
    """`dill`, which pickles functions too, or None."""
    if not check_module_exists("dill"):
        return None
    dill: Any = importlib.import_module("dill")
    dill.extend(use_dill=False)  # it pickles only what asks for it
    return dill
